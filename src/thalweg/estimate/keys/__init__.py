"""Keys of joins as small integers, made of the one normalised hash."""
