"""Kinds of relations over segments: rows whose modeled columns are functions of time."""
