"""Calls of registered Python functions, in which an error affects only its own row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.columns.vector import (
    USER_FUNCTION,
    USER_RESULT,
    Vector,
    concat,
    from_arrow,
    nulls,
)
from thalweg.errors import FunctionMissing, UnknownName, did_you_mean
from thalweg.exec.expressions.kernels.deadline import within
from thalweg.exec.expressions.kernels.registry import first_error
from thalweg.plan.expr import UserCall
from thalweg.plan.types import DataType, to_arrow


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A Python function under a SQL name.

    A scalar one is called per row with Python values, NULL as None. A vectorised one gets one Arrow
    array per argument and returns an Arrow or NumPy array of as many rows, each of which may depend
    on its own row only. `deadline` limits the seconds that all rows of one batch may take; `broken`
    is the reason why a worker could not load it.
    """

    name: str
    function: Callable[..., Any]
    returns: DataType
    arguments: tuple[DataType, ...] | None = None
    vectorized: bool = False
    deterministic: bool = True
    deadline: float | None = None
    broken: str | None = None


def call_user(
    call: UserCall, args: Sequence[Vector], length: int, functions: Mapping[str, UserFunction]
) -> Vector:
    """Call the function on every row whose arguments have no error."""
    function = functions.get(call.name)
    if function is None:
        raise UnknownName(
            f"function {call.name} is not registered here",
            remedy=did_you_mean(call.name, functions),
        )
    if function.broken is not None:
        raise FunctionMissing(
            f"function {call.name}() cannot be loaded where it is to run: {function.broken}",
            remedy="define it in the script, or install its module on the workers",
        )
    run = _vectorized if function.vectorized else _scalar
    errors = first_error([a.errors for a in args])
    with within(function.deadline, function.name):
        if errors is None or not errors.any():
            return run(function, [a.to_arrow() for a in args], length)
        sound = errors == 0
        inner = run(function, [a.filter(sound).to_arrow() for a in args], int(sound.sum()))
    return _spread(inner, np.flatnonzero(sound), errors)


def _spread(inner: Vector, rows: Any, errors: Any) -> Vector:
    """Results scattered back to their rows; the others failed before the call."""
    failed = np.flatnonzero(errors)
    filler = nulls(inner.type, len(failed))
    filler.errors = errors[failed]
    order = np.argsort(np.concatenate([rows, failed]), kind="stable")
    return concat([inner, filler]).take(order)


def _scalar(function: UserFunction, args: Sequence[pa.Array], length: int) -> Vector:
    values: list[Any] = []
    errors = np.zeros(length, np.uint8)
    for row in range(length):
        try:
            values.append(function.function(*(a[row].as_py() for a in args)))
        except (Exception, SystemExit):
            values.append(None)
            errors[row] = USER_FUNCTION
    return _with_errors(_converted(function, values, errors), errors)


def _with_errors(found: Vector, errors: Any) -> Vector:
    return Vector(found.type, found.data, found.valid, errors if errors.any() else None)


def _converted(function: UserFunction, values: list[Any], errors: Any) -> Vector:
    arrow = to_arrow(function.returns)
    try:
        array = pa.array(values, arrow)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        for row, value in enumerate(values):
            try:
                pa.array([value], arrow)
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                values[row] = None
                errors[row] = USER_RESULT
        array = pa.array(values, arrow)
    return from_arrow(array, function.returns)


def _vectorized(function: UserFunction, args: Sequence[pa.Array], length: int) -> Vector:
    if length == 0:
        return nulls(function.returns, 0)
    try:
        return _returned(function, function.function(*args), length)
    except (Exception, SystemExit):
        if length == 1:
            return _one_row(function, args, 0)
    # Only the faulty rows may fail, however the input was cut into batches.
    return concat([_one_row(function, args, row) for row in range(length)])


def _one_row(function: UserFunction, args: Sequence[pa.Array], row: int) -> Vector:
    code = USER_FUNCTION
    try:
        result = function.function(*(a.slice(row, 1) for a in args))
        code = USER_RESULT
        return _returned(function, result, 1)
    except (Exception, SystemExit):
        failed = nulls(function.returns, 1)
        failed.errors = np.array([code], np.uint8)
        return failed


def _returned(function: UserFunction, result: Any, length: int) -> Vector:
    array = result if isinstance(result, (pa.Array, pa.ChunkedArray)) else pa.array(result)
    if len(array) != length:
        raise ValueError(f"{function.name} returned {len(array)} rows for {length}")
    return from_arrow(array, function.returns)
