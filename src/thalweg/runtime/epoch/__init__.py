"""The order of an epoch: rows in, time forward, queries run, one commit."""
