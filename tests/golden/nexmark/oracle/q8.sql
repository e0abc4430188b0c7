SELECT DISTINCT (p.ts // 10000000 + 1) * 10000000 AS __ts, p.id, p.name
FROM person p JOIN auction a ON p.id = a.seller AND p.ts // 10000000 = a.ts // 10000000;
