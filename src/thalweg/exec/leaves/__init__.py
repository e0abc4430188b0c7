"""The inputs of a join, one kind per file: time windows, windows over the order of rows, tables and
their versions, subqueries. Each gives the rows that appear and vanish in an epoch, and the rows
with a key that are valid at an instant; beside them are the views of packs they read and references
to their rows."""
