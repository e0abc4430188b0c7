-- Nexmark q2, selection: the bids on a fixed sample of the auctions.
SELECT auction, price FROM bid WHERE auction % 123 = 0;
