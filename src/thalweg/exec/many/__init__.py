"""Many queries at once: what all of them ask of a slice of rows is asked together."""
