"""What is passed between the inputs of a join: rows per key bucket, and per key.

Of a part of a join, and keys over one or several attributes, a message has for each hash bucket i
an upper bound `rows[i]` of the results whose key is in i, one `degree[i]` of those that share one
key of i, and one `total` of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Message:
    rows: Array
    degree: Array
    total: float

    @staticmethod
    def of(rows: Array, degree: Array, total: float) -> Message:
        """`degree` and `total` cut to what `rows` allows."""
        return Message(rows, np.minimum(degree, rows), min(total, float(rows.sum())))

    @cached_property
    def most(self) -> float:
        """The most results that share one key."""
        return min(float(self.degree.max(initial=0.0)), self.total)


def combined(messages: Sequence[Message]) -> Message:
    """The join of parts that meet in this key and nothing else.

    Let x_k and y_k be the results of two parts with key k. The join has sum of x_k y_k over the
    keys of a bucket, at most (sum of x_k) max y_k and at most (sum of y_k) max x_k; a single key
    has at most max x_k max y_k. The same holds of the whole instead of a bucket.
    """
    return reduce(_both, messages)


def combined_total(messages: Sequence[Message]) -> float:
    """Only the total of `combined`."""
    *first, last = messages
    one = combined(first)
    return min(float(_least_rows(one, last).sum()), _least_total(one, last))


def _both(one: Message, other: Message) -> Message:
    degree = one.degree * other.degree
    return Message.of(_least_rows(one, other), degree, _least_total(one, other))


def _least_rows(one: Message, other: Message) -> Array:
    rows: Array = one.rows * other.degree
    np.minimum(rows, other.rows * one.degree, out=rows)
    return rows


def _least_total(one: Message, other: Message) -> float:
    return min(one.total * other.most, other.total * one.most)


def coarsened(values: Array, bits: int, *, add: bool) -> Array:
    """Numbers per bucket over fewer buckets: those of the merged ones added, or the largest."""
    if len(values) == 1 << bits:
        return values
    parts = values.reshape(1 << bits, -1)
    return parts.sum(axis=1) if add else parts.max(axis=1)  # type: ignore[no-any-return]


def at_bits(values: Array, bits: int, *, add: bool) -> Array:
    """The same over any number of buckets: a bound of a bucket bounds each of its parts."""
    more = bits - (len(values).bit_length() - 1)
    return np.repeat(values, 1 << more) if more > 0 else coarsened(values, bits, add=add)
