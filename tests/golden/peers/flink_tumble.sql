-- Flink SQL, window table-valued functions, TUMBLE: the revenue of each product in every ten
-- minutes, told when they are over. NULL is a product like any other.
SELECT RSTREAM product, count(*) AS n, sum(amount) AS revenue, min(amount) AS least
FROM orders [RANGE 10 MINUTES SLIDE 10 MINUTES]
GROUP BY product;
