"""Maintenance of stored files: merges, folds, retention, vacuum, and inspection."""
