WITH best AS (
  SELECT b.ts, a.id, a.category, max(b.price) AS price
  FROM auction a JOIN bid b ON a.id = b.auction AND b.ts BETWEEN a.ts AND a.expires
  GROUP BY ALL
), highest AS (
  SELECT ts, id, category, max(price) OVER (PARTITION BY id ORDER BY ts) AS price FROM best
), gain AS (
  SELECT
    ts,
    category,
    price - coalesce(lag(price) OVER past, 0) AS total,
    if(lag(price) OVER past IS NULL, 1, 0) AS n
  FROM highest WINDOW past AS (PARTITION BY id ORDER BY ts)
), step AS (
  SELECT ts, category, sum(total) AS total, sum(n) AS n FROM gain GROUP BY ALL
), state AS (
  SELECT ts, category, sum(total) OVER past / sum(n) OVER past AS mean
  FROM step WINDOW past AS (PARTITION BY category ORDER BY ts)
), change AS (
  SELECT *, lag(mean) OVER (PARTITION BY category ORDER BY ts) AS before FROM state
)
SELECT ts AS __ts, 1 AS __sign, category, mean FROM change WHERE mean IS DISTINCT FROM before
UNION ALL
SELECT ts, -1, category, before FROM change WHERE before IS NOT NULL AND before <> mean;
