"""Generated queries against the naive reference, however they are run."""
