-- Flink SQL, interval join: the orders that were shipped within an hour, told when they are.
SELECT ISTREAM o.id, o.ts AS ordered, s.ts AS shipped
FROM orders [RANGE 1 HOUR] o JOIN shipments [NOW] s ON o.id = s.order_id;
