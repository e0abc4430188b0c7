"""What Engine and Runner share: names, statements, plans, results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import groupby
from typing import Any, TypeVar

import pyarrow as pa

from thalweg.config import USER_FUNCTION_DEADLINE
from thalweg.errors import (
    ConfigError,
    DuplicateName,
    NotAvailableYet,
    ThalwegError,
    UnknownName,
    did_you_mean,
)
from thalweg.exec.constants import constant_value
from thalweg.lang import ast
from thalweg.lang.binder import bind
from thalweg.lang.definitions import stream_definition
from thalweg.lang.moments import moment
from thalweg.lang.parser import parse, parse_query, same_text
from thalweg.plan.bounded import verdict
from thalweg.plan.catalog import (
    DEFAULT_IDLE,
    SYSSTREAM,
    NotedCatalog,
    StreamDef,
    TableDef,
    ViewDef,
)
from thalweg.plan.explain import explain
from thalweg.plan.logical import format_duration
from thalweg.plan.pairs import PAIRS, pairs_of
from thalweg.plan.physical import QueryPlan
from thalweg.plan.pipelines import Orders
from thalweg.plan.planner import plan_query
from thalweg.plan.query import BoundQuery, SinkSpec
from thalweg.plan.rewrites import optimize
from thalweg.plan.standing import StandingFilter, standing_filter
from thalweg.runtime.epoch.coordinator import Coordinator
from thalweg.runtime.invoke.materialize_modes import AUTO, Standing
from thalweg.runtime.lifecycle.coverage import COMPLETE
from thalweg.runtime.lifecycle.retained_views import RetainedViews
from thalweg.runtime.results.results_reader import Outcomes, described_schema
from thalweg.runtime.session.management import Management
from thalweg.runtime.session.query_handle import Callback as Callback
from thalweg.runtime.session.query_handle import Prepared
from thalweg.runtime.session.query_handle import Query as Query
from thalweg.runtime.sharing.cohort_admission import Folding
from thalweg.runtime.sharing.dormant_queries import Sleeping
from thalweg.runtime.sharing.filter_cohorts import Members, whole_stream
from thalweg.runtime.sinks.sinks import ConsoleSink, FilesSink, FunctionSink, Sink, TableSink
from thalweg.runtime.sources.python_arguments import refuse_name
from thalweg.runtime.state.engine_state import FILTERS, RUNNING, P, QueryState
from thalweg.store.storage import Storage

T = TypeVar("T")
_interned = cache(lambda names: names)


@dataclass(slots=True)
class Session(Outcomes, Management):
    """Names and statements over one coordinator."""

    coordinator: Coordinator
    storage: Storage
    queries: dict[str, Query] = field(default_factory=dict)
    reads: dict[str, frozenset[str]] = field(default_factory=dict)
    default_idle: int | None = DEFAULT_IDLE
    function_deadline: float | None = USER_FUNCTION_DEADLINE
    members: Members = field(init=False)
    standing: Standing = field(init=False)
    sleeping: Sleeping = field(init=False)
    folding: Folding = field(init=False)
    retained: RetainedViews = field(init=False)
    _unnamed: int = 0

    def __post_init__(self) -> None:
        self.members = Members(FILTERS, self.coordinator, self.cohort_plan, self._filter)
        self.members.load()
        self.standing = Standing(self)
        self.sleeping = Sleeping(self)
        self.retained = RetainedViews(self)
        self.folding = Folding(self)

    # -- queries -----------------------------------------------------------------------------

    def query(self, sql: str, name: str | None = None, callback: Callback | None = None) -> Query:
        """Register a continuous query; `callback` gets each epoch's output as a table."""
        statements = parse(sql)
        if len(statements) != 1 or not isinstance(
            statements[0], (ast.SelectStatement, ast.CreateQuery)
        ):
            raise ConfigError(
                "query() takes one SELECT (or CREATE QUERY)", remedy="use sql() for scripts"
            )
        statement = statements[0]
        if isinstance(statement, ast.CreateQuery):
            name = name or statement.name
        chosen = name or self._free_name(statement.text)
        return self._register(chosen, statement, sql, callback)

    def _free_name(self, text: str) -> str:
        """A name for a bare SELECT: the one it had on this path, or a new one."""
        state = self.coordinator.state
        for name, known in state.texts().items():
            if name not in self.queries and same_text(known, text):
                return name
        for name, member in self.members.by_name.items():
            if name not in self.queries and same_text(member.text, text):
                return name
        groups = (self.queries, state.queries, state.asleep, self.members.by_name)
        while any((name := f"q{self._unnamed + 1}") in group for group in groups):
            self._unnamed += 1
        return name

    def _register(
        self,
        name: str,
        statement: ast.SelectStatement | ast.CreateQuery,
        script: str,
        callback: Callback | None,
    ) -> Query:
        """`script` is the text around the statement, which error places point into."""
        self._refuse_taken(name, statement.text)
        known = self.coordinator.state.known(name) or self.members.by_name.get(name)
        if known is not None and not same_text(known.text, statement.text):
            statement, script = select_of(known.text), known.text  # ALTER QUERY has changed it
        prepared = self.prepare(name, statement, script)
        found: Query = self.between_epochs(lambda: self._admit(prepared, callback))
        return found

    def prepare(
        self,
        name: str,
        statement: ast.SelectStatement | ast.CreateQuery,
        script: str,
        altered: Mapping[str, Any] | None = None,
    ) -> Prepared:
        """Bind and plan a query; nothing is changed by it. Options that were `altered` hold for
        the same text again, or if they are given."""
        known = self.coordinator.state.known(name)
        names = NotedCatalog.of(self.catalog)
        found = bind(statement.query, names, script)
        bound = replace(optimize(found, constant_value), text=statement.text)
        if altered is None and known is not None and same_text(known.text, statement.text):
            altered = known.altered
        if altered:
            bound = replace(bound, options=replace(bound.options, **altered))
        plan = plan_query(bound, names)
        if known is None or not known.mode or not same_text(known.text, statement.text):
            self.standing.refuse(name, bound)  # one that runs has found its mode
        return Prepared(
            name, statement.text, bound, plan, names.asked, statement, script, self, altered or {}
        )

    def _refuse_taken(self, name: str, text: str) -> None:
        refuse_name(name)
        if name.lower() == SYSSTREAM.lower():
            raise DuplicateName(f"{SYSSTREAM} is the engine's own", remedy="use another name")
        known = self.coordinator.state.known(name) or self.members.by_name.get(name)
        if known is not None and not any(same_text(t, text) for t in (known.text, known.created)):
            raise DuplicateName(
                f"a different query {name} exists",
                remedy=f"use another name, or ALTER QUERY {name} AS SELECT ...",
            )
        taken = self.catalog.relation(name) if name not in self.queries else None
        if known is None and taken is not None:
            raise DuplicateName(f"{taken.name} is already defined", remedy="use another name")

    def _admit(self, prepared: Prepared, callback: Callback | None) -> Query:
        """Register a query, between two epochs."""
        name = prepared.name
        self._refuse_taken(name, prepared.text)
        if prepared.is_outdated:
            prepared = prepared.again()
        bound, text = prepared.bound, prepared.text
        shared = self.folding.shared(prepared, callback)
        if shared is not None:
            return self._enrolled(prepared, shared)
        if name in self.coordinator.state.asleep:
            self.standing.watch(name, bound)
            return self._made_known(Query(name, text, self, callback), prepared.reads)
        if name in self.members.by_name:
            self.unfold(name)
        for stream in bound.streams:  # rejects become a stream when somebody reads them
            self.catalog.streams.setdefault(stream, self.catalog.stream(stream))
        query = Query(name, text, self, callback, known=bound)
        query.sinks = self._sinks(query)
        self.coordinator.add_query(name, text, prepared.plan, bound.options)
        self.standing.come(name, bound)
        self.coordinator.state.queries[name].schema = described_schema(query.schema)
        query.limit()
        return self._made_known(query, prepared.reads)

    def _made_known(self, query: Query, reads: Iterable[str]) -> Query:
        self.queries[query.name] = query
        self.reads[query.name] = _interned(frozenset(reads))
        self.catalog.views[query.name] = ViewDef(query.name, query.text)  # for others to read
        return query

    def _enrolled(self, prepared: Prepared, shared: StandingFilter) -> Query:
        name, text = prepared.name, prepared.text
        member = self.members.by_name.get(name)
        if member is None:
            self.members.admit(name, text, shared, prepared.bound.options.history)
        elif member.cohort not in self.coordinator.plans:
            self.members.resume()
        return self._made_known(Query(name, text, self), prepared.reads)

    def cohort_plan(self, about: str, text: str) -> QueryPlan:
        """The plan of a cohort, from what it is about and the text of a member."""
        if not about.startswith(PAIRS):
            return self.planned(whole_stream(about))
        found = pairs_of(self.bind(text), self.catalog)
        assert found is not None
        return found.plan

    def planned(self, text: str) -> QueryPlan:
        return self.physical(self.bind(text))

    def _filter(self, text: str) -> StandingFilter | None:
        return standing_filter(self.planned(text))

    def resume_members(self) -> None:
        """Members of an earlier run."""
        try:
            self.retained.resume()
            self.members.resume()
            self.standing.wheres.resume()
        except ThalwegError as error:
            raise ConfigError(
                f"queries of an earlier run cannot go on: {error.message}",
                remedy="register their streams again before starting",
            ) from error
        for name, member in self.members.by_name.items():
            if name not in self.queries:
                self._made_known(Query(name, member.text, self), [member.stream])
        for name, query in self.coordinator.state.asleep.items():
            if name not in self.queries:
                self._refuse_without(name, query.reads)
                known = self._made_known(Query(name, query.text, self), query.reads)
                if AUTO in f"{query.text} {query.altered}".lower():
                    self.standing.watch(name, known.bound)

    def _refuse_without(self, name: str, reads: Iterable[str]) -> None:
        queries = self.coordinator.state.queries
        missing = [r for r in reads if self.catalog.relation(r) is None and r not in queries]
        if missing:
            raise ConfigError(
                f"query {name} of an earlier run cannot go on: there is no {missing[0]}",
                remedy="register its streams, tables and functions again before starting",
            )

    def unfold(self, name: str) -> None:
        """Let a member, or one that sleeps, go on as a query of its own, from where it is."""
        self.folding.unfold(name)
        self.sleeping.wake(name)

    def _sinks(self, query: Query) -> list[Sink]:
        found: list[Sink] = []
        if query.bound.sink is not None:
            found.append(self.make_sink(query, query.bound.sink))
        if query.callback is not None:
            found.append(FunctionSink(query.callback))
        return found

    def make_sink(self, query: Query, spec: SinkSpec) -> Sink:
        if spec.kind == "console":
            return ConsoleSink(query.name)
        if spec.kind == "table":
            return TableSink(query.name, spec, partial(self._answer_before, query.name))
        if spec.kind in ("files", "changelog"):
            return FilesSink(query.name, spec, self.coordinator.state.identity)
        raise NotAvailableYet("INTO SPARK needs an Engine")

    def bind(self, text: str) -> BoundQuery:
        """The optimised logical plan of a SELECT."""
        return optimize(bind(parse_query(text), self.catalog, text), constant_value)

    def physical(self, bound: BoundQuery, orders: Orders | None = None) -> QueryPlan:
        return plan_query(bound, self.catalog, orders)

    # -- statements --------------------------------------------------------------------------

    def sql(self, script: str) -> Any:
        """Run statements separated by semicolons; returns the last one's result. While an engine
        runs, changes that follow one another are made at once."""
        result: Any = None
        for changes, group in groupby(parse(script), key=_is_change):
            run = partial(self._execute_all, list(group), script)
            result = self.between_epochs(run) if changes else run()
        return result

    def _execute_all(self, statements: Sequence[ast.Statement], script: str) -> Any:
        return [self.execute(statement, script) for statement in statements][-1]

    def execute(self, statement: ast.Statement, text: str) -> Any:
        if isinstance(statement, ast.CreateStream):
            return self.create_stream(stream_definition(statement, text, self.default_idle))
        if isinstance(statement, ast.CreateTable):
            return self.create_table(statement, text)
        if isinstance(statement, ast.CreateQuery):
            return self._register(statement.name, statement, text, None)
        if isinstance(statement, ast.CreateView):
            return self.define_view(statement, text)
        if isinstance(statement, ast.SelectStatement):
            return self._register(self._free_name(statement.text), statement, text, None)
        if isinstance(statement, ast.Explain):
            return self._explain_statement(statement)
        if isinstance(statement, ast.Show):
            return self._show(statement)
        if isinstance(statement, ast.Invoke):
            at = None if statement.moment is None else moment(statement.moment, text)
            return self.known_query(statement.name).invoke(at)
        if isinstance(statement, ast.AlterQuery):
            return self.alter(statement, text)
        if isinstance(statement, ast.Manage):
            if statement.verb == "REFRESH":
                return self.refresh_table(statement.name)
            return self.manage(statement)
        raise NotAvailableYet(f"{_words(type(statement).__name__)} is not available yet")

    def alter_to(self, name: str, sql: str) -> None:
        """`ALTER QUERY name AS sql`."""
        statement = select_of(sql)
        self.alter(ast.AlterQuery(name, None, None, (), statement.query, 0, statement.text), sql)

    def between_epochs(self, action: Callable[[], T]) -> T:
        """Make a change between two epochs, which without a running engine is now."""
        return action()

    def for_good(self, action: Callable[[], T]) -> T:
        """The same, and committed when this returns."""
        result = self.between_epochs(action)
        self.coordinator.save(self.coordinator.state.clock)
        return result

    def catch_up(self, name: str) -> None:
        """Let a query go through the past it has still to see."""
        if self.standing.is_uncommitted(name):
            self.coordinator.save(self.coordinator.state.clock)
        while self.is_behind(name):
            if self.coordinator.epoch([], clock=self.coordinator.state.clock) is None:
                self.coordinator.save(self.coordinator.state.clock)
                break  # it rests

    def is_behind(self, name: str) -> bool:
        """Whether it has still to go through the past, and does."""
        query = self.known_state(name)
        if query.status != RUNNING and query.mode != P:  # a condition does not rest with it
            return False
        is_member = name in self.members.by_name
        return query.behind or (not is_member and self.standing.is_behind(name))

    def create_stream(self, definition: StreamDef) -> StreamDef:
        return self.define_stream(definition)

    def refresh_table(self, name: str) -> None:
        raise NotAvailableYet("REFRESH TABLE needs an Engine")

    def create_table(self, statement: ast.CreateTable, text: str) -> TableDef:
        raise NotAvailableYet("CREATE TABLE FROM needs an Engine")

    def _explain_statement(self, statement: ast.Explain) -> str:
        inner = statement.statement
        if statement.mode == "ADAPT" and isinstance(inner, str):
            return self.known_query(inner).explain(adapt=True)
        if statement.mode is not None:
            raise NotAvailableYet(f"EXPLAIN {statement.mode} is not available yet")
        return self.explain(self.known_query(inner) if isinstance(inner, str) else inner.text)

    def known_query(self, name: str) -> Query:
        known = self.catalog.relation(name) if name not in self.queries else None
        found = self.queries.get(name if known is None else known.name)
        if found is None:
            raise UnknownName(f"unknown query {name}", remedy=did_you_mean(name, self.queries))
        return found

    def known_state(self, name: str) -> QueryState:
        """Its state, or that of the cohort it is a member of."""
        name = self.known_query(name).name
        member = self.members.by_name.get(name)
        if member is None:
            found = self.coordinator.state.known(name)
            assert found is not None
            return found
        return self.coordinator.state.queries.get(member.cohort) or QueryState(member.text)

    def explain(self, query: str | Query) -> str:
        """The plan, routing and bounded-state verdict of a query (by name, handle or text)."""
        if isinstance(query, str) and query in self.queries:
            query = self.queries[query]
        bound = query.bound if isinstance(query, Query) else self.bind(_select_text(query))
        plan = query.plan if isinstance(query, Query) else self.physical(bound)
        notes = {s: self._note_on(self.catalog.stream(s)) for s in bound.streams}
        text = explain(plan, verdict(bound.root), notes)
        for sink in query.sinks if isinstance(query, Query) else ():
            text += f"\noutput: {bound.sink or 'callback'} ({sink.guarantee})"
        return text

    def _note_on(self, stream: StreamDef) -> str:
        """How long a stream is waited for, and whether it is just now."""
        late = f"lateness {format_duration(stream.lateness)}" if stream.lateness else "in order"
        if stream.idle is None:
            return f"{late}, waited for always"
        silent = " (silent now: not waited for)" if stream.name in self.coordinator.idle else ""
        return f"{late}, idle after {format_duration(stream.idle)}{silent}"

    def _show(self, statement: ast.Show) -> pa.Table:
        state = self.coordinator.state
        if statement.what == "STREAMS":
            rows = [
                {"name": n, "rows": s.rows, "late": s.late, "rejected": s.rejected}
                for n, s in state.streams.items()
            ]
        elif statement.what == "QUERIES":
            rows = self._registered()
        elif statement.what == "TABLES":
            rows = [{"name": n, "rows": sum(p.rows for p in ps)} for n, ps in state.tables.items()]
        elif statement.what == "PLANS":
            rows = [{"plan": self.known_query(str(statement.name)).explain()}]
        else:
            rows = [
                {"stream": n, "packs": len(s.packs), "rows": sum(p.rows for p in s.packs),
                 "bytes": sum(p.bytes for p in s.packs)}
                for n, s in state.streams.items()
            ]  # fmt: skip
        return pa.Table.from_pylist(rows)

    def _registered(self) -> list[dict[str, Any]]:
        state = self.coordinator.state
        own = [(n, q.text, q) for n, q in list(state.queries.items()) if not n.startswith("__")]
        own += [(n, q.text, q) for n, q in list(state.asleep.items())]
        cohorts = state.queries
        own += [
            (m.name, m.text, cohorts.get(m.cohort) or QueryState(m.text))
            for m in list(self.members.by_name.values())
        ]
        return [
            {"name": name, "status": _status(q), "text": text, "coverage": self._covered(name)}
            for name, text, q in own
        ]

    def _covered(self, name: str) -> str | None:
        if name in self.members.by_name:
            return COMPLETE
        return str(self.coverage_of(name)) if name in self.queries else None

    def stream_of(self, name: str) -> Any:
        raise ConfigError("to_stream() needs an Engine")


def _select_text(text: str) -> str:
    statements = parse(text)
    if len(statements) == 1 and isinstance(statements[0], (ast.SelectStatement, ast.CreateQuery)):
        return statements[0].text
    raise ConfigError("only one SELECT or CREATE QUERY can be explained")


def select_of(text: str) -> ast.SelectStatement:
    return ast.SelectStatement(parse_query(text), text, 0)


def _is_change(statement: ast.Statement) -> bool:
    """Whether it changes what is registered, and nothing is read from a source for it."""
    changes = (ast.CreateQuery, ast.SelectStatement, ast.CreateView, ast.AlterQuery)
    dropped = isinstance(statement, ast.Manage) and statement.verb != "REFRESH"
    return isinstance(statement, changes) or dropped


def _status(query: QueryState) -> str:
    return "catching up" if query.behind and query.status == RUNNING else query.status


def _words(name: str) -> str:
    return "".join(f" {c}" if c.isupper() else c for c in name).strip().upper()
