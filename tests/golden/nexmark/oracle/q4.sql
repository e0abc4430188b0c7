WITH winning AS (
  SELECT a.expires AS ts, a.id, a.category, max(b.price) AS price
  FROM auction a JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
  GROUP BY ALL
), step AS (
  SELECT ts, category, sum(price) AS total, count(*) AS n FROM winning GROUP BY ALL
), state AS (
  SELECT ts, category, sum(total) OVER past / sum(n) OVER past AS mean
  FROM step WINDOW past AS (PARTITION BY category ORDER BY ts)
), change AS (
  SELECT *, lag(mean) OVER (PARTITION BY category ORDER BY ts) AS before FROM state
)
SELECT ts AS __ts, 1 AS __sign, category, mean FROM change WHERE mean IS DISTINCT FROM before
UNION ALL
SELECT ts, -1, category, before FROM change WHERE before IS NOT NULL AND before <> mean;
