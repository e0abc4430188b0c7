-- Flink SQL, window table-valued functions, CUMULATE: the revenue of each product since the last
-- full ten minutes, told every two minutes. A sliding window holds too much at most boundaries; the
-- rows of the newest ten minutes in it are those that count. This says the same as CUMULATE where
-- every two minutes have an order; a landmark window would need no such condition.
CREATE VIEW recent AS
  SELECT product, amount, unix_seconds(ts) div 600 AS part
  FROM orders [RANGE 10 MINUTES SLIDE 2 MINUTES];

SELECT RSTREAM r.product, count(*) AS n, sum(r.amount) AS revenue
FROM recent r JOIN (SELECT max(part) AS part FROM recent) newest ON r.part = newest.part
GROUP BY r.product;
