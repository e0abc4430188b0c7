"""VARIANCE and STDDEV without cancellation: n·Σx² - (Σx)² is computed exactly and rounded once.

Sums and sums of squares are laid on limbs as SUM lays its values, so neither the order of rows nor
how many have come and gone leaves a trace.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from thalweg.aggregates.accumulator import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    counted,
    running_counts,
    used_weights,
)
from thalweg.aggregates.kind import INT, AggregateKind, BindCall, Rows, Rule
from thalweg.aggregates.sums import (
    SPECIALS,
    limb_columns,
    limb_span,
    rounded,
    special_columns,
    stored_limbs,
    stored_specials,
)
from thalweg.columns.vector import Vector
from thalweg.instants import Ints
from thalweg.numeric import exact
from thalweg.plan.expr import AggregateCall
from thalweg.plan.types import DOUBLE, DataType
from thalweg.plan.values import normal

_NO_LIMBS: exact.Limbs = np.empty((0, 0), np.int64)


@dataclass(slots=True)
class Variance:
    """`sample` divides by n-1 and is NULL for one value; `root` gives the standard deviation."""

    prefix: str
    sample: bool
    root: bool
    side_types: tuple[DataType, ...] = ()
    _sums: exact.Limbs = field(default_factory=lambda: _NO_LIMBS)
    _squares: exact.Limbs = field(default_factory=lambda: _NO_LIMBS)
    _special: exact.Limbs = field(default_factory=lambda: _NO_LIMBS)
    _lows: tuple[int, int] = (0, 0)
    _counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _strange: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _spreads: np.ndarray = field(default_factory=lambda: np.empty(0))

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        runs = signed.runs
        used = used_weights(arguments, signed)
        values = np.asarray(arguments[0].data).astype(np.float64, copy=False)
        self._counts = counted(used, signed, loaded, f"{self.prefix}n")
        sums, squares = f"{self.prefix}l", f"{self.prefix}q"
        low, width = limb_span(loaded, sums, exact.double_limb_range(values, runs.order, used))
        touched = exact.square_limb_range(values, runs.order, used)
        square_low, square_width = limb_span(loaded, squares, touched)
        self._sums = stored_limbs(loaded, sums, low, width)
        self._squares = stored_limbs(loaded, squares, square_low, square_width)
        self._lows = low, square_low
        self._spreads = np.empty(runs.groups + runs.runs, np.float64)
        exact.running_spreads(
            values, runs.order, used, runs.run, runs.group_of_run, self._sums, self._squares,
            self._lows, self._counts, self._spreads,
        )  # fmt: skip
        # NaN and infinities are only counted: while one is there, there is no variance
        special = np.where(np.isfinite(values[runs.order]), np.int8(0), used)
        before = stored_specials(loaded, self.prefix)
        self._strange = running_counts(special, runs, before.sum(axis=1))
        self._special = np.zeros((runs.groups, 3), np.int64)
        self._special[:, 0] = self._strange[runs.last_versions] if runs.groups else 0

    def values(self) -> Vector:
        n = self._counts
        divisor = n * (n - 1) if self.sample else n * n
        with np.errstate(invalid="ignore", over="ignore"):
            found = self._spreads / np.maximum(divisor, 1)
            found[self._strange > 0] = np.nan
            if self.root:
                found = np.sqrt(found)
        return Vector(DOUBLE, found, n > (1 if self.sample else 0), None)

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        columns: Columns = {f"{self.prefix}n": self._counts[last]}
        columns |= limb_columns(self._sums, f"{self.prefix}l", self._lows[0])
        columns |= limb_columns(self._squares, f"{self.prefix}q", self._lows[1])
        return columns | special_columns(self._special, self.prefix), None


# -- binding and meaning -------------------------------------------------------------------------


def _rule(kind: str) -> Rule:
    def rule(call: BindCall) -> AggregateCall:
        return AggregateCall(DOUBLE, True, _KIND[kind], (call.double(call.one()),))

    return rule


def _accumulator(call: AggregateCall, prefix: str) -> Variance:
    return Variance(prefix, sample=call.kind in (VAR_SAMP, STDDEV_SAMP), root=_is_root(call))


def _is_root(call: AggregateCall) -> bool:
    return call.kind in (STDDEV_SAMP, STDDEV_POP)


def _spread(call: AggregateCall, rows: Rows) -> Any:
    """(n·Σx² - (Σx)², the divisor), or None where there is no variance."""
    values, n = [r[0] for r in rows], len(rows)
    sample = call.kind in (VAR_SAMP, STDDEV_SAMP)
    if n < (2 if sample else 1):
        return None
    divisor = n * (n - 1) if sample else n * n
    if not all(map(math.isfinite, values)):
        return normal(math.nan), divisor
    exactly = [Fraction(v) for v in values]
    return n * sum(v * v for v in exactly) - sum(exactly) ** 2, divisor


def _finish(call: AggregateCall, value: tuple[Any, int]) -> float:
    variance = float(rounded(value[0])) / value[1]
    return math.sqrt(variance) if _is_root(call) else variance


def _kind(name: str, *aliases: str) -> AggregateKind:
    return AggregateKind(
        name=name,
        names={n: _rule(name) for n in (name, *aliases)},
        state={"n": INT, "l": INT, "q": INT} | dict.fromkeys(SPECIALS, INT),
        accumulate=_accumulator,
        reference=_spread,
        finish=_finish,
        examples=(f"{name}(x)", f"{name}(DISTINCT k)"),
    )


VAR_SAMP = _kind("var_samp", "variance")
VAR_POP = _kind("var_pop")
STDDEV_SAMP = _kind("stddev_samp", "stddev", "std")
STDDEV_POP = _kind("stddev_pop")
KINDS = (VAR_SAMP, VAR_POP, STDDEV_SAMP, STDDEV_POP)
_KIND = {k.name: k for k in KINDS}
