-- Flink SQL, window join, FULL OUTER: the orders and the shipments of the same five minutes, paired
-- where they belong together.
SELECT RSTREAM o.id, o.product, s.order_id
FROM orders [RANGE 5 MINUTES SLIDE 5 MINUTES] o
FULL JOIN shipments [RANGE 5 MINUTES SLIDE 5 MINUTES] s ON o.id = s.order_id;
