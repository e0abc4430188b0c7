"""Immutable packs, the log, manifests: everything an engine keeps under its path."""
