"""EXPLAIN: plan, routing and bounded-state verdict of a query, by name or text."""

from __future__ import annotations

from collections.abc import Callable, Collection

from thalweg.adapt.adaptation import Adaptation
from thalweg.errors import ConfigError
from thalweg.instants import format_duration
from thalweg.masking import without_passwords
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.bounded_state import verdict
from thalweg.plan.catalog import StreamDef
from thalweg.plan.explain import explain
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.planner import Planner
from thalweg.runtime.results.lookup import QueryLookup
from thalweg.runtime.sinks.guarantees import guarantee_of
from thalweg.statements import CreateQuery, SelectStatement, parse


class Explainer:
    """`idle` tells the streams that are silent just now."""

    def __init__(
        self,
        planner: Planner,
        queries: QueryLookup,
        adaptation: Adaptation,
        idle: Callable[[], Collection[str]],
    ) -> None:
        self._planner = planner
        self._queries = queries
        self._adaptation = adaptation
        self._idle = idle

    def query(self, name: str) -> str:
        """A registered query."""
        name = self._queries.find(name)
        bound = self._queries.bound(name)
        text = self._explained(bound, self._queries.plan(name))
        for guarantee in self._queries.guarantees(name):
            text += f"\noutput: {bound.sink or 'callback'} ({guarantee})"
        return without_passwords(text)

    def text(self, text: str) -> str:
        """A SELECT or CREATE QUERY that is not registered."""
        bound = self._planner.bind(_select_text(text))
        explained = self._explained(bound, self._planner.physical(bound))
        if bound.sink is None:
            return explained
        text = f"{explained}\noutput: {bound.sink} ({guarantee_of(bound.sink)})"
        return without_passwords(text)

    def adaptation(self, name: str) -> str:
        """A registered query, with what was learned and changed while it ran."""
        name = self._queries.find(name)
        return f"{self.query(name)}\n{self._adaptation.explain(name)}"

    def _explained(self, bound: BoundQuery, plan: QueryPlan) -> str:
        notes = {s: self._note_on(self._planner.catalog.stream(s)) for s in bound.streams}
        return explain(plan, verdict(bound.root), notes)

    def _note_on(self, stream: StreamDef) -> str:
        """How long a stream is waited for, and whether it is just now."""
        late = f"lateness {format_duration(stream.lateness)}" if stream.lateness else "in order"
        if stream.idle is None:
            return f"{late}, waited for always"
        silent = " (silent now: not waited for)" if stream.name in self._idle() else ""
        return f"{late}, idle after {format_duration(stream.idle)}{silent}"


def _select_text(text: str) -> str:
    statements = parse(text)
    if len(statements) == 1 and isinstance(statements[0], (SelectStatement, CreateQuery)):
        return statements[0].text
    raise ConfigError(
        "only one SELECT or CREATE QUERY can be explained", remedy="explain one at a time"
    )
