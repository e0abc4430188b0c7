"""One query with many parameters."""
