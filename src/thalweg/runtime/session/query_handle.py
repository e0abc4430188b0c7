"""A registered query as its owner holds it, and one that is about to be registered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from thalweg.adapt.explain import explain_adaptation
from thalweg.adapt.planlog import Switch
from thalweg.errors import ConfigError, QueryFailed
from thalweg.lang import ast
from thalweg.plan.catalog import Relation
from thalweg.plan.logical import instant_of
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import BoundQuery
from thalweg.runtime.lifecycle.coverage import Coverage
from thalweg.runtime.results.results_reader import output_schema
from thalweg.runtime.sinks.sinks import Sink
from thalweg.runtime.state.engine_state import FAILED

if TYPE_CHECKING:
    from thalweg.runtime.session.session import Session

Callback = Callable[[pa.Table], object]
DROPPED = "dropped"


@dataclass(slots=True)
class Query:
    """A registered continuous query."""

    name: str
    text: str
    session: Session
    callback: Callback | None = None
    sinks: list[Sink] = field(default_factory=list)
    known: BoundQuery | None = None

    @property
    def bound(self) -> BoundQuery:
        """Its logical plan; of one among very many it is made when somebody asks."""
        return self.session.bind(self.text) if self.known is None else self.known

    @property
    def plan(self) -> QueryPlan:
        """The physical plan in force; of a query that is run together with others, its own."""
        found = self.session.coordinator.plans.get(self.name)
        return self.session.physical(self.bound) if found is None else found

    @property
    def schema(self) -> pa.Schema:
        return output_schema(self.bound)

    @property
    def status(self) -> str:
        """running, paused, failed, or dropped."""
        if self.session.queries.get(self.name) is not self:
            return DROPPED
        return self.session.known_state(self.name).status

    def results(self) -> pa.Table:
        """Everything emitted so far: the columns, `__ts`, and `__sign` for relations."""
        self._raise_if_failed()
        if self.session.known_state(self.name).mode:
            raise ConfigError(
                f"query {self.name} answers when it is invoked",
                remedy="use invoke(); without materialize a query emits changes",
            )
        return self.session.results_of(self.name)

    def rejects(self) -> pa.Table:
        """Rows the query could not judge: `__ts`, the expression, the reason, the row."""
        return self.session.rejects_of_query(self.name)

    def to_stream(self) -> Any:
        """A Spark streaming DataFrame of the results, for any Spark job: each row once."""
        return self.session.stream_of(self.name)

    def invoke(self, at: datetime | int | None = None) -> pa.Table:
        """The current answer of a relation (a query without ISTREAM and the like), or its answer
        at an instant (a time, or µs since 1970)."""
        self._raise_if_failed()
        self.session.catch_up(self.name)
        return self.session.invoked(self.name, None if at is None else instant_of(at))

    def stats(self) -> dict[str, Any]:
        """Counters and sizes as of the last epoch."""
        return self.session.stats_of(self.name)

    @property
    def plan_log(self) -> list[Switch]:
        """Every switch of plan, oldest first: why, what it was to bring, and what it brought."""
        return list(self.session.coordinator.adaptation.log(self.name))

    @property
    def coverage(self) -> Coverage:
        """Whether its windows have seen all the rows they ask for, or since when."""
        return self.session.coverage_of(self.name)

    def pause(self) -> None:
        """Let it rest; what it has yet to see is kept for it."""
        self.session.pause(self.name)

    def resume(self) -> None:
        """Go on where it stopped."""
        self.session.resume(self.name)

    def drop(self) -> None:
        """Remove it, its state and its results."""
        self.session.drop_query(self.name)

    def alter(self, sql: str) -> None:
        """Let another SELECT take its place at the next epoch, its windows filled from what is
        kept. Its columns stay the same."""
        self.session.alter_to(self.name, sql)

    def limit(self) -> None:
        """Apply its limit of state, if it has one."""
        limits, limit = self.session.coordinator.limits, self.bound.options.state_limit
        limits.pop(self.name, None)
        if limit is not None:
            limits[self.name] = limit

    def explain(self, adapt: bool = False) -> str:
        """The plan; with `adapt` what was learned and changed while it ran, too."""
        text = self.session.explain(self)
        if adapt:
            text += "\n" + explain_adaptation(self.session.coordinator.adaptation, self.name)
        return text

    def _raise_if_failed(self) -> None:
        state = self.session.known_state(self.name)
        if state.status == FAILED:
            raise QueryFailed(
                f"query {self.name} failed: {(state.error or '').splitlines()[0]}",
                remedy="see Query.stats()['error'] for the whole story",
            )

    def __repr__(self) -> str:
        return f"Query({self.name!r}, {self.status})"


@dataclass(slots=True)
class Prepared:
    """A query that is ready to be registered: bound and planned by the names as they stood."""

    name: str
    text: str
    bound: BoundQuery
    plan: QueryPlan
    reads: dict[str, Relation]
    statement: ast.SelectStatement | ast.CreateQuery
    script: str
    session: Session
    altered: Mapping[str, Any]
    """Options that ALTER QUERY has set, and that still hold."""

    @property
    def is_outdated(self) -> bool:
        """Whether a name it was made from stands for something else by now."""
        return any(self.session.catalog.relation(n) != r for n, r in self.reads.items())

    def again(self) -> Prepared:
        return self.session.prepare(self.name, self.statement, self.script, self.altered)
