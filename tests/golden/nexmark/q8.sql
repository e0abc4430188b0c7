-- Nexmark q8, monitor new users: at the end of every 10 seconds, who registered in them and opened
-- an auction in them, too.
SELECT RSTREAM DISTINCT p.id, p.name
FROM person [RANGE 10 SECONDS SLIDE 10 SECONDS] p
JOIN auction [RANGE 10 SECONDS SLIDE 10 SECONDS] a ON p.id = a.seller;
