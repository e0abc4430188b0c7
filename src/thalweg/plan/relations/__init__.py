"""Kinds of relations, one per file: values of a plan, and the operations that planning needs of
them."""
