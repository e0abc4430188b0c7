WITH boundary AS (
  SELECT unnest(range(
    (min(ts) // 120000000 + 1) * 120000000, (max(ts) // 120000000 + 1) * 120000000 + 1, 120000000
  )) AS b
  FROM orders
)
SELECT b AS __ts, product, count(*) AS n, sum(amount) AS revenue
FROM boundary JOIN orders ON ts < b AND ts >= (b - 1) // 600000000 * 600000000
GROUP BY ALL;
