"""Kinds of relations, one per file: values of a plan, and what planning asks of them."""
