-- Nexmark q1, currency conversion: every bid with its price in euros instead of dollars.
SELECT auction, bidder, 0.908 * price AS price, dateTime, extra FROM bid;
