"""Small stand-ins for many rows: each file one synopsis, with what it promises."""
