-- ksqlDB, stream-stream LEFT JOIN with a grace of ten minutes before and after: as a relation, an
-- impression stands alone until a click is beside it, and again when that click is too old.
SELECT i.ad, i.campaign, c.ts AS clicked
FROM impressions [RANGE 10 MINUTES] i LEFT JOIN clicks [RANGE 10 MINUTES] c ON i.ad = c.ad;
