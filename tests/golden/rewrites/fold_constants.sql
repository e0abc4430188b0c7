-- arithmetic on literals
SELECT sym FROM trades WHERE price > 1 + 0.5 * 2;
istream
  project trades.sym as sym
    filter {>(trades.price, 2.0)}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- a predicate that is always true disappears, and the filter with it
SELECT sym FROM trades WHERE 1 = 1;
istream
  project trades.sym as sym
    window [UNBOUNDED]
      scan trades as trades (sym, price, qty, ts)

-- of several only the true one disappears
SELECT sym FROM trades WHERE 1 < 2 AND price > 1;
istream
  project trades.sym as sym
    filter {>(trades.price, 1.0)}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- literals of the wrong type are cast once
SELECT sym FROM trades WHERE price > 1;
istream
  project trades.sym as sym
    filter {>(trades.price, 1.0)}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- a constant that raises stays: it must still reject the rows it meets
SELECT sym, price FROM trades WHERE price > 3 OR 1 / 0 = 1 OR price <= 3;
istream
  project trades.sym as sym, trades.price as price
    filter {or(or(>(trades.price, 3.0), =(/(1.0, 0.0), 1.0)), <=(trades.price, 3.0))}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- constants in the output
SELECT sym, 1 + 2 AS three, upper('x') AS x FROM trades;
istream
  project trades.sym as sym, 3 as three, 'X' as x
    window [UNBOUNDED]
      scan trades as trades (sym, price, qty, ts)

-- inside aggregates
SELECT sum(qty * (1 + 1)) AS s FROM trades [RANGE 5 SECONDS];
relation
  project sum((trades.qty * CAST((1 + 1) AS BIGINT))) as s
    group by everything: sum(*(trades.qty, 2))
      window [RANGE 5 s]
        scan trades as trades (sym, price, qty, ts)

-- a column stops the folding
SELECT sym FROM trades WHERE price + 1 > 1 + 1;
istream
  project trades.sym as sym
    filter {>(+(trades.price, 1.0), 2.0)}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)
