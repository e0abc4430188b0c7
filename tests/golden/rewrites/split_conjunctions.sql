-- the binder leaves an AND only inside an expression such as BETWEEN
SELECT sym FROM trades WHERE price BETWEEN 1 AND 3;
istream
  project trades.sym as sym
    filter {>=(trades.price, 1.0)} AND {<=(trades.price, 3.0)}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- both parts keep the place and text of the whole, so rejects carry one name
SELECT sym FROM trades WHERE 10 / qty BETWEEN 1 AND 8;
istream
  project trades.sym as sym
    filter {>=(/(10.0, cast(trades.qty)), 1.0)} AND {<=(/(10.0, cast(trades.qty)), 8.0)}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- an AND below an OR is no conjunct
SELECT sym FROM trades WHERE (price > 1 AND qty > 1) OR sym = 'a';
istream
  project trades.sym as sym
    filter {or(and(>(trades.price, 1.0), >(trades.qty, 1)), =(trades.sym, 'a'))}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- nor is one below a NOT
SELECT sym FROM trades WHERE NOT (price > 1 AND qty > 1);
istream
  project trades.sym as sym
    filter {not(and(>(trades.price, 1.0), >(trades.qty, 1)))}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- conditions written as one are many
SELECT sym FROM trades WHERE price > 0.5 AND (qty > 0 AND (sym = 'a' AND qty < 10));
istream
  project trades.sym as sym
    filter {>(trades.price, 0.5)} AND {>(trades.qty, 0)} AND {=(trades.sym, 'a')} AND {<(trades.qty, 10)}
      window [UNBOUNDED]
        scan trades as trades (sym, price, qty, ts)

-- HAVING is split as well
SELECT sym, count(*) AS n FROM trades [RANGE 9 SECONDS] GROUP BY sym
HAVING count(*) BETWEEN 1 AND 3;
relation
  project trades.sym as sym, count(*) as n
    filter {>=(count(*), 1)} AND {<=(count(*), 3)}
      group by trades.sym: count(*)
        window [RANGE 9 s]
          scan trades as trades (sym, price, qty, ts)
