WITH shown AS (
  SELECT ts // 600000000 AS part, campaign, count(*) AS n FROM impressions GROUP BY ALL
), clicked AS (
  SELECT ts // 600000000 AS part, campaign, count(*) AS n FROM clicks GROUP BY ALL
)
SELECT
  (s.part + 1) * 600000000 AS __ts, s.campaign, s.n, coalesce(c.n, 0), coalesce(c.n, 0) / s.n
FROM shown s LEFT JOIN clicked c USING (part, campaign);
