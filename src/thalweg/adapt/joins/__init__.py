"""Adaptive joins: in which order pipelines probe, and which subresults are worth keeping."""
