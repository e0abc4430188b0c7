"""Numbers: exact sums, and extremes over sliding spans."""
