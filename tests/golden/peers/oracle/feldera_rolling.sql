SELECT ts AS __ts, id, card, count(*) OVER w AS n, sum(amount) OVER w AS paid, avg(amount) OVER w
FROM payments
WINDOW w AS (PARTITION BY card ORDER BY ts RANGE BETWEEN 600000000 PRECEDING AND CURRENT ROW);
