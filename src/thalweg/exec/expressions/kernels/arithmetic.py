"""Arithmetic with overflow detected per row.

Integer kernels first check the extremes of both sides; rows are checked one by one only if the
result of the extremes leaves the type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thalweg.columns.vector import DIVISION_BY_ZERO, OVERFLOW, Mask
from thalweg.exec.expressions.kernels.registry import Outcome, failing, first_error, strict
from thalweg.plan.expr import Call
from thalweg.plan.types import INTERVAL


def _extremes(x: Any) -> tuple[int, int]:
    return (int(x.min()), int(x.max())) if len(x) else (0, 0)


def _fits(x: Any, y: Any, operation: Callable[[int, int], int]) -> bool:
    """Whether no pair of values can leave the type; true for monotone and bilinear operations."""
    info = np.iinfo(x.dtype)
    corners = [operation(a, b) for a in _extremes(x) for b in _extremes(y)]
    return info.min <= min(corners) and max(corners) <= info.max


@strict("+")
def _plus(call: Call, x: Any, y: Any) -> Any:
    found = x + y
    if x.dtype.kind == "f" or _fits(x, y, lambda a, b: a + b):
        return found
    return Outcome(found, failing(((x ^ found) & (y ^ found)) < 0, OVERFLOW))


@strict("-")
def _minus(call: Call, x: Any, y: Any) -> Any:
    found = x - y
    if x.dtype.kind == "f" or _fits(x, y, lambda a, b: a - b):
        return found
    return Outcome(found, failing(((x ^ y) & (x ^ found)) < 0, OVERFLOW))


@strict("*")
def _times(call: Call, x: Any, y: Any) -> Any:
    if y.dtype.kind == "f" and call.type == INTERVAL:
        return _rounded(x * y)
    found = x * y
    if x.dtype.kind == "f" or _fits(x, y, lambda a, b: a * b):
        return found
    return Outcome(found, failing(_product_overflows(x, y, found), OVERFLOW))


def _product_overflows(x: Any, y: Any, found: Any) -> Mask:
    if found.dtype.itemsize < 8:
        return np.asarray(x.astype(np.int64) * y != found)
    lowest = np.iinfo(np.int64).min
    divisor = np.where((y == 0) | (y == -1), 1, y)
    wrong = (found // divisor != x) | (found % divisor != 0)
    wrong = np.where(y == -1, x == lowest, wrong)
    return np.asarray(wrong & (y != 0))


def _rounded(x: Any) -> Outcome:
    """Half up to whole microseconds."""
    found = np.copysign(np.floor(np.abs(x) + 0.5), x)
    beyond = ~(np.abs(found) < 2.0**63)
    return Outcome(np.where(beyond, 0, found).astype(np.int64), failing(beyond, OVERFLOW))


@strict("/")
def _divide(call: Call, x: Any, y: Any) -> Any:
    zero = y == 0
    errors = failing(zero, DIVISION_BY_ZERO)
    if call.type != INTERVAL:
        return Outcome(x / y, errors)
    outcome = _rounded(x / np.where(zero, 1, y)) if y.dtype.kind == "f" else _halved_up(x, y)
    return Outcome(outcome.data, first_error([errors, outcome.errors]))


def _halved_up(x: Any, y: Any) -> Outcome:
    """Whole division that rounds half away from zero, without passing through DOUBLE."""
    divisor = np.where(y == 0, 1, y)
    quotient, rest = _truncated(x, divisor)
    up = np.abs(rest).astype(np.uint64) * np.uint64(2) >= np.abs(divisor).astype(np.uint64)
    away = np.where((x < 0) != (divisor < 0), -1, 1)
    beyond = (x == np.iinfo(np.int64).min) & (divisor == -1)
    return Outcome(quotient + np.where(up, away, 0), failing(beyond, OVERFLOW))


def _truncated(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient and remainder as in Java: towards zero; `y` is not 0."""
    rest = np.fmod(x, np.where(y == -1, 1, y))
    return (x - rest) // y, rest


@strict("div")
def _whole_division(call: Call, x: Any, y: Any) -> Any:
    zero = y == 0
    beyond = (x == np.iinfo(np.int64).min) & (y == -1)
    quotient, _ = _truncated(x, np.where(zero | beyond, 1, y))
    return Outcome(
        quotient, first_error([failing(zero, DIVISION_BY_ZERO), failing(beyond, OVERFLOW)])
    )


def _safe_divisor(y: Any) -> Any:
    """Zero and (for integers, where the processor traps) -1 replaced by 1: same remainder."""
    return np.where((y == 0) | (y == -1), y.dtype.type(1), y) if y.dtype.kind == "i" else y


@strict("%")
def _remainder(call: Call, x: Any, y: Any) -> Any:
    return Outcome(np.fmod(x, _safe_divisor(y)), failing(y == 0, DIVISION_BY_ZERO))


@strict("pmod")
def _positive_remainder(call: Call, x: Any, y: Any) -> Any:
    divisor = _safe_divisor(y)
    rest = np.fmod(x, divisor)
    lifted = np.where(rest < 0, np.fmod(rest + divisor, divisor), rest)
    return Outcome(lifted, failing(y == 0, DIVISION_BY_ZERO))


@strict("neg")
def _negative(call: Call, x: Any) -> Any:
    return x.__neg__() if x.dtype.kind == "f" else Outcome(-x, _lowest(x))


@strict("abs")
def _absolute(call: Call, x: Any) -> Any:
    return np.abs(x) if x.dtype.kind == "f" else Outcome(np.abs(x), _lowest(x))


def _lowest(x: Any) -> Any:
    """The lowest integer of the type, whose negation overflows."""
    return failing(x == np.iinfo(x.dtype).min, OVERFLOW)


@strict("&")
def _and(call: Call, x: Any, y: Any) -> Any:
    return x & y


@strict("|")
def _or(call: Call, x: Any, y: Any) -> Any:
    return x | y


@strict("^")
def _xor(call: Call, x: Any, y: Any) -> Any:
    return x ^ y


@strict("~")
def _invert(call: Call, x: Any) -> Any:
    return ~x
