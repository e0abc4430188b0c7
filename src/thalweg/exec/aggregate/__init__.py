"""GROUP BY: the groups that changes of rows touch, revisions of their rows, and group state stored
as packs."""
