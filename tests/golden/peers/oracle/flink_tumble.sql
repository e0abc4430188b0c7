SELECT
  (ts // 600000000 + 1) * 600000000 AS __ts,
  product, count(*) AS n, sum(amount) AS revenue, min(amount) AS least
FROM orders GROUP BY ALL;
