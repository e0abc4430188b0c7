-- Nexmark q6, average selling price by seller: the mean closing price of the last ten auctions of
-- each seller that closed with a bid. `closed` has the auctions at the moment they expire; of two
-- closing together the one with the higher id is the later.
CREATE VIEW winning AS
  SELECT ISTREAM c.seller, c.id, max(b.price) AS price
  FROM closed [NOW] c JOIN bid [RANGE 1 MINUTE] b ON c.id = b.auction
  WHERE b.ts >= c.ts
  GROUP BY c.seller, c.id;

SELECT seller, avg(price) AS mean
FROM winning [PARTITION BY seller ROWS 10]
GROUP BY seller;
