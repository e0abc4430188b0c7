"""Invocation of queries that give an answer only when they are invoked."""
