SELECT
  (coalesce(o.ts, s.ts) // 300000000 + 1) * 300000000 AS __ts, o.id, o.product, s.order_id
FROM orders o FULL JOIN shipments s
  ON o.id = s.order_id AND o.ts // 300000000 = s.ts // 300000000;
