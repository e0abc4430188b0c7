SELECT s.ts AS __ts, o.id, o.ts AS ordered, s.ts AS shipped
FROM orders o JOIN shipments s
  ON o.id = s.order_id AND o.ts BETWEEN s.ts - 3600000000 AND s.ts;
