SELECT
  (p.ts // 900000000 + i) * 900000000 AS __ts, p.card, count(*) AS n, max(s.reason) AS reason
FROM payments p JOIN suspects s ON p.payee = s.payee, range(1, 5) steps(i)
WHERE __ts <= (SELECT (max(ts) // 900000000 + 1) * 900000000 FROM payments)
GROUP BY __ts, p.card HAVING count(*) > 2;
