-- ksqlDB, stream-table join and window: the cards that paid more than twice to payees on a list
-- within an hour, looked at every quarter of an hour.
SELECT RSTREAM p.card, count(*) AS n, max(s.reason) AS reason
FROM payments [RANGE 1 HOUR SLIDE 15 MINUTES] p JOIN suspects s ON p.payee = s.payee
GROUP BY p.card
HAVING count(*) > 2;
