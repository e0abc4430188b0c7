WITH spent AS (
  SELECT (ts // 600000000 + 1) * 600000000 AS b, customer, sum(amount) AS total
  FROM orders GROUP BY ALL
)
SELECT b AS __ts, customer, total, rank() OVER (PARTITION BY b ORDER BY total DESC) AS place
FROM spent QUALIFY place <= 3;
