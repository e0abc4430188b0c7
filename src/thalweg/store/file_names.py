"""Names of queries and followers as names of files."""

from __future__ import annotations

from urllib.parse import quote

_HIDDEN = "._"
"""Names that begin so mean other folders, or are files that readers such as Spark skip."""


def file_name_of(name: str) -> str:
    """One path component that any file system takes and no reader hides; the same for one name, and
    others for others."""
    quoted = quote(name, safe="")
    return f"%{ord(quoted[0]):02X}{quoted[1:]}" if quoted[:1] in tuple(_HIDDEN) else quoted
