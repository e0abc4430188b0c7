"""Guaranteed bounds of join sizes from statistics of the tables, without reading their rows."""
