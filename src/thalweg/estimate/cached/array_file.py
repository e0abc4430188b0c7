"""Arrays and a few plain values as one run of bytes: a JSON header, then the arrays as they are.

No part of it is code, so bytes from anywhere may be read; what does not fit is refused.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_MAGIC = b"THWSTAT1"
_TYPES = {"u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f8"}


class UnreadableStatistics(ValueError):
    """Bytes that are no statistics, or of another version of this format."""


@dataclass(slots=True)
class ArrayWriter:
    """Collects arrays; `put` returns what stands for an array in the header."""

    parts: list[bytes] = field(default_factory=list)
    length: int = 0

    def put(self, array: Array) -> list[Any]:
        """Integers are kept in the narrowest type that holds them, and read as `dtype` again."""
        narrow = _narrowed(array)
        data = np.ascontiguousarray(narrow).tobytes()
        place = [narrow.dtype.str[1:], array.dtype.str[1:], list(array.shape), self.length]
        self.parts.append(data)
        self.length += len(data)
        return place

    def bytes(self, header: dict[str, Any]) -> bytes:
        text = json.dumps(header, separators=(",", ":")).encode()
        return b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *self.parts])


def _narrowed(array: Array) -> Array:
    if array.dtype.kind not in "iu" or not array.size:
        return array
    for kind in ("u1", "u2", "u4", "i1", "i2", "i4"):
        info = np.iinfo(kind)
        if info.min <= int(array.min()) and int(array.max()) <= info.max:
            return array.astype(kind)
    return array


class ArrayReader:
    """Gives the header, and the array for what stands in it."""

    def __init__(self, data: bytes) -> None:
        if data[: len(_MAGIC)] != _MAGIC:
            raise UnreadableStatistics("these bytes are no table statistics of this version")
        start = len(_MAGIC) + 8
        end = start + int.from_bytes(data[len(_MAGIC) : start], "little")
        try:
            self.header: dict[str, Any] = json.loads(data[start:end])
        except ValueError as error:
            raise UnreadableStatistics("the header of these table statistics is cut") from error
        self._data = memoryview(data)[end:]

    def get(self, place: list[Any]) -> Array:
        kept, shown, shape, at = place
        if kept not in _TYPES or shown not in _TYPES:
            raise UnreadableStatistics(f"an array of unknown type {kept!r}")
        size = math.prod(shape) * np.dtype(kept).itemsize
        if at < 0 or at + size > len(self._data):
            raise UnreadableStatistics("these table statistics end too early")
        found = np.frombuffer(self._data[at : at + size], np.dtype(kept).newbyteorder("<"))
        return found.reshape(shape).astype(shown)
