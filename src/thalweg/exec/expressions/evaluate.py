"""Evaluation of bound expressions over columns. No value in a row raises: an error stays in its
row.

`x AND y` is false if either side is, even if the other fails, and OR dually; CASE, IF and COALESCE
evaluate only what they need; everywhere else an error in an argument is an error of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.columns.vector import Vector, constant
from thalweg.exec.expressions import kernels
from thalweg.exec.expressions.kernels.user import UserFunction, call_user
from thalweg.plan.expr import Call, Column, Expr, Literal, UserCall, walk

__all__ = ["UserFunction", "evaluate", "used_functions"]


def evaluate(
    expr: Expr,
    columns: Mapping[str, Vector],
    length: int,
    functions: Mapping[str, UserFunction] | None = None,
) -> Vector:
    """The value of the expression on each of `length` rows."""
    with np.errstate(all="ignore"):
        found = Rows(columns, length, functions or {}).evaluate(expr).stretch(length)
    masks = [m for m in (found.valid, found.errors) if m is not None]
    assert all(len(m) == len(found) for m in masks), f"{expr} has fewer marks than rows"
    return found


def used_functions(expr: Expr) -> frozenset[str]:
    """Names of the user functions an expression calls."""
    return frozenset(e.name for e in walk(expr) if isinstance(e, UserCall))


class Rows:
    """The rows an expression is evaluated on (the `Scope` of the kernels)."""

    __slots__ = ("columns", "functions", "length")

    def __init__(
        self, columns: Mapping[str, Vector], length: int, functions: Mapping[str, UserFunction]
    ) -> None:
        self.columns = columns
        self.length = length
        self.functions = functions

    def evaluate(self, expr: Expr) -> Vector:
        if isinstance(expr, Column):
            return self.columns[expr.name]
        if isinstance(expr, Literal):
            return constant(expr, 1)
        if isinstance(expr, Call):
            return kernels.run(expr, self)
        if isinstance(expr, UserCall):
            args = [self.evaluate(a).stretch(self.length) for a in expr.args]
            return call_user(expr, args, self.length, self.functions)
        raise TypeError(f"{type(expr).__name__} has no value per row: {expr}")

    def subset(self, rows: npt.NDArray[np.int64]) -> Rows:
        return Rows(Taken(self.columns, rows), len(rows), self.functions)


class Sliced(Mapping[str, Vector]):
    """Neighbouring rows of some columns, without copying."""

    def __init__(self, columns: Mapping[str, Vector], low: int, high: int) -> None:
        self._columns = columns
        self._low, self._high = low, high

    def __getitem__(self, name: str) -> Vector:
        return self._columns[name].slice(self._low, self._high)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


class Taken(Mapping[str, Vector]):
    """A selection of rows of some columns, gathered on first access."""

    def __init__(self, columns: Mapping[str, Vector], rows: npt.NDArray[np.int64]) -> None:
        self._columns = columns
        self._rows = rows
        self._cache: dict[str, Vector] = {}
        self.seconds = 0.0
        """Seconds spent on gathering so far."""

    def __getitem__(self, name: str) -> Vector:
        if name not in self._cache:
            begun = perf_counter()
            self._cache[name] = self._columns[name].take(self._rows)
            self.seconds += perf_counter() - begun
        return self._cache[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)
