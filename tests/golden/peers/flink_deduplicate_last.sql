-- Flink SQL, deduplication, last row kept: the latest try of each request, corrected with every
-- retry that says something else.
SELECT id, body FROM requests [PARTITION BY id ROWS 1];
