"""VARIANCE and STDDEV without cancellation: n·Σx² - (Σx)² is computed exactly and rounded once.

Sums and sums of squares are laid on limbs as SUM lays its values, so neither the order of rows nor
how many have come and gone leaves a trace.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.vector import Vector
from thalweg.exec.accumulators.base import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    counted,
    running_counts,
    used_weights,
)
from thalweg.exec.accumulators.sums import (
    limb_columns,
    limb_span,
    special_columns,
    stored_limbs,
    stored_specials,
)
from thalweg.instants import Ints
from thalweg.numeric import exact
from thalweg.plan.types import DOUBLE, DataType

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
