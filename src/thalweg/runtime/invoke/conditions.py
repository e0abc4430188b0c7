"""Conditions of queries under mode `p` on rows, or on the sides of a join: equal ones are evaluated
once."""

from __future__ import annotations

from dataclasses import replace

from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.sharing.shared_filter import StandingFilter, where_filter
from thalweg.plan.sharing.shared_join import pairs_of
from thalweg.runtime.planner import Planner


class Conditions:
    """Finds the condition of a query. With `composite` joins that differ only in their conditions
    on each side are made once."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner
        self.composite = True

    def of_text(self, text: str) -> StandingFilter | None:
        return self.of(self._planner.bind(text))

    def of(self, bound: BoundQuery) -> StandingFilter | None:
        if len(bound.scans) == 1:
            return where_filter(self._planner.physical(bound))
        found = pairs_of(bound, self._planner.catalog)
        if found is None or self.composite:
            return None if found is None else found.asked
        return replace(found.asked, stream=f"{found.asked.stream}-{condition_key(found.asked)}")


def condition_key(found: StandingFilter) -> str:
    """A key that is equal for equal conditions, in whatever order."""
    said = sorted(f"{c.column} {c.operator} {c.constant!r}" for c in found.comparisons)
    return " AND ".join([found.stream, *said, *sorted(map(str, found.rest))])
