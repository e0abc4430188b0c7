WITH moving AS (
  SELECT
    ts,
    row_number() OVER (ORDER BY ts, sensor, celsius NULLS FIRST) AS place,
    count(celsius) OVER w AS known,
    avg(celsius) OVER w AS mean,
    min(celsius) OVER w AS low,
    max(celsius) OVER w AS high
  FROM readings
  WINDOW w AS (
    ORDER BY ts, sensor, celsius NULLS FIRST ROWS BETWEEN 19 PRECEDING AND CURRENT ROW
  )
)
SELECT ts AS __ts, known, mean, low, high FROM moving
QUALIFY place = max(place) OVER (PARTITION BY ts);
