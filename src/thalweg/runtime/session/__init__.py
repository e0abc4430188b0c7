"""The surface: names, statements, handles of queries."""
