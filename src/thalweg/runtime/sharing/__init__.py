"""What queries have in common: cohorts, window stores, dormant groups."""
