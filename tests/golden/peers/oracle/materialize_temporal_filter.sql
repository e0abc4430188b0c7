SELECT ts AS __ts, 1 AS __sign, id, product, amount FROM orders WHERE amount > 100
UNION ALL
SELECT ts + 300000001, -1, id, product, amount FROM orders
WHERE amount > 100 AND ts + 300000001 <= (SELECT max(ts) FROM orders);
