"""What is merged, folded, forgotten and looked at."""
