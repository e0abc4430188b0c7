WITH known AS (
  SELECT ts, currency, max(rate) AS rate FROM rates GROUP BY ALL
)
SELECT o.ts AS __ts, o.id, o.amount, r.rate, o.amount * r.rate AS converted
FROM orders o ASOF LEFT JOIN known r ON o.currency = r.currency AND o.ts >= r.ts;
