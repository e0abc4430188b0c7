"""Single operators against Spark's own."""
