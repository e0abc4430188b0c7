-- Flink SQL, IN with a subquery: the payments with a card that was used at least four times in the
-- last ten minutes, this one included.
SELECT ISTREAM id, card, payee FROM payments [NOW]
WHERE card IN (
  SELECT card FROM payments [RANGE 10 MINUTES] GROUP BY card HAVING count(*) >= 4
);
