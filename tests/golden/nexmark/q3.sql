-- Nexmark q3, local item suggestion: who sells in category 10 from one of three states? A pair is
-- reported as soon as both its person and its auction are known, whichever comes second.
SELECT ISTREAM p.name, p.city, p.state, a.id
FROM auction a JOIN person p ON a.seller = p.id
WHERE a.category = 10 AND (p.state = 'OR' OR p.state = 'ID' OR p.state = 'CA')
WITH (unbounded = true);
