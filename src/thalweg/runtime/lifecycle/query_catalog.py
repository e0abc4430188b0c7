"""The queries that are registered, by name: what they say, what they read, where output goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache

import pyarrow as pa

from thalweg.errors import StillRead, UnknownName, did_you_mean
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import ViewDef
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.planner import Planner
from thalweg.runtime.sinks.sinks import Sink, TableSink

Callback = Callable[[pa.Table], object]
_interned = cache(lambda names: names)


@dataclass(slots=True, eq=False)
class Registered:
    """A registered query. Of one among very many the `bound` form is not kept, but made when
    it is asked for (`QueryCatalog.bound`)."""

    name: str
    text: str
    callback: Callback | None = None
    sinks: list[Sink] = field(default_factory=list)
    bound: BoundQuery | None = None


class QueryCatalog:
    """Registered queries, and what they and views were made from (`reads`), directly or through
    others."""

    def __init__(self, planner: Planner, plans: PlanTable) -> None:
        self.planner = planner
        self.plans = plans
        self.queries: dict[str, Registered] = {}
        self.reads: dict[str, frozenset[str]] = {}

    def add(self, query: Registered, reads: Iterable[str]) -> Registered:
        """Make a query known, for others to read as well."""
        self.queries[query.name] = query
        self.reads[query.name] = _interned(frozenset(reads))
        self.planner.catalog.views[query.name] = ViewDef(query.name, query.text)
        return query

    def say(self, name: str, text: str, bound: BoundQuery, reads: Iterable[str]) -> None:
        """Let a query say something else from here on."""
        query = self.queries[name]
        query.text, query.bound = text, bound
        self.add(query, reads)

    def keep(self, query: Registered) -> None:
        """Let an entry that others hold stand for the query of its name."""
        new = self.queries[query.name]
        query.text, query.bound, query.sinks = new.text, new.bound, new.sinks
        self.queries[query.name] = query

    def remove(self, name: str) -> None:
        del self.queries[name]
        self.reads.pop(name, None)
        self.planner.catalog.views.pop(name, None)

    def find(self, name: str) -> Registered:
        """The query that is meant: case makes no difference."""
        known = self.planner.catalog.relation(name) if name not in self.queries else None
        found = self.queries.get(name if known is None else known.name)
        if found is None:
            raise UnknownName(f"unknown query {name}", remedy=did_you_mean(name, self.queries))
        return found

    def bound(self, name: str) -> BoundQuery:
        """Its logical plan."""
        return self.bound_of(self.queries[name])

    def bound_of(self, query: Registered) -> BoundQuery:
        """The logical plan of a query that may have been dropped."""
        return self.planner.bind(query.text) if query.bound is None else query.bound

    def plan(self, name: str) -> QueryPlan:
        """The physical plan in force; of a query that is run together with others, its own."""
        found = self.plans.get(name)
        return self.planner.physical(self.bound(name)) if found is None else found

    def remember(self, name: str, bound: BoundQuery | None) -> None:
        """Keep the bound form of a query that is run by itself, or forget it."""
        if name in self.queries:
            self.queries[name].bound = bound

    def keeps_answer(self, name: str) -> bool:
        """Whether its current answer is kept where others read it (INTO TABLE)."""
        query = self.queries.get(name)
        return query is not None and any(isinstance(s, TableSink) for s in query.sinks)

    # -- who reads what ----------------------------------------------------------------------

    def readers_of(self, name: str) -> list[str]:
        """Queries and views made from this name."""
        return [reader for reader, read in list(self.reads.items()) if name in read]

    def refuse_while_read(self, name: str, what: str) -> None:
        readers = self.readers_of(name)
        if readers:
            shown = ", ".join(readers[:5]) + (", ..." if len(readers) > 5 else "")
            raise StillRead(
                f"{name} cannot be {what}: {shown} read{'s' if len(readers) == 1 else ''} it",
                remedy=f"drop {'it' if len(readers) == 1 else 'them'} first",
            )
