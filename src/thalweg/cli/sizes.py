"""Numbers in words."""

from __future__ import annotations


def format_bytes(size: int) -> str:
    """Bytes in the unit that reads best.

    >>> format_bytes(0), format_bytes(1536), format_bytes(-(3 << 30))
    ('0 B', '1.5 KiB', '-3.0 GiB')
    """
    left, units = float(size), ["KiB", "MiB", "GiB", "TiB"]
    if abs(left) < 1024:
        return f"{size} B"
    while abs(left) >= 1024 and units:
        left /= 1024
        unit = units.pop(0)
    return f"{left:,.1f} {unit}"


def plural(count: int, word: str) -> str:
    """
    >>> plural(1, "file"), plural(2000, "file")
    ('1 file', '2,000 files')
    """
    return f"{count:,} {word}{'' if count == 1 else 's'}"
