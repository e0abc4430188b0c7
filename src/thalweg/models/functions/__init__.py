"""Expressions and conditions over columns that are functions of time."""
