"""GROUP BY: the groups that changes of rows touch, revisions of their rows, and the state of
groups, kept as packs."""
