"""Comparison. NaN equals itself and is greater than every other number; -0.0 equals 0.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import Mask, Vector
from thalweg.exec.expressions.kernels.registry import Outcome, both, choose, nullable, strict, truth
from thalweg.plan.expr import Call
from thalweg.store.hashing import nested_texts


def _is_nan(x: Any) -> Any:
    """Whether x is NaN; a constant False (at no cost) where its type has no NaN or it is one known
    number."""
    if x.dtype.kind != "f" or (len(x) == 1 and x[0] == x[0]):
        return False
    return x != x


def equal(x: Any, y: Any) -> Any:
    found, a, b = x == y, _is_nan(x), _is_nan(y)
    return found if a is False or b is False else found | (a & b)


def greater(x: Any, y: Any) -> Any:
    if x.dtype.kind != "f":
        return x > y
    found, nan = ~(x <= y), _is_nan(y)
    return found if nan is False else found & ~nan


def _greater_or_equal(x: Any, y: Any) -> Any:
    found, nan = x >= y, _is_nan(x)
    return found if nan is False else found | nan


_NUMERIC: dict[str, Callable[[Any, Any], Any]] = {
    "=": equal,
    "<>": lambda x, y: ~equal(x, y),
    ">": greater,
    "<": lambda x, y: greater(y, x),
    ">=": _greater_or_equal,
    "<=": lambda x, y: _greater_or_equal(y, x),
}
_ARROW = {
    "=": pc.equal,
    "<>": pc.not_equal,
    ">": pc.greater,
    "<": pc.less,
    ">=": pc.greater_equal,
    "<=": pc.less_equal,
}


def compare(name: str, x: Any, y: Any) -> Mask:
    """Compare two columns of data of one type."""
    if isinstance(x, np.ndarray):
        return np.asarray(_NUMERIC[name](x, y))
    return truth(_ARROW[name](_alike(x), _alike(y)))


def _alike(data: Any) -> Any:
    """Data that Arrow can compare: of arrays a text for each, which tells different ones apart."""
    if not pa.types.is_list(data.type):
        return data
    if isinstance(data, pa.Scalar):
        return nested_texts(pa.array([data.as_py()], data.type))[0]
    return nested_texts(data)


@strict("=", "<>", ">", "<", ">=", "<=")
def _compare(call: Call, x: Any, y: Any) -> Any:
    return compare(call.function, x, y)


def operand(vector: Vector, length: int) -> Any:
    """Bare data that can be combined with `length` rows."""
    if isinstance(vector.data, np.ndarray) or len(vector) == length:
        return vector.data
    return vector.data[0]


@nullable("<=>")
def _same(call: Call, x: Vector, y: Vector) -> Outcome:
    length = len(x) if len(y) == 1 else len(y)
    alike = compare("=", operand(x, length), operand(y, length))
    known = both([x.valid, y.valid])
    if known is None:
        return Outcome(alike)
    neither = ~_valid(x) & ~_valid(y)
    return Outcome(np.broadcast_to((alike & known) | neither, length))


def _valid(x: Vector) -> Mask:
    return np.ones(1, np.bool_) if x.valid is None else x.valid


_FEW = 8  # up to here comparing one by one is faster than a set


@nullable("in")
def _member(call: Call, value: Vector, *candidates: Vector) -> Outcome:
    length = max((len(v) for v in (value, *candidates) if len(v) != 1), default=1)
    length = 0 if any(len(v) == 0 for v in (value, *candidates)) else length
    fixed = all(len(c) == 1 for c in candidates)
    numeric = isinstance(value.data, np.ndarray)
    if fixed and (not numeric or (len(candidates) > _FEW and value.data.dtype.kind == "i")):
        found = _in_set(value, candidates)
    else:
        found = _in_turn(value, candidates, length)
    unknown = np.zeros(1, np.bool_)
    for candidate in candidates:
        unknown = unknown | ~_valid(candidate)
    valid = _valid(value) & (found | ~unknown)
    return Outcome(found, valid=None if valid.all() else np.broadcast_to(valid, length))


def _in_set(value: Vector, candidates: tuple[Vector, ...]) -> Mask:
    known = [c.data for c in candidates if _valid(c)[0]]
    if not known:
        return np.zeros(len(value), np.bool_)
    if isinstance(value.data, np.ndarray):
        return np.isin(value.data, np.concatenate(known))
    return truth(pc.is_in(_alike(value.data), value_set=_alike(pa.concat_arrays(known))))


def _in_turn(value: Vector, candidates: tuple[Vector, ...], length: int) -> Mask:
    found = np.zeros(length, np.bool_)
    for candidate in candidates:
        alike = compare("=", operand(value, length), operand(candidate, length))
        found |= alike & _valid(candidate)
    return found


@nullable("greatest", "least")
def _extreme(call: Call, *args: Vector) -> Outcome:
    length = 0 if any(len(a) == 0 for a in args) else max(len(a) for a in args)
    best = args[0].stretch(length)
    for arg in args[1:]:
        best = _better(call, best, arg.stretch(length))
    return Outcome(best.data, valid=best.valid)


def _better(call: Call, x: Vector, y: Vector) -> Vector:
    wins = compare(">" if call.function == "greatest" else "<", y.data, x.data)
    if x.valid is not None or y.valid is not None:
        wins = _valid(y) & (wins | ~_valid(x))
    return choose(wins, y, x)
