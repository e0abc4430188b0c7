-- Flink SQL, event-time temporal join: every order in the currency of the shop, at the rate in
-- force when it was placed; NULL where there was none. Of two rates in one second the higher is
-- the later.
SELECT ISTREAM o.id, o.amount, r.rate, o.amount * r.rate AS converted
FROM orders [NOW] o
LEFT JOIN rates [PARTITION BY currency ROWS 1] r ON o.currency = r.currency;
