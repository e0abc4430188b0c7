"""Spark's and Flink's own joins over the rows of the join benchmarks."""
