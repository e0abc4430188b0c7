-- Arroyo, hopping window: how many different visitors each page had in a quarter of an hour, every
-- five minutes; somebody unknown counts once.
SELECT RSTREAM v.page, count(*) AS visitors
FROM (SELECT DISTINCT page, visitor FROM visits [RANGE 15 MINUTES SLIDE 5 MINUTES]) v
GROUP BY v.page;
