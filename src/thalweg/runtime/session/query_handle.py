"""A registered query as its owner holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

import pyarrow as pa

from thalweg.adapt.planlog import Switch
from thalweg.instants import instant_of
from thalweg.models.picture import Picture
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.coverage import Coverage
from thalweg.runtime.lifecycle.query_catalog import Registered
from thalweg.runtime.sinks.sinks import Sink
from thalweg.store.packs import PackMeta

DROPPED = "dropped"


class Commands(Protocol):
    """What a handle asks of its engine, by the name of the query."""

    def is_registered(self, query: Registered) -> bool: ...
    def bound(self, query: Registered) -> BoundQuery: ...
    def plan(self, query: Registered) -> QueryPlan: ...
    def schema(self, query: Registered) -> pa.Schema: ...
    def status(self, name: str) -> str: ...
    def results(self, name: str, after: int) -> pa.Table: ...
    def output(self, query: Registered, packs: Sequence[PackMeta]) -> pa.Table: ...
    def rejects_of_query(self, name: str) -> pa.Table: ...
    def follow(self, name: str) -> Any: ...
    def invoke(self, name: str, at: int | None) -> pa.Table: ...
    def models(self, name: str) -> pa.Table: ...
    def plot(self, name: str, column: str | None) -> Picture: ...
    def stats(self, name: str) -> dict[str, Any]: ...
    def plan_log(self, name: str) -> list[Switch]: ...
    def coverage(self, name: str) -> Coverage: ...
    def manage(self, verb: str, name: str) -> None: ...
    def alter(self, name: str, sql: str) -> None: ...
    def explain_query(self, query: Registered, adapt: bool) -> str: ...


@dataclass(frozen=True, repr=False)
class Query:
    """A registered continuous query."""

    _registered: Registered
    _commands: Commands = field(compare=False)

    @property
    def name(self) -> str:
        return self._registered.name

    @property
    def text(self) -> str:
        return self._registered.text

    @property
    def sinks(self) -> list[Sink]:
        return self._registered.sinks

    @property
    def bound(self) -> BoundQuery:
        """Its logical plan; of one among very many it is made when it is asked for."""
        return self._commands.bound(self._registered)

    @property
    def plan(self) -> QueryPlan:
        """The physical plan in force; of a query that is run together with others, its own."""
        return self._commands.plan(self._registered)

    @property
    def schema(self) -> pa.Schema:
        return self._commands.schema(self._registered)

    @property
    def status(self) -> str:
        """running, paused, failed, or dropped."""
        if not self._commands.is_registered(self._registered):
            return DROPPED
        return self._commands.status(self.name)

    def results(self, after_epoch: int = 0) -> pa.Table:
        """What was emitted and is still kept (see `results_retain`), in the order of time: the
        columns, `__ts`, and `__sign` for relations. With `after_epoch` only what was emitted in
        later epochs (`stats()["epoch"]` is the last one)."""
        return self._commands.results(self.name, after_epoch)

    def output(self, packs: Sequence[PackMeta]) -> pa.Table:
        """The rows of packs that the report of an epoch names (`EpochReport.outputs`)."""
        return self._commands.output(self._registered, packs)

    def rejects(self) -> pa.Table:
        """Rows the query could not judge: `__ts`, the expression, the reason, the row."""
        return self._commands.rejects_of_query(self.name)

    def to_stream(self) -> Any:
        """A Spark streaming DataFrame of the results, for any Spark job: each row once."""
        return self._commands.follow(self.name)

    def invoke(self, at: datetime | int | None = None) -> pa.Table:
        """The current answer of a relation (a query without ISTREAM and the like), or its answer
        at an instant (a time, or µs since 1970)."""
        return self._commands.invoke(self.name, None if at is None else instant_of(at))

    def models(self) -> pa.Table:
        """The segments of sources with MODEL, for as long as results are kept: the source, its key,
        `start`, `end` (NULL while it lasts), for each modeled column an array of coefficients in
        seconds since `start`, and `bound`, an array with the bound of each."""
        return self._commands.models(self.name)

    def plot(self, column: str | None = None) -> Picture:
        """A picture of the segments of a modeled column, by default the first, with the bounds
        around them and the rows of the streams that are still kept. It shows in a notebook;
        `save(path)` writes it as SVG."""
        return self._commands.plot(self.name, column)

    def stats(self) -> dict[str, Any]:
        """Counters and sizes as of the last epoch."""
        return self._commands.stats(self.name)

    @property
    def plan_log(self) -> list[Switch]:
        """Every switch of plan, oldest first: why, what it was to bring, and what it brought."""
        return self._commands.plan_log(self.name)

    @property
    def coverage(self) -> Coverage:
        """Whether its windows have seen all the rows they ask for, or since when."""
        return self._commands.coverage(self.name)

    def pause(self) -> None:
        """Pause it; what it has yet to see is kept for it."""
        self._commands.manage("PAUSE", self.name)

    def resume(self) -> None:
        """Resume it where it stopped."""
        self._commands.manage("RESUME", self.name)

    def drop(self) -> None:
        """Remove it, its state and its results."""
        self._commands.manage("DROP", self.name)

    def alter(self, sql: str) -> None:
        """Let another SELECT take its place at the next epoch, its windows filled from what is
        kept. Its columns stay the same."""
        self._commands.alter(self.name, sql)

    def explain(self, adapt: bool = False) -> str:
        """The plan; with `adapt` what was learned and changed while it ran, too."""
        return self._commands.explain_query(self._registered, adapt)

    def __repr__(self) -> str:
        return f"Query({self.name!r}, {self.status})"
