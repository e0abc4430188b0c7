-- RisingWave, tumbling windows for ad performance: the clicks of each campaign in ten minutes for
-- each of its impressions in them. A campaign without clicks has rate 0.
SELECT RSTREAM
  i.campaign, i.n AS shown, coalesce(c.n, 0) AS clicked, coalesce(c.n, 0) / i.n AS rate
FROM (
  SELECT campaign, count(*) AS n
  FROM impressions [RANGE 10 MINUTES SLIDE 10 MINUTES] GROUP BY campaign
) i
LEFT JOIN (
  SELECT campaign, count(*) AS n
  FROM clicks [RANGE 10 MINUTES SLIDE 10 MINUTES] GROUP BY campaign
) c ON i.campaign = c.campaign;
