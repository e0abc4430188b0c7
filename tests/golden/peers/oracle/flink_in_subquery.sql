SELECT ts AS __ts, id, card, payee FROM payments p
WHERE 4 <= (
  SELECT count(*) FROM payments q WHERE q.card = p.card AND q.ts BETWEEN p.ts - 600000000 AND p.ts
);
