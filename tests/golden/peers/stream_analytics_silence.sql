-- Azure Stream Analytics, absence of events: the sensors that have been silent for three minutes,
-- but not yet for twenty, told when the three minutes are over.
SELECT ISTREAM sensor FROM readings [RANGE 20 MINUTES]
EXCEPT
SELECT sensor FROM readings [RANGE 3 MINUTES];
