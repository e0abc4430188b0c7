"""Reading what is committed; nothing here changes anything."""
