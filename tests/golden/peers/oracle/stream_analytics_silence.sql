WITH gap AS (
  SELECT sensor, ts, lead(ts) OVER (PARTITION BY sensor ORDER BY ts) AS following FROM readings
)
SELECT ts + 180000001 AS __ts, sensor FROM gap
WHERE coalesce(following, 9223372036854775807) > ts + 180000001
  AND ts + 180000001 <= (SELECT max(ts) FROM readings);
