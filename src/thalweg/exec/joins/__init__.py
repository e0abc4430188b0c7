"""The n-way join: pipelines that drop early and enumerate late."""
