"""Bound sketches: counts and largest degrees per combination of hash buckets."""
