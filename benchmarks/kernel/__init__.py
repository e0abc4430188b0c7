"""The step on one core, beside DuckDB."""
