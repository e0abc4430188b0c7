SELECT (ts // 300000000 + i) * 300000000 AS __ts, word, count(*) AS n
FROM words, range(1, 3) steps(i)
WHERE __ts <= (SELECT (max(ts) // 300000000 + 1) * 300000000 FROM words)
GROUP BY ALL;
