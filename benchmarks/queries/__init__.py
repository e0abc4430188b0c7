"""Many queries at once, ad-hoc queries over the past, and invocations."""
