WITH held AS (
  SELECT (ts // 10000000 + 1) * 10000000 AS boundary, * FROM bid
)
SELECT boundary AS __ts, auction, price, bidder, dateTime FROM held
QUALIFY price = max(price) OVER (PARTITION BY boundary);
