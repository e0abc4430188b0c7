-- Spark Structured Streaming, window operations on event time: how often each word was seen in ten
-- minutes, every five minutes.
SELECT RSTREAM word, count(*) AS n
FROM words [RANGE 10 MINUTES SLIDE 5 MINUTES]
GROUP BY word;
