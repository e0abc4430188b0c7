-- Feldera, rolling aggregates: beside every payment what its card paid in the ten minutes up to it,
-- in how many payments, and their mean.
SELECT ISTREAM p.id, p.card, count(*) AS n, sum(w.amount) AS paid, avg(w.amount) AS mean
FROM payments [NOW] p JOIN payments [RANGE 10 MINUTES] w ON p.card = w.card
GROUP BY p.id, p.card;
