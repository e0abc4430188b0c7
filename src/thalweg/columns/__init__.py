"""Columns in memory: vectors, frames, runs of equal keys, sort codes."""
