"""Queries that answer when they are invoked."""
