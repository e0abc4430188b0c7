"""From rows as they are given to packs in the log."""
