-- Nexmark q0, pass through: every bid as it is, at its own time.
SELECT auction, bidder, price, dateTime, extra FROM bid;
