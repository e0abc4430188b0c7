"""The inputs of a join, one kind per file: time windows, windows over the order of rows, tables and
their versions, subqueries. Each says which rows appear and vanish in an epoch, and which rows
with a key are there at an instant; beside them are the views of packs they read and references
to their rows."""
