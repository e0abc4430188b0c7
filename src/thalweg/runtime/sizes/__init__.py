"""Sizes of joins: over the rows that live, from statistics, and as measured."""
