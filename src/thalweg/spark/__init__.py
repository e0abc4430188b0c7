"""The shell around the core: the only place that knows Spark."""
