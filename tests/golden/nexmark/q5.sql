-- Nexmark q5, hot items: every 2 seconds, the auctions with the most bids in the last 10 seconds.
CREATE VIEW bids AS
  SELECT auction, count(*) AS n FROM bid [RANGE 10 SECONDS SLIDE 2 SECONDS] GROUP BY auction;

SELECT RSTREAM b.auction, b.n
FROM bids b JOIN (SELECT max(n) AS most FROM bids) m ON b.n = m.most;
