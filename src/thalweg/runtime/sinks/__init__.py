"""Where output goes after its commit."""
