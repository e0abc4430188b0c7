WITH instant AS (
  SELECT t, lead(t) OVER (ORDER BY t) AS following
  FROM (SELECT ts AS t FROM orders UNION SELECT ts + 300000001 FROM orders)
  WHERE t <= (SELECT max(ts) FROM orders)
), answer AS (
  SELECT t, following, product, id, amount
  FROM instant JOIN orders ON ts BETWEEN t - 300000000 AND t
  WHERE product IS NOT NULL
  QUALIFY amount = max(amount) OVER (PARTITION BY t, product)
), now AS (
  SELECT t, product, id, amount FROM answer
), before AS (
  SELECT following, product, id, amount FROM answer WHERE following IS NOT NULL
)
SELECT t AS __ts, 1 AS __sign, product, id, amount FROM (FROM now EXCEPT ALL FROM before)
UNION ALL
SELECT following, -1, product, id, amount FROM (FROM before EXCEPT ALL FROM now);
