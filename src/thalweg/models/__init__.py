"""Streams as polynomials: queries that are solved as equations in time."""
