-- Materialize, temporal filter: the orders of the last five minutes, each added when it is placed
-- and taken back the tick after it is five minutes old.
SELECT id, product, amount FROM orders [RANGE 5 MINUTES] WHERE amount > 100;
