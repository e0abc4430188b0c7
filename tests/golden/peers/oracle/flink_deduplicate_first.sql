SELECT ts AS __ts, id, body FROM requests
QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts) = 1;
