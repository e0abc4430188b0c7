-- Esper, length window: the mean, the least and the greatest of the last twenty readings, at every
-- instant at which one comes. Readings of one second follow each other by sensor and value.
SELECT RSTREAM
  count(celsius) AS known, avg(celsius) AS mean, min(celsius) AS low, max(celsius) AS high
FROM readings [ROWS 20];
