"""Join planning: keys from equality predicates, join orders, bushy join trees, caches of partial
joins, and outer joins in terms of inner ones."""
