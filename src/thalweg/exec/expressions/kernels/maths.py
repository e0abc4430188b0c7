"""Functions on numbers, with Java's results at the edges of the range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.columns.vector import OVERFLOW, Vector
from thalweg.exec.expressions.kernels.registry import Outcome, failing, nullable, strict
from thalweg.plan.expr import Call

_PLAIN: dict[str, Callable[[Any], Any]] = {
    "sqrt": np.sqrt,
    "cbrt": np.cbrt,
    "exp": np.exp,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "atan": np.arctan,
    "degrees": np.degrees,
    "radians": np.radians,
    "sign": lambda x: np.where(x == 0, x, np.sign(x)),  # keeps -0.0
}


@strict(*_PLAIN)
def _plain(call: Call, x: Any) -> Any:
    return _PLAIN[call.function](x)


_LOGARITHMS: dict[str, Callable[[Any], Any]] = {
    "ln": np.log,
    "log10": np.log10,
    "log2": np.log2,
}


@strict(*_LOGARITHMS)
def _logarithm(call: Call, x: Any) -> Any:
    return Outcome(_LOGARITHMS[call.function](x), valid=~(x <= 0))


@strict("log")
def _log_to_base(call: Call, base: Any, x: Any) -> Any:
    return Outcome(np.log(x) / np.log(base), valid=~(base <= 0) & ~(x <= 0))


def _side_by_side(x: Any, y: Any) -> tuple[Any, Any]:
    """Both operands with a value for each row: NumPy's loops for a constant beside rows round
    otherwise in the last digit than those for two columns."""
    x, y = np.broadcast_arrays(x, y)
    return x.copy(), y.copy()


@strict("power")
def _power(call: Call, x: Any, y: Any) -> Any:
    found = np.power(*_side_by_side(x, y))
    # IEEE gives 1 for both, Java gives NaN.
    undefined = np.isnan(y) | ((np.abs(x) == 1) & np.isinf(y))
    return np.where(undefined, np.nan, found)


@strict("atan2")
def _atan2(call: Call, y: Any, x: Any) -> Any:
    return np.arctan2(*_side_by_side(y + 0.0, x + 0.0))


@nullable("isnan")
def _is_nan(call: Call, x: Vector) -> Outcome:
    found = np.isnan(x.data)
    return Outcome(found if x.valid is None else found & x.valid)


def saturated(x: Any) -> Any:
    """DOUBLE to BIGINT as in a Java cast: NaN becomes 0, values beyond the range its end."""
    inside = np.abs(x) < 2.0**63
    ends = np.where(x > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
    found = np.where(inside, x, 0).astype(np.int64)
    return np.where(inside | np.isnan(x), found, ends)


def _whole(x: Any) -> Outcome:
    beyond = (x >= 2.0**63) | (x < -(2.0**63))  # NaN passes as 0
    return Outcome(saturated(x), failing(beyond, OVERFLOW))


@strict("ceil")
def _ceil(call: Call, x: Any) -> Any:
    return _whole(np.ceil(x))


@strict("floor")
def _floor(call: Call, x: Any) -> Any:
    return _whole(np.floor(x))


@strict("round")
def _round(call: Call, x: Any, places: Any) -> Any:
    digits = int(places[0])
    if x.dtype.kind == "f":
        return round_half_up(x.astype(np.float64), digits).astype(x.dtype)
    return x if digits >= 0 else _round_integer(x, -digits)


def round_half_up(x: Any, digits: int) -> Any:
    """Round the shortest decimal that reads back as x, as Spark does: 2.675 becomes 2.68.

    The tie above k is a quotient of two exact doubles, so comparing x with it compares decimals.
    """
    if digits > 22 or digits < -308:
        return x if digits > 0 else np.where(np.isfinite(x), 0.0, x)
    size = np.abs(x)
    unit = 10.0 ** abs(digits)
    below = np.floor(size * unit if digits >= 0 else size / unit)
    twice = 2.0 * below + 1.0
    tie = twice / (2.0 * unit) if digits >= 0 else twice * (unit / 2.0)
    count = np.where(size >= tie, below + 1.0, below)
    found = count / unit if digits >= 0 else count * unit
    settled = ~np.isfinite(x) | (below >= 2.0**52)  # no digits left to drop
    return np.where(settled, x, np.where(x < 0, 0.0 - found, found))


def _round_integer(x: Any, zeros: int) -> Outcome:
    if zeros > 19:
        return Outcome(np.zeros_like(x))
    unit = 10**zeros
    info = np.iinfo(x.dtype)
    size = np.where(x < 0, np.uint64(0) - x.astype(np.int64).view(np.uint64), x.astype(np.uint64))
    count = size // np.uint64(unit)
    up = size % np.uint64(unit) >= np.uint64(unit // 2)
    count = count + up.astype(np.uint64)
    limit = np.where(x < 0, np.uint64(-int(info.min)), np.uint64(info.max))
    beyond = count > limit // np.uint64(unit)
    found = (count * np.uint64(unit)).view(np.int64)
    return Outcome(np.where(x < 0, -found, found).astype(x.dtype), failing(beyond, OVERFLOW))
