"""Queries that are run, kept or made to rest together."""
