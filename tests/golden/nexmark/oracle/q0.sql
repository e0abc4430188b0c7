SELECT ts AS __ts, auction, bidder, price, dateTime, extra FROM bid;
