"""Caches of partial joins: a direct-mapped cache by key, how pipelines read and fill it, and where
it is kept between epochs."""
