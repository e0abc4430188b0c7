-- Flink SQL, window top-N: the three customers who spent most in every ten minutes; with those who
-- share the last place there are more. Before whom fewer than three come is among the three.
CREATE VIEW spent AS
  SELECT customer, sum(amount) AS total
  FROM orders [RANGE 10 MINUTES SLIDE 10 MINUTES]
  GROUP BY customer;

SELECT RSTREAM s.customer, s.total, count(ahead.total) + 1 AS place
FROM spent s LEFT JOIN spent ahead ON ahead.total > s.total
GROUP BY s.customer, s.total
HAVING count(ahead.total) < 3;
