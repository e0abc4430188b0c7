"""What queries have given so far: results, current answers, rejects, counters."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.exec.emit import SIGN
from thalweg.exec.frame import BEFORE_TIME
from thalweg.exec.gather import Readable, rows_of
from thalweg.exec.many.sets import wanted_by
from thalweg.plan.bounded import verdict
from thalweg.plan.logical import EmitKind, format_instant
from thalweg.plan.query import BoundQuery
from thalweg.plan.types import to_arrow
from thalweg.runtime.epoch.coordinator import Coordinator
from thalweg.runtime.lifecycle.coverage import Coverage, coverage
from thalweg.runtime.lifecycle.history_start import rows_since
from thalweg.runtime.results.current_answer import Answer, instant_asked
from thalweg.runtime.session.state_components import components
from thalweg.runtime.sharing.filter_cohorts import Members, Membership
from thalweg.runtime.sharing.window_stores import shared_windows
from thalweg.runtime.state.engine_state import ASLEEP, RUNNING, QueryState
from thalweg.runtime.state.output_keys import keys_of, last_epoch_of
from thalweg.store.manifest import State
from thalweg.store.packs import TIME, PackMeta, with_times
from thalweg.store.storage import Storage

if TYPE_CHECKING:
    from thalweg.runtime.invoke.materialize_modes import Standing
    from thalweg.runtime.session.query_handle import Query
    from thalweg.runtime.sharing.dormant_queries import Sleeping

T = TypeVar("T")


class Files:
    """Files as they are read, each once, and the last one that was missing."""

    def __init__(self, storage: Storage) -> None:
        self.missing = ""
        self._storage = storage
        self._read: dict[str, pa.Table] = {}

    def read_table(self, name: str) -> pa.Table:
        try:
            if name not in self._read:
                self._read[name] = self._storage.read_table(name)
        except FileNotFoundError:
            self.missing = name
            raise
        return self._read[name]


class Outcomes:
    """The part of `Session` that looks at what is committed."""

    coordinator: Coordinator
    storage: Storage
    queries: dict[str, Query]
    members: Members
    known_state: Callable[[str], QueryState]
    standing: Standing
    sleeping: Sleeping

    def results_of(self, name: str) -> pa.Table:
        return self._settled(lambda committed, files: self._results_in(committed, files, name))

    def _settled(self, read: Callable[[State, Files], T]) -> T:
        """From what is committed. Files that go while they are read go after a newer commit, which
        does not name them; what has been read need not be read again."""
        files = Files(self.storage)
        while True:
            committed, missing = self.coordinator.committed, files.missing
            try:
                return read(committed, files)
            except FileNotFoundError:
                if committed is self.coordinator.committed or files.missing == missing:
                    raise

    def _results_in(self, committed: State, files: Files, name: str) -> pa.Table:
        schema = self.queries[name].schema
        memberships = self._memberships(name)
        parts = [self._as_member(committed, files, one, schema) for one in memberships]
        parts.append([_output(files, schema, packs) for packs in put_out(committed, name)])
        whole = pa.concat_tables([schema.empty_table(), *(t for part in parts for t in part)])
        # who has come and gone has put out in turns
        return whole.sort_by([(TIME, "ascending")]) if len(memberships) > 1 else whole

    def _as_member(
        self, committed: State, files: Files, membership: Membership, schema: pa.Schema
    ) -> list[pa.Table]:
        """What a query got together with others."""
        number, stream, columns = membership
        tables = []
        for packs in put_out(committed, self.members.outputs(stream)):
            found = []
            for pack in packs:
                table = files.read_table(pack.name)
                rows = wanted_by(table, number)
                if len(rows):
                    found.append(
                        table.select([*{c for _, c in columns}, TIME]).take(pa.array(rows))
                    )
            if found:
                tables.append(_projected(pa.concat_tables(found), columns, schema))
        return tables

    def _memberships(self, name: str) -> Sequence[Membership]:
        """What it is, or once was, a member of."""
        queries = self.coordinator.state.queries
        query, member = queries.get(name), self.members.by_name.get(name)
        if member is not None:
            return self.members.memberships(member, self.queries[name].plan)
        return (query or queries[name]).was_member  # it may have left just now

    def output_of(self, schema: pa.Schema, packs: Sequence[PackMeta]) -> pa.Table:
        """The output of an epoch, or of several that have been gathered, in time order."""
        return _output(self.storage, schema, packs)

    def answer_of(self, name: str, at: int | None = None) -> Answer:
        """What a relation's changes up to an instant add up to (None: all that is committed)."""
        query = self.queries[name]
        if query.bound.root.kind is not EmitKind.RELATION:
            kind = query.bound.root.kind.value
            raise ConfigError(
                f"query {name} emits {kind}: it has no current answer",
                remedy=f"register it without {kind}; results() has what it emitted",
            )
        return self._settled(lambda now, files: self._answer_in(now, files, query, at))

    def _answer_in(self, committed: State, files: Files, query: Query, at: int | None) -> Answer:
        """From one committed state: what is folded into the base leaves the results."""
        name = query.name
        described = committed.get("queries", {}).get(name, {})
        at = None if at is None else instant_asked(name, described.get("frontier", at) - 1, at)
        if at is not None and at < described.get("base_until", at):
            raise ConfigError(
                f"the answer of {name} at that time is no longer known",
                remedy=f"ask for {format_instant(described['base_until'])} or later "
                "(results_retain says how long results are kept)",
            )
        answer = Answer(query.schema)
        for pack in described.get("base", ()):
            answer.add(files.read_table(pack[0]))
        changes = self._results_in(committed, files, name)
        if at is not None:
            limit = pa.scalar(at, pa.int64()).cast(pa.timestamp("us", "UTC"))
            changes = changes.filter(pc.less_equal(changes.column(TIME), limit))
        answer.apply(changes)
        return answer

    def invoked(self, name: str, at: int | None = None) -> pa.Table:
        """The answer, with its status and coverage in the schema's metadata."""
        query = self.coordinator.state.known(name)
        if query is not None and query.mode:
            rows = self.standing.answer(name, at)
        else:
            rows = self.answer_of(name, at).rows()
        covered = self.coverage_of(name, at)
        told = {"status": covered.status, "coverage": str(covered.share)}
        if covered.since is not None:
            told["since"] = format_instant(covered.since)
        return rows.replace_schema_metadata({f"thalweg.{k}": v for k, v in told.items()})

    def coverage_of(self, name: str, at: int | None = None) -> Coverage:
        """Of its answer at an instant, by default the last one that is over."""
        query, state = self.known_state(name), self.coordinator.state
        plan = self.sleeping.plan_like(name) or self.queries[name].plan
        kept = {}
        for stream in plan.streams:
            known = state.streams[stream]
            kept[stream] = known.whole_since
            if query.mode in ASLEEP:  # its answers are made from what is still kept
                kept[stream] = max(known.whole_since, known.kept_since)
        return coverage(plan, query, at, state.stores, kept)

    def _answer_before(self, name: str, epoch: int) -> Answer:
        """The answer without the changes of an epoch and of later ones."""
        query, state = self.queries[name], self.coordinator.state
        answer = Answer(query.schema)
        for pack in state.queries[name].base:
            answer.add(self.storage.read_table(pack[0]))
        for key in keys_of(state.outputs, name):
            if last_epoch_of(key) < epoch:
                answer.apply(self.output_of(query.schema, metas(state.outputs[key])))
        return answer

    def rejects_of_query(self, name: str) -> pa.Table:
        return self._settled(lambda now, files: _rejects(now, files, "queries", name))

    def rejects(self, stream: str) -> pa.Table:
        """Rows of a stream that were late, had no time, or lay too far ahead, with the reason."""
        known = {*self.coordinator.catalog.streams, *self.coordinator.state.streams}
        if stream not in known:
            raise UnknownName(f"unknown stream {stream}", remedy=did_you_mean(stream, known))
        return self._settled(lambda now, files: _rejects(now, files, "streams", stream))

    def kept_rows(self, stream: str) -> int:
        """Rows that windows or RETAIN still reach; a pack may hold older ones for a while."""
        known = self.coordinator.state.streams[stream]
        return rows_since(self.storage, known.packs, known.kept_since)

    def stats_of(self, name: str) -> dict[str, Any]:
        state = self.coordinator.state
        if name in self.members.by_name:
            return self._stats_of_member(name)
        query = self.known_state(name)
        packs = [p for slot in query.slots.values() for p in slot]
        streams = {
            s: {
                "rows": state.streams[s].rows,
                "late": state.streams[s].late,
                "rejected": state.streams[s].rejected,
                "packs": len(state.streams[s].packs),
                "kept_rows": self.kept_rows(s),
                "kept_bytes": sum(p.bytes for p in state.streams[s].packs),
                "watermark": state.streams[s].watermark,
            }
            for s in self.queries[name].bound.streams
            if s in state.streams
        }
        marks = [s["watermark"] for s in streams.values() if s["rows"]]
        return {
            "status": query.status,
            "error": query.error,
            "epoch": state.epoch,
            "frontier": query.frontier,
            "emitted": query.counts.get("emitted", 0),
            "rejected": query.counts.get("rejected", 0),
            "state_bytes": sum(p.meta.bytes for p in packs),
            "state_rows": sum(p.meta.rows for p in packs),
            "shared_windows": shared_windows(state, query),
            **asdict(components(self.queries[name].plan, query, state, self.storage)),
            "bound": list(verdict(self.queries[name].bound.root).bounds),
            "approximate_since": query.approximate_since,
            "counts": dict(query.counts),
            "adapt": self.coordinator.adaptation.report(name),
            "streams": streams,
            "skew": max(marks) - min(marks) if marks else 0,
        }

    def _stats_of_member(self, name: str) -> dict[str, Any]:
        """It has no state of its own."""
        state = self.coordinator.state
        member = self.members.by_name[name]
        cohort = state.queries.get(member.cohort)
        stream = member.stream
        rows = state.streams[stream].rows if stream in state.streams else 0
        return {
            "status": RUNNING if cohort is None else cohort.status,
            "error": None if cohort is None else cohort.error,
            "epoch": state.epoch,
            "frontier": BEFORE_TIME if cohort is None else cohort.frontier,
            "emitted": self.results_of(name).num_rows,
            "rejected": 0,
            "state_bytes": 0,
            "state_rows": 0,
            "counts": {} if cohort is None else dict(cohort.counts),
            "shared": member.cohort,
            "streams": {stream: {"rows": rows}},
        }


