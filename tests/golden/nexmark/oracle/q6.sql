WITH winning AS (
  SELECT a.expires AS ts, a.seller, a.id, max(b.price) AS price
  FROM auction a JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
  GROUP BY ALL
), moving AS (
  SELECT ts, id, seller, avg(price) OVER (
    PARTITION BY seller ORDER BY ts, id ROWS BETWEEN 9 PRECEDING AND CURRENT ROW
  ) AS mean
  FROM winning
), state AS (
  SELECT ts, seller, arg_max(mean, id) AS mean FROM moving GROUP BY ALL
), change AS (
  SELECT *, lag(mean) OVER (PARTITION BY seller ORDER BY ts) AS before FROM state
)
SELECT ts AS __ts, 1 AS __sign, seller, mean FROM change WHERE mean IS DISTINCT FROM before
UNION ALL
SELECT ts, -1, seller, before FROM change WHERE before IS NOT NULL AND before <> mean;
