"""Work shared by queries: cohorts, window stores, dormant groups."""
