"""Piecewise polynomials through the tuples of a batch, all keys at once, each within its bound.

One method per file; each finds the longest beginning of some points that one polynomial of its kind
honours. `runs` makes points of tuples, `pieces` cuts the attributes of a tuple together and is the
entry: `fitted`.
"""
