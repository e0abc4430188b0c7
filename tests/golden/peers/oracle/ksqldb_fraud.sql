SELECT
  (ts // 300000000 + 1) * 300000000 AS __ts, card, count(*) AS uses, sum(amount) AS total
FROM payments GROUP BY __ts, card HAVING count(*) > 3;
