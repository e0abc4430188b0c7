-- Nexmark q7, highest bid: at the end of every 10 seconds, the bids with the highest price in them.
SELECT RSTREAM b.auction, b.price, b.bidder, b.dateTime
FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS] b
JOIN (SELECT max(price) AS top FROM bid [RANGE 10 SECONDS SLIDE 10 SECONDS]) m
  ON b.price = m.top;
