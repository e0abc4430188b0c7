"""Text to bound statements: the SQL dialect, the catalog and the binder."""
