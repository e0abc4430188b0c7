SELECT
  (ts // 300000000 + i) * 300000000 AS __ts,
  page,
  count(DISTINCT coalesce(visitor, -1)) AS visitors
FROM visits, range(1, 4) steps(i)
WHERE __ts <= (SELECT (max(ts) // 300000000 + 1) * 300000000 FROM visits)
GROUP BY ALL;
