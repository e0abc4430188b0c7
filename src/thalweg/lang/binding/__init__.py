"""Syntax trees to logical plans, one clause of SELECT per file: names, types and windows are
resolved against the catalog, or refused with their place in the text."""
