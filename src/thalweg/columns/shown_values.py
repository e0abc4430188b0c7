"""Values as people read them: rejects, and rows on a console."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def shown_values(values: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values as Python objects; dates and times beyond the years that Python knows as text."""
    try:
        found: list[Any] = values.to_pylist()
        return found
    except (OverflowError, ValueError):
        return [_shown(value) for value in values]


def _shown(value: pa.Scalar) -> Any:
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return _beyond_years(value)


def _beyond_years(value: pa.Scalar) -> str:
    if isinstance(value, pa.ListScalar):
        return "[" + ", ".join(str(_shown(v)) for v in value.values) + "]"
    if isinstance(value, pa.TimestampScalar):
        return str(value.cast(pa.string()))
    return f"{value.value} days since 1970"
