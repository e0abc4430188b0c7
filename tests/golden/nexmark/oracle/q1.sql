SELECT ts AS __ts, auction, bidder, 0.908::DOUBLE * price, dateTime, extra FROM bid;
