"""Conditions that allow a set of values of a join column, as buckets of keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.estimate.cached.key_columns import KeyColumn, buckets_of
from thalweg.estimate.join_query import Condition
from thalweg.store.hashing import hash_column

Array = npt.NDArray[Any]
_CONSTANTS = {
    "integer": (pa.int64(), int),
    "timestamp": (pa.int64(), int),
    "timestamp with time zone": (pa.int64(), int),
    "date32[day]": (pa.int64(), int),
    "string": (pa.string(), str),
}
"""How constants of a family are hashed, and their type in a condition."""


def allowed_buckets(
    conditions: Iterable[Condition], keys: Mapping[str, KeyColumn], bits: Mapping[str, int]
) -> dict[str, Array]:
    """Which buckets the conditions allow, of those join columns that they say something of."""
    found: dict[str, Array] = {}
    for condition in conditions:
        name = condition.column
        hashes = _hashes(keys[name], condition) if name in keys else None
        if hashes is not None:
            allowed = np.zeros(1 << bits[name], np.bool_)
            allowed[buckets_of(hashes, bits[name])] = True
            found[name] = found[name] & allowed if name in found else allowed
    return found


def most_rows(conditions: Iterable[Condition], keys: Mapping[str, KeyColumn]) -> list[float]:
    """For each set of keys, how many rows can have one of them."""
    told = [c for c in conditions if c.column in keys and _is_told(keys[c.column], c)]
    return [float(keys[c.column].most * len(set(c.values or ()))) for c in told]


def _is_told(key: KeyColumn, condition: Condition) -> bool:
    """Whether each constant of a set is one key: not so if a comparison converts the column."""
    if condition.values is None or key.family not in _CONSTANTS:
        return False
    return all(type(v) is _CONSTANTS[key.family][1] for v in condition.values)


def _hashes(key: KeyColumn, condition: Condition) -> Array | None:
    """Those of the keys that a set of values allows; None if they cannot be told."""
    if not _is_told(key, condition):
        return None
    try:
        return hash_column(pa.array(condition.values, _CONSTANTS[key.family][0]))
    except (pa.ArrowInvalid, OverflowError):
        return None
