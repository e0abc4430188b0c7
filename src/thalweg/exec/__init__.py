"""Vectorised operators and `step`: pure functions over columns, no Spark."""
