"""SUM and AVG, exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Context, Decimal
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
    used_weights,
)
from thalweg.aggregates.kind import INT, AggregateKind, BindCall, Rows
from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.vector import OVERFLOW, Vector
from thalweg.instants import Ints
from thalweg.numeric import exact
from thalweg.plan import functions
from thalweg.plan.expr import AggregateCall, Expr
from thalweg.plan.types import BIGINT, DOUBLE, NULL, DataType
from thalweg.plan.values import normal

SPECIALS = ("nan", "inf", "ninf")


@dataclass(slots=True)
class Sum:
    """SUM and AVG: exact limbs, a count of values, and the specials of doubles counted apart.

    Limbs exist once per group; what the runs keep of them is the rounded total.
    """

    prefix: str
    argument: DataType
    returns: DataType
    mean: bool
    side_types: tuple[DataType, ...] = ()
    _low: int = exact.INTEGER_LIMB
    _limbs: exact.Limbs = field(default_factory=lambda: np.empty((0, 0), np.int64))
    _special: exact.Limbs = field(default_factory=lambda: np.empty((0, 3), np.int64))
    _counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _totals: Any = None
    _overflow: Any = None

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        used = used_weights(arguments, signed)
        self._counts = counted(used, signed, loaded, f"{self.prefix}n")
        values = np.asarray(arguments[0].data)
        if self.argument.is_integer:
            self._integers(values.astype(np.int64, copy=False), used, signed.runs, loaded)
        else:
            self._doubles(values.astype(np.float64, copy=False), used, signed.runs, loaded)

    def _integers(self, values: Ints, used: Signs, runs: Runs, loaded: Loaded) -> None:
        self._limbs = stored_limbs(loaded, f"{self.prefix}l", self._low, 2)
        self._special = np.zeros((runs.groups, 3), np.int64)
        before = self._limbs.copy()
        after = np.zeros((runs.runs, 2), np.int64)
        exact.running_integers(
            values, runs.order, used, runs.run, runs.group_of_run, self._limbs, after
        )
        versions = np.concatenate([before, after])
        if self.mean:
            none = np.zeros((len(versions), 3), np.int64)
            self._totals = exact.to_doubles(versions, none, self._low)
        else:
            self._totals, self._overflow = exact.to_integers(versions)

    def _doubles(self, values: Any, used: Signs, runs: Runs, loaded: Loaded) -> None:
        touched = exact.double_limb_range(values, runs.order, used)
        self._low, width = limb_span(loaded, f"{self.prefix}l", touched)
        self._limbs = stored_limbs(loaded, f"{self.prefix}l", self._low, width)
        self._special = stored_specials(loaded, self.prefix)
        totals = np.empty(runs.groups + runs.runs, np.float64)
        totals[: runs.groups] = exact.to_doubles(self._limbs, self._special, self._low)
        short = self._limbs.shape[1] <= exact.MOST_LIMBS
        kernel = exact.running_doubles_short if short else exact.running_doubles
        kernel(
            values, runs.order, used, runs.run, runs.group_of_run,
            self._limbs, self._special, self._low, totals[runs.groups :],
        )  # fmt: skip
        self._totals = totals

    def values(self) -> Vector:
        valid = self._counts > 0
        if self._overflow is not None:
            errors = np.where(self._overflow & valid, OVERFLOW, 0).astype(np.uint8)
            return Vector(BIGINT, self._totals, valid, errors if errors.any() else None)
        if self.mean:
            return Vector(DOUBLE, self._totals / np.maximum(self._counts, 1), valid, None)
        return Vector(DOUBLE, self._totals, valid, None)

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        columns: Columns = {f"{self.prefix}n": self._counts[last]}
        keep_zeros = self.argument.is_integer
        columns |= limb_columns(self._limbs, f"{self.prefix}l", self._low, keep_zeros)
        return columns | special_columns(self._special, self.prefix), None


# -- limbs as state columns, one per limb that some group needs --------------------------------


def limb_span(loaded: Loaded, name: str, touched: tuple[int, int]) -> tuple[int, int]:
    """The lowest limb that is stored or about to be touched, and how many there are from it on.

    `touched` is empty if its second limb is below the first."""
    found = [int(n.removeprefix(name)) for n in loaded.columns if n.startswith(name)]
    found += touched if touched[1] >= touched[0] else ()
    low = min(found, default=exact.INTEGER_LIMB)
    # one limb above the highest takes the carries of what is stored
    return low, max(found, default=low) - low + 2


def stored_limbs(loaded: Loaded, name: str, low: int, width: int) -> exact.Limbs:
    out = np.zeros((len(loaded.rows), width), np.int64)
    for column in loaded.columns:
        if column.startswith(name):
            out[:, int(column.removeprefix(name)) - low] = loaded.ints(column)
    return out


def limb_columns(limbs: exact.Limbs, name: str, low: int, keep_zeros: bool = False) -> Columns:
    carried = exact.normalized(limbs)
    return {
        f"{name}{low + j}": carried[:, j]
        for j in range(carried.shape[1])
        if keep_zeros or carried[:, j].any()
    }


def stored_specials(loaded: Loaded, prefix: str) -> exact.Limbs:
    """How many NaN, infinities and minus infinities are among the values."""
    return np.stack([loaded.ints(f"{prefix}{n}") for n in SPECIALS], axis=1)


def special_columns(special: exact.Limbs, prefix: str) -> Columns:
    return {
        f"{prefix}{name}": special[:, j] for j, name in enumerate(SPECIALS) if special[:, j].any()
    }


# -- binding and meaning -------------------------------------------------------------------------


def _as_float(argument: Expr) -> Expr:
    exactly = argument.type.name == "DECIMAL" or argument.type == NULL
    return functions.cast(argument, DOUBLE) if exactly else argument


def _sum(call: BindCall) -> AggregateCall:
    argument = call.number()
    if argument.type.is_integer:
        return AggregateCall(BIGINT, True, SUM, (argument,))
    return AggregateCall(DOUBLE, True, SUM, (_as_float(argument),))


def _average(call: BindCall) -> AggregateCall:
    return AggregateCall(DOUBLE, True, AVG, (_as_float(call.number()),))


def _accumulator(call: AggregateCall, prefix: str) -> Sum:
    return Sum(prefix, call.arguments[0].type, call.type, mean=call.kind is AVG)


def exact_sum(values: list[Any]) -> Any:
    """By definition: an int, a Fraction for DOUBLE (a float if it is not finite), a Decimal."""
    if isinstance(values[0], Decimal):
        total = Decimal(0)
        for value in values:
            total = _WIDE.add(total, value)
        return total
    if not isinstance(values[0], float):
        return sum(values)
    special = {v for v in values if math.isinf(v)}
    if len(special) == 2 or any(math.isnan(v) for v in values):
        return normal(math.nan)
    return special.pop() if special else sum(map(Fraction, values), Fraction(0))


def rounded(value: Any) -> Any:
    """A Fraction to the nearest DOUBLE, ties to even."""
    if not isinstance(value, Fraction):
        return value
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _mean(call: AggregateCall, value: tuple[Any, int]) -> Any:
    total, count = value
    if call.type.is_float:
        return float(rounded(total)) / count
    quotient = _WIDE.divide(Decimal(total), Decimal(count))
    return quotient if call.type.name == "DECIMAL" else round(quotient)


def _total_by_definition(call: AggregateCall, rows: Rows) -> Any:
    return exact_sum([r[0] for r in rows]) if rows else None


def _mean_by_definition(call: AggregateCall, rows: Rows) -> Any:
    return (exact_sum([r[0] for r in rows]), len(rows)) if rows else None


_WIDE = Context(prec=200, rounding=ROUND_HALF_UP)
_STATE = {"n": INT, "l": INT} | dict.fromkeys(SPECIALS, INT)

SUM = AggregateKind(
    name="sum",
    names={"sum": _sum},
    state=_STATE,
    accumulate=_accumulator,
    reference=_total_by_definition,
    finish=lambda call, value: rounded(value),
    summary=lambda found: found.total,
    examples=("sum(x)", "sum(k)", "sum(DISTINCT x)", "sum(x) FILTER (WHERE k > 1)"),
)
AVG = AggregateKind(
    name="avg",
    names={"avg": _average, "mean": _average},
    state=_STATE,
    accumulate=_accumulator,
    reference=_mean_by_definition,
    finish=_mean,
    summary=lambda found: found.mean,
    examples=("avg(x)", "mean(k)", "avg(DISTINCT k)"),
)
KINDS = (SUM, AVG)
