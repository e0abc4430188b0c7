"""Filters of many queries over one stream: a predicate index finds all members that a row
satisfies, and rows are written once with the set of their members."""
