"""Predicates ordered while they run, against fixed orders and Spark."""
