"""Column values as integers in the order of their comparison, and constants as ranges of them.

Every type that a condition may be about is mapped by a function `r` that keeps order,
x < y => r(x) < r(y), and equal values, x = y => r(x) = r(y). A condition over values is then one
over integers. Doubles compare as in Spark: -0.0 = 0.0, NaN = NaN, and NaN is above all others.
Texts are ranked within their own column; the texts of the ranks that matter are kept beside them.
"""

from __future__ import annotations

import math
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Array = npt.NDArray[Any]
LEAST, MOST = -(2**63), 2**63 - 1
_EXACT = 2**53


class Order(Enum):
    """How the values of a column are mapped to integers."""

    INTEGER = "integer"
    DOUBLE = "double"
    TEXT = "text"


def order_of(kind: pa.DataType) -> Order | None:
    """The order of a type; None for types that no statistics of conditions are kept of."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return Order.TEXT
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return Order.DOUBLE
    whole = pa.types.is_signed_integer(kind) or pa.types.is_date32(kind)
    whole = whole or pa.types.is_boolean(kind)
    whole = whole or (pa.types.is_timestamp(kind) and kind.unit != "ns")
    return Order.INTEGER if whole else None


def integers_of(column: pa.Array) -> Array:
    """r(x) of every row of a column that is no text; rows with NULL get any number.

    Timestamps are microseconds and dates are days, as the constants of conditions are.
    """
    kind = column.type
    if order_of(kind) is Order.DOUBLE:
        return _double_ranks(pc.fill_null(column, 0.0).to_numpy(zero_copy_only=False))
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    filled = pc.fill_null(column, False if pa.types.is_boolean(kind) else 0)
    ranks: Array = filled.to_numpy(zero_copy_only=False).astype(np.int64)
    return ranks


def _double_ranks(values: Array) -> Array:
    one = values.astype(np.float64) + 0.0
    one[np.isnan(one)] = np.nan
    bits = one.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(MOST), bits)


def ranked_texts(column: pa.Array) -> tuple[Array, list[str]]:
    """The rank of every row among the column's different texts, and these in their order.

    Python orders texts by code point, which is the order of their UTF-8 bytes and Spark's.
    """
    encoded = column.dictionary_encode()
    texts: list[str] = encoded.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    rank = np.empty(len(texts), np.int64)
    rank[order] = np.arange(len(texts))
    indices = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
    ranks = rank[indices] if texts else np.zeros(len(column), np.int64)
    return ranks, [texts[i] for i in order]


def least_from(order: Order, constant: Any) -> int:
    """An integer l such that x >= constant implies r(x) >= l: LEAST if nothing follows."""
    found = _around(order, constant)
    return LEAST if found is None else found[1]


def most_until(order: Order, constant: Any) -> int:
    """An integer u such that x <= constant implies r(x) <= u: MOST if nothing follows."""
    found = _around(order, constant)
    return MOST if found is None else found[0]


def exactly(order: Order, constant: Any) -> int | None:
    """r(constant) where only equal values have it, else None."""
    found = _around(order, constant)
    return found[0] if found is not None and found[0] == found[1] else None


def is_comparable(order: Order, constant: Any) -> bool:
    """Whether anything may be concluded from a comparison with this constant."""
    return _around(order, constant) is not None


def _around(order: Order, constant: Any) -> tuple[int, int] | None:
    """(u, l): what is at most the constant is at most u, what is at least it at least l.

    None where the comparison converts the column in a way that may round, as two values that
    differ can then compare as equal, and for numbers beyond 64 bits: nothing is concluded.
    """
    if order is Order.TEXT or not isinstance(constant, (int, float, Decimal)):
        return None
    return _around_double(constant) if order is Order.DOUBLE else _around_integer(constant)


def _around_integer(constant: Any) -> tuple[int, int] | None:
    if isinstance(constant, int):
        whole = int(constant)
        return (whole, whole) if LEAST <= whole <= MOST else None
    if not math.isfinite(constant) or abs(constant) >= _EXACT:
        return None
    return math.floor(constant), math.ceil(constant)


def _around_double(constant: Any) -> tuple[int, int] | None:
    value = float(constant)
    if not math.isnan(value) and value != constant:
        return None
    rank = int(_double_ranks(np.array([value]))[0])
    return rank, rank
