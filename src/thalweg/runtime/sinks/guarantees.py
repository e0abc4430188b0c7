"""What a sink guarantees across crashes, by what INTO says: known without making the sink."""

from __future__ import annotations

from thalweg.errors import ConfigError
from thalweg.plan.bound_query import SinkSpec

CALLBACK = "at least once: after a crash the last epoch may come again"
FILE_FORMATS = ("parquet", "orc", "json", "csv", "avro", "text")
"""Formats of Spark that write folders."""
_OWN = {
    "console": "at least once: after a crash the last epoch may be printed again",
    "files": "exactly once: one file per epoch, there as a whole or not at all",
    "changelog": "exactly once: one file per epoch, there as a whole or not at all",
    "table": "exactly once: one file with the answer after the last epoch",
}


def guarantee_of(spec: SinkSpec) -> str:
    """In words; a sink that cannot be made is refused."""
    if spec.kind != "spark":
        return _OWN[spec.kind]
    if spec.target == "delta":
        return "exactly once: Delta ignores an epoch it has"
    if spec.target not in FILE_FORMATS:
        return f"at least once: {spec.target} cannot tell a repeated epoch"
    if "path" not in dict(spec.options):
        raise ConfigError(
            f"INTO SPARK '{spec.target}' needs a path",
            remedy="add OPTIONS (path = '/where/to')",
        )
    return "exactly once: a folder per epoch, replaced if written again"
