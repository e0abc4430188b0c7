"""Checksums of files, written with them and verified before anything in them is believed.

A table's file ends with sixteen bytes: a mark and the checksum of all before it. A JSON file has
two lines: a value, and the checksum of the line before. Files of earlier formats have neither.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np

from thalweg.store import native

MARK = b"THALSEAL"
SIZE = 16
"""Bytes of the seal of a table's file."""
_ENDINGS = (b"ARROW1", b"PAR1")
"""How files of tables without a seal end."""


class Broken(ValueError):
    """What a checksum stands for has changed."""


def seal_of(data: Any) -> bytes:
    """The seal that follows the bytes of a table's file."""
    return MARK + _checksum(np.frombuffer(data, np.uint8)).to_bytes(8, "little")


def sealed_size(data: Any) -> int:
    """How many bytes of a table's file are its table; `Broken` if the seal says that some have
    changed."""
    whole = np.frombuffer(data, np.uint8)
    if bytes(whole[-SIZE:-8]) != MARK:
        if bytes(whole[-8:]).endswith(_ENDINGS):
            return len(whole)
        raise Broken("its end is not what was written")
    if _checksum(whole[:-SIZE]) != int.from_bytes(bytes(whole[-8:]), "little"):
        raise Broken("its content is not what was written")
    return len(whole) - SIZE


def _checksum(data: np.ndarray[Any, Any]) -> int:
    whole = len(data) - len(data) % 8
    rest = int.from_bytes(bytes(data[whole:]), "little")
    words = data[:whole].view(np.uint64)
    return int(native.checksum(words, np.uint64(rest), np.uint64(len(data))))


def sealed_json(value: Any) -> bytes:
    """A value as a JSON file."""
    line = json.dumps(value).encode()
    return line + b"\n" + json.dumps({"crc32": zlib.crc32(line)}).encode() + b"\n"


def read_json(data: bytes) -> Any:
    """The value of a JSON file; `Broken` if it has changed."""
    line, *rest = data.split(b"\n", 1)
    try:
        value = json.loads(line)
        if rest and json.loads(rest[0])["crc32"] != zlib.crc32(line):
            raise Broken("its content is not what was written")
    except (ValueError, LookupError, TypeError) as error:
        raise error if isinstance(error, Broken) else Broken("it cannot be read") from error
    return value
