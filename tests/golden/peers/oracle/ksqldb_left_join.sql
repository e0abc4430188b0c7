WITH event AS (
  FROM impressions SELECT ts UNION FROM clicks SELECT ts
), instant AS (
  SELECT t, lead(t) OVER (ORDER BY t) AS following
  FROM (SELECT ts AS t FROM event UNION SELECT ts + 600000001 FROM event)
  WHERE t <= (SELECT max(ts) FROM event)
), answer AS (
  SELECT t, following, i.ad, i.campaign, c.ts AS clicked
  FROM instant
  JOIN impressions i ON i.ts BETWEEN t - 600000000 AND t
  LEFT JOIN clicks c ON c.ad = i.ad AND c.ts BETWEEN t - 600000000 AND t
), now AS (
  SELECT t, ad, campaign, clicked FROM answer
), before AS (
  SELECT following, ad, campaign, clicked FROM answer WHERE following IS NOT NULL
)
SELECT t AS __ts, 1 AS __sign, ad, campaign, clicked FROM (FROM now EXCEPT ALL FROM before)
UNION ALL
SELECT following, -1, ad, campaign, clicked FROM (FROM before EXCEPT ALL FROM now);
