SELECT ts AS __ts, auction, price FROM bid WHERE auction % 123 = 0;
