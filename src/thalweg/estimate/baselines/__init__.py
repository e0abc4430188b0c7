"""Estimates of the size of a join, to compare bounds with: none of them is a guarantee."""
