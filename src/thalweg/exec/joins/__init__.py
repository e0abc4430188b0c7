"""The n-way join: pipelines that look rows up leaf by leaf, drop those without a partner early, and
enumerate the results at the end."""
