"""What readers ask of a query: of one in this process, or of one that is only committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.query_state import QueryState

Membership = Sequence[Any]
"""What must be known to read a member's results: its number, what it is about, and by their names
the columns that it takes from that."""


class QueryLookup(Protocol):
    """Registered queries by name, however they are run."""

    def listed(self) -> list[tuple[str, str, QueryState, bool]]:
        """All queries that are known: name, text, state, and whether it can be asked for."""
        ...

    def find(self, name: str) -> str:
        """The name that is meant, or a refusal: case makes no difference."""
        ...

    def text(self, name: str) -> str: ...

    def bound(self, name: str) -> BoundQuery: ...

    def plan(self, name: str) -> QueryPlan:
        """The plan by which it is run, or would be if it were run by itself."""
        ...

    def windows(self, name: str) -> QueryPlan:
        """Some plan with its windows: of a dormant query that of its leader, which is at hand."""
        ...

    def state(self, name: str) -> QueryState:
        """Its state, or that of the cohort it is a member of."""
        ...

    def memberships(self, name: str) -> Sequence[Membership]:
        """What it is, or once was, a member of."""
        ...

    def cohort(self, name: str) -> str | None:
        """The cohort that runs it, if one does; "" if that is not there yet."""
        ...

    def guarantees(self, name: str) -> Sequence[str]:
        """What holds across crashes, of each of its sinks."""
        ...
