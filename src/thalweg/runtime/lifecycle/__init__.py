"""How queries, views and tables begin, change and end."""
