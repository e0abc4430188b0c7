WITH held AS (
  SELECT (b.ts // 2000000 + i) * 2000000 AS boundary, b.auction
  FROM bid b, range(1, 6) steps(i)
), counts AS (
  SELECT boundary, auction, count(*) AS n FROM held GROUP BY ALL
)
SELECT boundary AS __ts, auction, n FROM counts
WHERE boundary <= (SELECT (max(ts) // 2000000 + 1) * 2000000 FROM bid)
QUALIFY n = max(n) OVER (PARTITION BY boundary);
