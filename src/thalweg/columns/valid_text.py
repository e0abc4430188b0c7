"""Whether text is UTF-8. Rows are checked when they are taken in, bytes that are cast when used."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]


def not_utf8(values: pa.Array) -> Mask | None:
    """Which values, bytes or text, are no UTF-8; None if all are. Arrow decides for all at once,
    and only where it finds one are values looked at one by one."""
    try:
        values.view(pa.string()).validate(full=True)
        return None
    except pa.ArrowInvalid:
        return np.array([not _is_utf8(v) for v in values.view(pa.binary()).to_pylist()], np.bool_)


def readable(values: pa.Array) -> pa.Array:
    """Text with bytes that are no UTF-8 written as escapes, for people."""
    raw = values.view(pa.binary()).to_pylist()
    decoded = [v if v is None else v.decode(errors="backslashreplace") for v in raw]
    return pa.array(decoded, pa.string())


def _is_utf8(value: bytes | None) -> bool:
    if value is None:
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
