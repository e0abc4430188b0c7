-- Nexmark q4, average price for a category: the mean closing price of all auctions that have closed
-- in it. The stream `closed` has the auctions again, at the moment they expire; the winning bid is
-- the highest one placed between the opening and then. No auction lasts longer than the range.
CREATE VIEW winning AS
  SELECT ISTREAM c.id, c.category, max(b.price) AS price
  FROM closed [NOW] c JOIN bid [RANGE 1 MINUTE] b ON c.id = b.auction
  WHERE b.ts >= c.ts
  GROUP BY c.id, c.category;

SELECT category, avg(price) AS mean FROM winning GROUP BY category WITH (unbounded = true);
