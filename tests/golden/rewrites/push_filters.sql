-- streamon #5: a filter sinks below [RANGE]
SELECT ISTREAM sym FROM trades [RANGE 5 SECONDS] WHERE price > 1;
istream
  project trades.sym as sym
    window [RANGE 5 s]
      filter {>(trades.price, 1.0)}
        scan trades as trades (sym, price, qty, ts)

-- streamon #5: a filter sinks below [NOW]
SELECT ISTREAM sym FROM trades [NOW] WHERE price > 1;
istream
  project trades.sym as sym
    window [NOW]
      filter {>(trades.price, 1.0)}
        scan trades as trades (sym, price, qty, ts)

-- streamon #5: a filter sinks below a sliding window
SELECT sym FROM trades [RANGE 5 SECONDS SLIDE 2 SECONDS] WHERE price > 1;
relation
  project trades.sym as sym
    window [RANGE 5 s SLIDE 2 s]
      filter {>(trades.price, 1.0)}
        scan trades as trades (sym, price, qty, ts)

-- streamon #5: a filter never sinks below [ROWS]
SELECT sym FROM trades [ROWS 3] WHERE price > 1;
relation
  project trades.sym as sym
    filter {>(trades.price, 1.0)}
      window [ROWS 3]
        scan trades as trades (sym, price, qty, ts)

-- streamon #5: nor below [PARTITION BY ... ROWS], even on the partition's own column
SELECT price FROM trades [PARTITION BY sym ROWS 2] WHERE sym = 'a';
relation
  project trades.price as price
    filter {=(trades.sym, 'a')}
      window [PARTITION BY trades.sym ROWS 2]
        scan trades as trades (sym, price, qty, ts)

-- predicates on one input sink into it, those on several stay with the join
SELECT t.sym, q.bid FROM trades [RANGE 5 SECONDS] t, quotes [RANGE 3 SECONDS] q
WHERE t.sym = q.sym AND t.price > 1 AND q.size < 5 AND t.qty <> q.size;
relation
  project t.sym as sym, q.bid as bid
    join on {=(t.sym, q.sym)} AND {<>(t.qty, q.size)}
      window [RANGE 5 s]
        filter {>(t.price, 1.0)}
          scan trades as t (sym, price, qty, ts)
      window [RANGE 3 s]
        filter {<(q.size, 5)}
          scan quotes as q (sym, bid, size, ts)

-- into a join, a filter stops above [ROWS] and passes [RANGE]
SELECT t.sym, q.bid FROM trades [ROWS 4] t, quotes [RANGE 3 SECONDS] q
WHERE t.sym = q.sym AND t.price > 1 AND q.bid > 0.5;
relation
  project t.sym as sym, q.bid as bid
    join on {=(t.sym, q.sym)}
      filter {>(t.price, 1.0)}
        window [ROWS 4]
          scan trades as t (sym, price, qty, ts)
      window [RANGE 3 s]
        filter {>(q.bid, 0.5)}
          scan quotes as q (sym, bid, size, ts)

-- a predicate that may raise stays above the join, its errors matter on whole rows only
SELECT t.sym FROM trades [RANGE 5 SECONDS] t, quotes [RANGE 3 SECONDS] q
WHERE t.sym = q.sym AND 10 / t.qty > 4 AND t.price > 1;
relation
  project t.sym as sym
    join on {=(t.sym, q.sym)} AND {>(/(10.0, cast(t.qty)), 4.0)}
      window [RANGE 5 s]
        filter {>(t.price, 1.0)}
          scan trades as t (sym, price, qty, ts)
      window [RANGE 3 s]
        scan quotes as q (sym, bid, size, ts)

-- but without a join it may sink
SELECT sym FROM trades [RANGE 5 SECONDS] WHERE 10 / qty > 4;
relation
  project trades.sym as sym
    window [RANGE 5 s]
      filter {>(/(10.0, cast(trades.qty)), 4.0)}
        scan trades as trades (sym, price, qty, ts)

-- a table is filtered before it is joined
SELECT t.sym FROM trades [NOW] t, companies c WHERE t.sym = c.sym AND c.sector = 'tech';
relation
  project t.sym as sym
    join on {=(t.sym, c.sym)}
      window [NOW]
        scan trades as t (sym, price, qty, ts)
      filter {=(c.sector, 'tech')}
        scan companies as c (sym, sector)

-- HAVING stays above the aggregate
SELECT sym, count(*) AS n FROM trades [RANGE 5 SECONDS] WHERE qty > 0 GROUP BY sym
HAVING count(*) > 1;
relation
  project trades.sym as sym, count(*) as n
    filter {>(count(*), 1)}
      group by trades.sym: count(*)
        window [RANGE 5 s]
          filter {>(trades.qty, 0)}
            scan trades as trades (sym, price, qty, ts)
