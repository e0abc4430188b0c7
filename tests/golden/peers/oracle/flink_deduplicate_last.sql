WITH change AS (
  SELECT *, lag(body) OVER (PARTITION BY id ORDER BY ts) AS before FROM requests
)
SELECT ts AS __ts, 1 AS __sign, id, body FROM change WHERE body IS DISTINCT FROM before
UNION ALL
SELECT ts, -1, id, before FROM change WHERE before <> body;
