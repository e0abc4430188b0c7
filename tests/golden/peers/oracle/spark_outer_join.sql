WITH pair AS (
  SELECT i.ad, i.ts AS shown, c.ts AS clicked
  FROM impressions i LEFT JOIN clicks c
    ON i.ad = c.ad AND c.ts BETWEEN i.ts AND i.ts + 1800000000
)
SELECT coalesce(clicked, shown + 1800000001) AS __ts, ad, clicked FROM pair
WHERE __ts <= (SELECT max(ts) FROM (FROM impressions SELECT ts UNION ALL FROM clicks SELECT ts));
