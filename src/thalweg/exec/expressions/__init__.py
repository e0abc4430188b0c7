"""Evaluation of bound expressions over columns: the evaluator, constant folding, and the kernels of
the built-in functions."""
