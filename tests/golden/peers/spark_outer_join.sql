-- Spark Structured Streaming, outer join with time bounds: each impression with its clicks within
-- half an hour, told as they come, or once with NULL, told when the half hour is over. An
-- impression leaves its window one tick later; the window of clicks then still reaches back to it.
SELECT ISTREAM i.ad, c.ts AS clicked
FROM impressions [RANGE 30 MINUTES] i JOIN clicks [NOW] c ON i.ad = c.ad
UNION ALL
SELECT e.ad, CAST(NULL AS TIMESTAMP)
FROM (SELECT DSTREAM ad FROM impressions [RANGE 30 MINUTES]) [NOW] e
LEFT ANTI JOIN clicks [RANGE 1800000001 MICROSECONDS] c ON e.ad = c.ad;