def _projected(table: pa.Table, columns: list[tuple[str, str]], schema: pa.Schema) -> pa.Table:
    """Rows of a shared result as one query gives them: only now are its columns picked."""
    stamped = with_times(table.sort_by([(TIME, "ascending")]))
    picked = {name: stamped.column(column) for name, column in columns}
    return pa.table({**picked, TIME: stamped.column(TIME)}).cast(schema)


def described_schema(schema: pa.Schema) -> str:
    """A schema as text, for the manifest."""
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def output_schema(bound: BoundQuery) -> pa.Schema:
    fields = [pa.field(f.name, to_arrow(f.type)) for f in bound.schema]
    fields.append(pa.field(TIME, pa.timestamp("us", "UTC")))
    if bound.root.kind is EmitKind.RELATION:
        fields.append(pa.field(SIGN, pa.int8()))
    return pa.schema(fields)


def _output(files: Readable, schema: pa.Schema, packs: Sequence[PackMeta]) -> pa.Table:
    return with_times(rows_of(files, packs)).select(schema.names).cast(schema)


def _rejects(committed: State, files: Files, kind: str, name: str) -> pa.Table:
    described = committed.get(kind, {}).get(name, {})
    packs = metas(described.get("rejects", []))
    return _concatenated([files.read_table(p.name) for p in packs])


def put_out(committed: State, name: str) -> list[list[PackMeta]]:
    """Committed output under a name, in the order of epochs."""
    outputs = committed.get("outputs", {})
    return [metas(outputs[key]) for key in keys_of(outputs, name)]


def metas(packs: Iterable[list[Any]]) -> list[PackMeta]:
    return [PackMeta.from_json(p) for p in packs]


def _concatenated(tables: list[pa.Table]) -> pa.Table:
    if not tables:
        return pa.table({"__ts": pa.array([], pa.timestamp("us", "UTC"))})
    return with_times(pa.concat_tables(tables, promote_options="default"))
