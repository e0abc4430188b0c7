-- the example of the language page, shortened
SELECT ISTREAM t.sym, t.price, avg(u.price) AS mean
FROM trades [NOW] t, trades [RANGE 5 SECONDS] u, companies c
WHERE t.sym = u.sym AND t.sym = c.sym AND c.sector = 'tech' AND 2 > 1 AND u.qty BETWEEN 0 + 1 AND 3
GROUP BY t.sym, t.price HAVING t.price > 1.05 * avg(u.price);
istream
  project t.sym as sym, t.price as price, avg(u.price) as mean
    filter {>(t.price, *(1.05, avg(u.price)))}
      group by t.sym, t.price: avg(u.price)
        join on {=(t.sym, u.sym)} AND {=(t.sym, c.sym)}
          window [NOW]
            scan trades as t (sym, price)
          window [RANGE 5 s]
            filter {>=(u.qty, 1)} AND {<=(u.qty, 3)}
              scan trades as u (sym, price, qty)
          filter {=(c.sector, 'tech')}
            scan companies as c (sym, sector)

-- streamon #5: a split part sinks below [RANGE] on its own
SELECT t.sym, q.bid FROM trades [RANGE 5 SECONDS] t, quotes [ROWS 5] q
WHERE t.sym = q.sym AND (t.price > 1 AND q.bid BETWEEN 0.5 AND 2 * 2);
relation
  project t.sym as sym, q.bid as bid
    join on {=(t.sym, q.sym)}
      window [RANGE 5 s]
        filter {>(t.price, 1.0)}
          scan trades as t (sym, price)
      filter {>=(q.bid, 0.5)} AND {<=(q.bid, 4.0)}
        window [ROWS 5]
          scan quotes as q (sym, bid)

-- streamon #5: folding leaves nothing to filter above [ROWS]
SELECT RSTREAM sym FROM trades [ROWS 3] WHERE 1 + 1 = 2;
rstream
  project trades.sym as sym
    window [ROWS 3]
      scan trades as trades (sym)
