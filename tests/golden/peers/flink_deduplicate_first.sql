-- Flink SQL, deduplication, first row kept: each request once, when it first comes; retries of it,
-- which never come in the same second, are left out.
SELECT ISTREAM r.id, r.body
FROM requests r
JOIN (SELECT id, min(ts) AS ts FROM requests GROUP BY id) first
  ON r.id = first.id AND r.ts = first.ts
WITH (unbounded = true);
