"""CASE and COALESCE: every branch is evaluated only on the rows that reach it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.columns.vector import Vector, concat, nulls
from thalweg.exec.expressions.kernels.registry import Scope, choose, lazy
from thalweg.plan.expr import Call, Expr
from thalweg.plan.functions import can_raise
from thalweg.plan.types import DataType

Rows = npt.NDArray[np.int64]
Part = tuple[Rows, Vector]


def _gathered(dtype: DataType, length: int, parts: Sequence[Part]) -> Vector:
    """Values computed on disjoint sets of rows, merged in row order."""
    parts = [(rows, values) for rows, values in parts if len(rows)]
    if not parts:
        return nulls(dtype, length)
    if len(parts) == 1:
        return parts[0][1]
    order = np.empty(length, np.int64)
    order[np.concatenate([rows for rows, _ in parts])] = np.arange(length)
    return concat([values for _, values in parts]).take(order)


def _on(scope: Scope, expr: Expr, rows: Rows) -> Vector:
    """Evaluate the expression on these rows only."""
    inner = scope if len(rows) == scope.length else scope.subset(rows)
    return inner.evaluate(expr).stretch(len(rows))


@lazy("case")
def _case(call: Call, scope: Scope) -> Vector:
    if not any(can_raise(a) for a in call.args):
        args = [scope.evaluate(a) for a in call.args]
        if all(a.errors is None for a in args):
            return _chosen(call, args)
    return _case_in_turn(call, scope)


def _chosen(call: Call, args: Sequence[Vector]) -> Vector:
    """Choose among whole columns, where nothing can fail: faster than selecting rows."""
    length = next((len(a) for a in args if len(a) != 1), 1)
    found = args[-1].stretch(length)
    for test, value in zip(args[-3::-2], args[-2::-2], strict=True):
        taken = test.data if test.valid is None else test.data & test.valid
        found = choose(taken, value, found)
    return found


def _case_in_turn(call: Call, scope: Scope) -> Vector:
    rest: Rows = np.arange(scope.length)
    parts: list[Part] = []
    for test, value in zip(call.args[:-1:2], call.args[1:-1:2], strict=True):
        if not len(rest):
            break
        found = _on(scope, test, rest)
        taken = found.data & found.usable
        if taken.any():
            parts.append((rest[taken], _on(scope, value, rest[taken])))
        failed = _failed(found)
        if failed.any():
            parts.append((rest[failed], _failures(call.type, found, failed)))
        rest = rest[~(taken | failed)]
    if len(rest):
        parts.append((rest, _on(scope, call.args[-1], rest)))
    return _gathered(call.type, scope.length, parts)


def _failed(found: Vector) -> Any:
    return np.zeros(len(found), np.bool_) if found.errors is None else found.errors != 0


def _failures(dtype: DataType, found: Vector, failed: Any) -> Vector:
    """Rows whose condition failed: they have no value, only the error."""
    empty = nulls(dtype, int(failed.sum()))
    assert found.errors is not None
    return Vector(dtype, empty.data, empty.valid, found.errors[failed])


@lazy("coalesce")
def _coalesce(call: Call, scope: Scope) -> Vector:
    rest: Rows = np.arange(scope.length)
    parts: list[Part] = []
    for position, arg in enumerate(call.args):
        found = _on(scope, arg, rest)
        if position == len(call.args) - 1 or found.valid is None:
            parts.append((rest, found))
            break
        settled = found.valid | _failed(found)
        parts.append((rest[settled], found.filter(settled)))
        rest = rest[~settled]
        if not len(rest):
            break
    return _gathered(call.type, scope.length, parts)


@lazy("nanvl")
def _nanvl(call: Call, scope: Scope) -> Vector:
    first = scope.evaluate(call.args[0]).stretch(scope.length)
    missing = np.isnan(first.data) & first.usable
    if not missing.any():
        return first
    rest = np.flatnonzero(missing)
    kept = np.flatnonzero(~missing)
    parts = [(kept, first.take(kept)), (rest, _on(scope, call.args[1], rest))]
    return _gathered(call.type, scope.length, parts)
