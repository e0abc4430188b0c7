-- only what is read is scanned
SELECT sym FROM trades WHERE price > 1;
istream
  project trades.sym as sym
    filter {>(trades.price, 1.0)}
      window [UNBOUNDED]
        scan trades as trades (sym, price)

-- a row window needs its partition columns, whether shown or not
SELECT price FROM trades [PARTITION BY sym ROWS 2];
relation
  project trades.price as price
    window [PARTITION BY trades.sym ROWS 2]
      scan trades as trades (sym, price)

-- join keys and residuals count as read
SELECT t.price FROM trades [NOW] t, quotes [NOW] q WHERE t.sym = q.sym AND t.qty < q.size;
relation
  project t.price as price
    filter {=(t.sym, q.sym)} AND {<(t.qty, q.size)}
      join
        window [NOW]
          scan trades as t (sym, price, qty)
        window [NOW]
          scan quotes as q (sym, size)

-- nothing at all may be read
SELECT count(*) AS n FROM trades [RANGE 5 SECONDS];
relation
  project count(*) as n
    group by everything: count(*)
      window [RANGE 5 s]
        scan trades as trades ()

-- group keys, aggregates and HAVING read
SELECT sym, max(price) AS p FROM trades [RANGE 5 SECONDS] GROUP BY sym HAVING sum(qty) > 3;
relation
  project trades.sym as sym, max(trades.price) as p
    filter {>(sum(trades.qty), 3)}
      group by trades.sym: max(trades.price), sum(trades.qty)
        window [RANGE 5 s]
          scan trades as trades (sym, price, qty)

-- a star reads everything
SELECT * FROM trades;
istream
  project trades.sym as sym, trades.price as price, trades.qty as qty, trades.ts as ts
    window [UNBOUNDED]
      scan trades as trades (sym, price, qty, ts)
