-- Materialize, top-K in group with K = 1: the largest order of each product among those of the last
-- five minutes, all of them where several are equally large.
SELECT o.product, o.id, o.amount
FROM orders [RANGE 5 MINUTES] o
JOIN (SELECT product, max(amount) AS top FROM orders [RANGE 5 MINUTES] GROUP BY product) m
  ON o.product = m.product AND o.amount = m.top;
