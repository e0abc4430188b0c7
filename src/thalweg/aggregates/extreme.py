"""MIN and MAX, and the value that goes with the least or the largest (MIN_BY, FIRST, ...).

Where the end of every row is known when it appears a group keeps a front, else all its values. Of
several values that go with the same least order the least one is taken, with the largest the
largest, so that the answer does not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from thalweg.aggregates.accumulator import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    used_weights,
)
from thalweg.aggregates.holdings import HELD, Holdings
from thalweg.aggregates.kind import AggregateKind, BindCall, DistinctRule, Rows, Rule
from thalweg.columns.vector import Mask, Vector
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.expr import AggregateCall
from thalweg.plan.types import BOOLEAN, DataType
from thalweg.plan.values import normal, order_key
from thalweg.synopses.ranked_tree import Summary


@dataclass(slots=True)
class Extreme:
    """Arguments are the value, and, where it is not its own order, what it is ordered by."""

    prefix: str
    types: tuple[DataType, ...]
    largest: bool
    _held: Holdings = field(init=False)
    _best: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _has: Mask = field(default_factory=lambda: np.empty(0, np.bool_))

    def __post_init__(self) -> None:
        self._held = Holdings(self.prefix, self.types[::-1], reverse=self.largest)

    @property
    def side_types(self) -> tuple[DataType, ...]:
        return self._held.types

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        runs, ends, held = signed.runs, signed.ends, self._held
        used = used_weights(arguments, signed)
        codes = held.load(arguments[::-1], used, runs, loaded)
        had = held.size > 0
        first = np.minimum(held.offset, max(len(held.codes) - 1, 0))
        stored = held.codes[first] if len(held.codes) else np.zeros(runs.groups, np.int64)
        best = np.zeros(runs.runs, np.int64)
        has = np.zeros(runs.runs, np.bool_)
        if ends is not None:
            at = runs.instants[runs.run]
            extremes.running_front(
                codes, ends[runs.order], used, at, runs.run, runs.group_of_run,
                *held.regions, best, has,
            )  # fmt: skip
        else:
            extremes.running_least(
                codes, used, runs.run, runs.group_of_run, *held.regions, best, has
            )
        self._best = np.concatenate([stored, best])
        self._has = np.concatenate([had, has])

    def values(self) -> Vector:
        return self._held.decoded(self._best, len(self.types) - 1, self._has)

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        return self._held.save()


# -- binding and meaning -------------------------------------------------------------------------


def _bare(kind: str) -> Rule:
    def rule(call: BindCall) -> AggregateCall:
        argument = call.one()
        return AggregateCall(argument.type, True, _KIND[kind], (argument,))

    return rule


def _logical(kind: str) -> Rule:
    def rule(call: BindCall) -> AggregateCall:
        return AggregateCall(BOOLEAN, True, _KIND[kind], (call.condition(),))

    return rule


def _by(kind: str) -> Rule:
    def rule(call: BindCall) -> AggregateCall:
        call.need(2)
        value, order = call.argument(0), call.argument(1)
        return AggregateCall(value.type, True, _KIND[kind], (value, order))

    return rule


def _in_time(kind: str) -> Rule:
    """FIRST and LAST: by event time."""

    def rule(call: BindCall) -> AggregateCall:
        value = call.one()
        return AggregateCall(value.type, True, _KIND[kind], (value, call.event_time()))

    return rule


def _accumulator(call: AggregateCall, prefix: str) -> Extreme:
    types = tuple(a.type for a in call.arguments)
    return Extreme(prefix, types, call.kind in (MAX, MAX_BY))


def _best(choose: Callable[..., Any]) -> Callable[[AggregateCall, Rows], Any]:
    """The value with the least (largest) order; among those the least (largest)."""

    def by_definition(call: AggregateCall, rows: Rows) -> Any:
        if not rows:
            return None
        best = choose(rows, key=lambda r: [order_key(normal(v)) for v in reversed(r)])
        return normal(best[0])

    return by_definition


def _kind(
    name: str,
    names: dict[str, Rule],
    choose: Callable[..., Any],
    examples: tuple[str, ...],
    summary: Callable[[Summary], float | None] | None = None,
) -> AggregateKind:
    return AggregateKind(
        name=name,
        names=names,
        state=HELD,
        accumulate=_accumulator,
        reference=_best(choose),
        distinct=DistinctRule.REFUSED if name.endswith("_by") else DistinctRule.IGNORED,
        wants_ends=True,
        summary=summary,
        examples=examples,
    )


MIN = _kind(
    "min",
    {
        "min": _bare("min"),
        "any_value": _bare("min"),
        "bool_and": _logical("min"),
        "every": _logical("min"),
    },
    min,
    ("min(x)", "min(DISTINCT x)", "bool_and(x > 1)", "any_value(s)"),
    lambda found: found.least,
)
MAX = _kind(
    "max",
    {"max": _bare("max"), "bool_or": _logical("max"), "some": _logical("max")},
    max,
    ("max(x)", "max(s)", "bool_or(x > 1)"),
    lambda found: found.most,
)
MIN_BY = _kind(
    "min_by",
    {"min_by": _by("min_by"), "first": _in_time("min_by"), "first_value": _in_time("min_by")},
    min,
    ("min_by(s, x)", "first(x)"),
)
MAX_BY = _kind(
    "max_by",
    {"max_by": _by("max_by"), "last": _in_time("max_by"), "last_value": _in_time("max_by")},
    max,
    ("max_by(x, k)", "last(s)"),
)
KINDS = (MIN, MAX, MIN_BY, MAX_BY)
_KIND = {k.name: k for k in KINDS}
