"""Adaptive ordering of commutative predicates: A-Greedy, its variants, and what they stand on."""
