-- Nexmark q4 as engines with changelogs state it: an auction counts from its first valid bid on,
-- with the highest so far, and the mean of a category moves with every higher bid.
SELECT f.category, avg(f.price) AS mean
FROM (
  SELECT a.id, a.category, max(b.price) AS price
  FROM auction a JOIN bid b ON a.id = b.auction
  WHERE b.ts BETWEEN a.ts AND a.expires
  GROUP BY a.id, a.category
) f
GROUP BY f.category
WITH (unbounded = true);
