"""An engine's path, read from what is committed: no engine, no locks, nothing is changed."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from thalweg.adapt.loop import Adaptation
from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.plan.catalog import Catalog, TableDef, ViewDef
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import BoundQuery
from thalweg.plan.standing import standing_filter
from thalweg.runtime.invoke.instant_answers import InstantAnswers
from thalweg.runtime.invoke.invocations import Invocations
from thalweg.runtime.invoke.query_coverage import QueryCoverage
from thalweg.runtime.planner import Planner, output_schema
from thalweg.runtime.results.lookup import Membership
from thalweg.runtime.results.results_reader import ResultsReader
from thalweg.runtime.session.explainer import Explainer
from thalweg.runtime.session.reading import StateReading
from thalweg.runtime.sharing.filter_cohorts import Member, load_members, memberships
from thalweg.runtime.sinks.factory import PlannedSinks
from thalweg.runtime.sources.python_arguments import arrow_fields
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import CONDITIONS, FILTERS, QUERY, Definition, QueryState
from thalweg.runtime.state.stream_definitions import STREAM, VIEW, read_stream, read_view
from thalweg.statements import LANGUAGE
from thalweg.statements.protocol import Language
from thalweg.store import manifest
from thalweg.store.storage import Storage


class CommittedQueries:
    """A `QueryLookup` over a committed state. Queries are bound when they are asked for."""

    def __init__(self, storage: Storage, state: EngineState, planner: Planner) -> None:
        self._storage = storage
        self._state = state
        self._planner = planner
        self._members: dict[str, Member] = load_members(storage, state, FILTERS)
        own = {n: q.definition.text for n, q in state.of_kind(QUERY)}
        own |= {n: q.definition.text for n, q in state.dormant.items()}
        self._texts = own | {n: m.text for n, m in self._members.items()}
        self._bound: dict[str, BoundQuery] = {}

    def names(self) -> list[str]:
        return list(self._texts)

    def find(self, name: str) -> str:
        if name in self._texts:
            return name
        alike = (n for n in self._texts if n.lower() == name.lower())
        found = next(alike, None)
        if found is None:
            raise UnknownName(f"unknown query {name}", remedy=did_you_mean(name, self._texts))
        return found

    def text(self, name: str) -> str:
        return self._texts[name]

    def bound(self, name: str) -> BoundQuery:
        if name not in self._bound:
            views = self._planner.catalog.views
            for other, text in self._texts.items():  # it may read any of them
                views.setdefault(other, ViewDef(other, text))
            planned = self._planner.planned_again(
                name, self._texts[name], self.state(name).definition.altered
            )
            self._bound[name] = planned.bound
        return self._bound[name]

    def plan(self, name: str) -> QueryPlan:
        return self._planner.physical(self.bound(name))

    def windows(self, name: str) -> QueryPlan:
        return self.plan(name)

    def state(self, name: str) -> QueryState:
        member = self._members.get(name)
        found = self._state.known(name if member is None else member.cohort)
        return QueryState(Definition(self._texts[name])) if found is None else found

    def memberships(self, name: str) -> Sequence[Membership]:
        member = self._members.get(name)
        if member is None:
            return self.state(name).sharing.was_member
        filtered = standing_filter(self.plan(name))
        assert filtered is not None
        return memberships(self._state, member, filtered.columns)

    def cohort(self, name: str) -> str | None:
        member = self._members.get(name)
        return None if member is None else member.cohort

    def guarantees(self, name: str) -> Sequence[str]:
        bound = self.bound(name)
        if bound.sink is None:
            return []
        sinks = PlannedSinks(self._storage, self._state)
        return [sinks.make(name, bound.sink, output_schema(bound)).guarantee]


class AsCommitted:
    """What is committed is all there is: nothing is caught up with."""

    def asked(self, name: str) -> None:
        pass

    def catch_up(self, name: str) -> None:
        pass


class CommittedReader:
    """The last committed state of a path, as it was when this was made."""

    def __init__(self, storage: Storage, language: Language = LANGUAGE) -> None:
        epoch, saved = manifest.load(storage)
        state = EngineState.from_json(saved)
        state.epoch = epoch
        committed = state.to_json()
        catalog, definitions = _catalog(storage, state), Definitions(state)
        planner = Planner(catalog)
        self.queries = CommittedQueries(storage, state, planner)
        self._results = ResultsReader(storage, lambda: committed, self.queries)
        conditions = load_members(storage, state, CONDITIONS)
        answers = InstantAnswers(storage, lambda: committed, self.queries, conditions, catalog, {})
        self.coverage = QueryCoverage(state, self.queries)
        self._invocations = Invocations(
            self.queries, self._results, answers, self.coverage, AsCommitted()
        )
        explainer = Explainer(planner, self.queries, Adaptation(), lambda: ())
        self.reading = StateReading(
            state, self.queries, definitions, self.coverage, explainer, self._invocations, language
        )

    def results(self, name: str) -> pa.Table:
        """What a query has emitted and is still kept."""
        name = self.queries.find(name)
        self._invocations.refuse_failed(name)
        if self.queries.state(name).definition.mode:
            raise ConfigError(
                f"query {name} answers when it is invoked",
                remedy="use invoke(); without materialize a query emits changes",
            )
        return self._results.results(name)


def _catalog(storage: Storage, state: EngineState) -> Catalog:
    """The names that a path knows: streams, tables by their files, and views."""
    catalog, definitions = Catalog(), Definitions(state)
    for text in definitions.of(STREAM).values():
        stream = read_stream(text)
        if stream is not None:
            catalog.streams[stream.name] = stream
    for name, packs in state.tables.items():
        schema = storage.read_table(packs[0].name).schema
        own = pa.schema([f for f in schema if not f.name.startswith("__")])
        changes = len(state.versions.get(name, ())) > 1
        catalog.tables[name] = TableDef(name, arrow_fields(own), changes=changes)
    for name, text in definitions.of(VIEW).items():
        view = read_view(text)
        if not view.retained:
            catalog.views[name] = ViewDef(name, view.text)
    return catalog
