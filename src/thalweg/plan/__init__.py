"""Bound queries and plans as values: types, expressions, the logical algebra and its rewrites, the
planner, physical plans, EXPLAIN. Nothing here reads a row."""
