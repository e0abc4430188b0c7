"""One accumulator per aggregate; `accumulator` finds it."""

from __future__ import annotations

from collections.abc import Callable

from thalweg.exec.accumulators.base import Accumulator
from thalweg.exec.accumulators.count import Count
from thalweg.exec.accumulators.distinct import Distinct
from thalweg.exec.accumulators.extreme import Extreme
from thalweg.exec.accumulators.lists import Collected
from thalweg.exec.accumulators.ranks import Mode, Quantile
from thalweg.exec.accumulators.sums import Sum
from thalweg.exec.accumulators.variance import Variance
from thalweg.plan.expr import AggregateCall

__all__ = ["accumulator"]


def accumulator(call: AggregateCall, prefix: str) -> Accumulator:
    """A fresh accumulator whose state columns start with `prefix`."""
    made = _MAKERS[call.function](call, prefix)
    if call.distinct and not isinstance(made, (Extreme, Collected, Quantile)):
        return Distinct(prefix, call.arguments[0].type, made)
    return made


def _extreme(call: AggregateCall, prefix: str) -> Accumulator:
    types = tuple(a.type for a in call.arguments)
    return Extreme(prefix, types, call.function in ("max", "max_by"))


def _sum(call: AggregateCall, prefix: str) -> Accumulator:
    return Sum(prefix, call.arguments[0].type, call.type, mean=call.function == "avg")


def _variance(call: AggregateCall, prefix: str) -> Accumulator:
    root = call.function.startswith("stddev")
    return Variance(prefix, sample=call.function.endswith("samp"), root=root)


def _quantile(call: AggregateCall, prefix: str) -> Accumulator:
    discrete = call.function == "percentile_disc"
    fraction = float(call.parameter)
    return Quantile(prefix, call.arguments[0].type, fraction, discrete, call.distinct)


def _collected(call: AggregateCall, prefix: str) -> Accumulator:
    return Collected(prefix, call.arguments[0].type, call.distinct, call.parameter)


_MAKERS: dict[str, Callable[[AggregateCall, str], Accumulator]] = {
    "count": lambda call, prefix: Count(prefix),
    "sum": _sum,
    "avg": _sum,
    "min": _extreme,
    "max": _extreme,
    "min_by": _extreme,
    "max_by": _extreme,
    "var_samp": _variance,
    "var_pop": _variance,
    "stddev_samp": _variance,
    "stddev_pop": _variance,
    "percentile": _quantile,
    "percentile_disc": _quantile,
    "mode": lambda call, prefix: Mode(prefix, call.arguments[0].type),
    "array_agg": _collected,
    "string_agg": _collected,
}
