-- ksqlDB, tumbling aggregation with HAVING: the cards that were used more than three times in five
-- minutes.
SELECT RSTREAM card, count(*) AS uses, sum(amount) AS total
FROM payments [RANGE 5 MINUTES SLIDE 5 MINUTES]
GROUP BY card
HAVING count(*) > 3;
