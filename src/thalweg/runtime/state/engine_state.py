"""What the driver remembers between epochs, as it stands in the manifest."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, fields
from operator import attrgetter, itemgetter
from typing import Any

from thalweg.exec.frame import BEFORE_TIME
from thalweg.exec.groupstate import StatePack
from thalweg.store.packs import PackMeta

RUNNING, PAUSED, FAILED = "running", "paused", "failed"
VIEWS = "__view:"
"""Queries of views that are retained are called so, followed by the name of the view."""
FILTERS, WHERES = "__filters:", "__where:"
"""Cohorts of queries that put out what they filter, and of conditions that others ask about."""
NONE, P, C = "none", "p", "c"
"""Modes of queries that answer when they are invoked (see `runtime/invoke/row_fetch.py`)."""
ASLEEP = (NONE, P)
"""Those in which a query works only then."""
Described = list[Any]
"""A pack in its manifest form. What only grows (results, rejects) is kept so, described once:
a commit must not cost more the longer the engine has run."""


def new_identity() -> str:
    return uuid.uuid4().hex[:8]


@dataclass(slots=True)
class StreamState:
    """`watermark` is W at the end of the last epoch: older rows are late from then on. `heartbeat`
    is the instant before which the source has said no row will come. Since `kept_since` nothing was
    discarded: earlier rows may still be in packs but count as gone. Rows of a view that came late
    are what they should be since `whole_since`."""

    packs: list[PackMeta] = field(default_factory=list)
    rejects: list[Described] = field(default_factory=list)
    max_ts: int = BEFORE_TIME
    watermark: int = BEFORE_TIME
    last_clock: int = 0
    rows: int = 0
    late: int = 0
    rejected: int = 0
    heartbeat: int = BEFORE_TIME
    kept_since: int = BEFORE_TIME
    whole_since: int = BEFORE_TIME

    def to_json(self) -> dict[str, Any]:
        return {
            "packs": [p.to_json() for p in self.packs],
            "rejects": list(self.rejects),
            "max_ts": self.max_ts,
            "watermark": self.watermark,
            "last_clock": self.last_clock,
            "rows": self.rows,
            "late": self.late,
            "rejected": self.rejected,
            "heartbeat": self.heartbeat,
            "kept_since": self.kept_since,
            "whole_since": self.whole_since,
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> StreamState:
        packs = [PackMeta.from_json(p) for p in data["packs"]]
        rest = {k: v for k, v in data.items() if k not in ("packs", "rejects")}
        return StreamState(packs, list(data["rejects"]), **rest)


@dataclass(slots=True)
class WindowStore:
    """Rows before the `frontier` that windows over the order of a stream hold, once for several
    queries; `reach` is the furthest of them (see `runtime/sharing/window_stores.py`)."""

    stream: str
    reach: int
    frontier: int
    packs: list[StatePack] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        packs = [p.to_json() for p in self.packs]
        return {
            "stream": self.stream, "reach": self.reach, "frontier": self.frontier, "packs": packs
        }  # fmt: skip

    @staticmethod
    def from_json(data: dict[str, Any]) -> WindowStore:
        packs = [StatePack.from_json(p) for p in data["packs"]]
        return WindowStore(data["stream"], data["reach"], data["frontier"], packs)


@dataclass(slots=True)
class QueryState:
    """`frontier` is F: all instants below it have been processed; `first_seq` is the first log
    entry the query sees; `start` its first instant. `delivered` is the last epoch its sinks have.
    The changes of a relation up to instant `base_until` are added up in `base`, the rest is in
    the outputs. `schema` is that of the output, for readers from outside, and `forgotten` the last
    epoch whose output is kept no longer. `before` are the rows its streams had when it came.
    Where a limit of state is reached, rows of a stream before its floor are given up: `evicted`
    has, for the next step, the floor before and the floor now; from `approximate_since` on the
    output may lack results. `orders` are those its conjunctions were last run in, `altered` the
    options that ALTER QUERY has set, `created` the text it came with. `begins` has, per stream, the
    instant from which on it sees every row. A query is `behind` until it has gone through the past,
    which is pushed or pulled (`backfill`). What it emits before `silent_until` is not output: the
    changes of a relation are added up in `filling`, which then becomes its base, or, where a
    version of the query `replaces` another, its next output. A cohort (see `runtime/sharing/filter_cohorts.py`)
    has a `roll` of members, some of them `struck` off; where a query `was_member` it has earlier
    results among theirs. A query that speaks only when it is invoked has a `mode` (see
    `runtime/invoke/row_fetch.py`). `begun` says that there were rows before
    its silence ends, whether they are kept or not. `stubs` are slots whose rows are in a
    store (see `runtime/sharing/window_stores.py`). Of a query that sleeps (see `runtime/sharing/dormant_queries.py`) also its
    `kin`, the names that it `reads`, and the `condition` that rows are asked for it under `p`."""

    text: str
    first_seq: int = 0
    frontier: int = BEFORE_TIME
    start: int | None = None
    status: str = RUNNING
    error: str | None = None
    slots: dict[str, list[StatePack]] = field(default_factory=dict)
    rejects: list[Described] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    delivered: int = 0
    base: list[Described] = field(default_factory=list)
    base_until: int = BEFORE_TIME
    schema: str = ""
    forgotten: int = 0
    before: dict[str, int] = field(default_factory=dict)
    floors: dict[str, int] = field(default_factory=dict)
    evicted: dict[str, list[int]] = field(default_factory=dict)
    approximate_since: int | None = None
    orders: list[list[int]] = field(default_factory=list)
    altered: dict[str, Any] = field(default_factory=dict)
    created: str = ""
    begins: dict[str, int] = field(default_factory=dict)
    silent_until: int = BEFORE_TIME
    behind: bool = False
    filling: list[Described] = field(default_factory=list)
    replaces: bool = False
    roll: list[Described] = field(default_factory=list)
    struck: list[int] = field(default_factory=list)
    was_member: list[Described] = field(default_factory=list)
    backfill: str = ""
    mode: str = ""
    stubs: dict[str, str] = field(default_factory=dict)
    begun: bool = False
    kin: str = ""
    reads: list[str] = field(default_factory=list)
    condition: str = ""

    def to_json(self, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`before` is what it was at the last commit: most of many queries have only come further
        since then."""
        has_slots = bool(self.slots or (before and before["slots"]))
        if before and not has_slots and _all_else(self) == _all_else_in(before):
            return {**before, "frontier": self.frontier, "delivered": self.delivered}
        return {
            "text": self.text,
            "first_seq": self.first_seq,
            "frontier": self.frontier,
            "start": self.start,
            "status": self.status,
            "error": self.error,
            "slots": {s: [p.to_json() for p in ps] for s, ps in self.slots.items()},
            "rejects": list(self.rejects),
            "counts": dict(self.counts),
            "delivered": self.delivered,
            "base": list(self.base),
            "base_until": self.base_until,
            "schema": self.schema,
            "forgotten": self.forgotten,
            "before": dict(self.before),
            "floors": dict(self.floors),
            "evicted": {s: list(e) for s, e in self.evicted.items()},
            "approximate_since": self.approximate_since,
            "orders": [list(o) for o in self.orders],
            "altered": dict(self.altered),
            "created": self.created,
            "begins": dict(self.begins),
            "silent_until": self.silent_until,
            "behind": self.behind,
            "filling": list(self.filling),
            "replaces": self.replaces,
            "roll": list(self.roll),
            "struck": list(self.struck),
            "was_member": list(self.was_member),
            "backfill": self.backfill,
            "mode": self.mode,
            "stubs": dict(self.stubs),
            "begun": self.begun,
            "kin": self.kin,
            "reads": list(self.reads),
            "condition": self.condition,
        }

    @property
    def holds_files(self) -> bool:
        """Whether packs are kept for it alone, output aside."""
        return any((self.slots, self.stubs, self.rejects, self.base, self.filling))

    def as_far(self, text: str) -> QueryState:
        """Another query that has seen the same and come as far."""
        return QueryState(
            text, self.first_seq, self.frontier, self.start, created=text, before=dict(self.before),
            floors=dict(self.floors), begins=dict(self.begins), behind=self.behind,
        )  # fmt: skip

    def asleep_to_json(self) -> dict[str, Any]:
        """Of a query that sleeps, and holds no state: there may be very many of them."""
        found = {name: copy(getattr(self, name)) for name in _NAMES}
        return {n: v for n, v in found.items() if n == "text" or v != getattr(_NEW, n)}

    @staticmethod
    def from_json(data: dict[str, Any]) -> QueryState:
        given = data.get("slots", {})
        slots = {s: [StatePack.from_json(p) for p in ps] for s, ps in given.items()}
        rest = {k: v for k, v in data.items() if k in _NAMES and k != "slots"}
        was = rest.get("was_member") or []  # format 1 knew one membership
        rest["was_member"] = [was] if was and isinstance(was[0], int) else was
        return QueryState(**rest, slots=slots)


_NEW = QueryState("")
_NAMES = [f.name for f in fields(QueryState)]
_REST = [n for n in _NAMES if n not in ("slots", "frontier", "delivered")]
_all_else, _all_else_in = attrgetter(*_REST), itemgetter(*_REST)


@dataclass(slots=True)
class EngineState:
    """Everything hard. Keys of `outputs` are those of `runtime/state/output_keys.py`; `sources` holds the
    last batch taken in from each ingest query; `groups` describes the ingest groups; `clocks` says
    when epochs with output were committed; `versions` of tables are (from which instant, given at
    which clock).
    `identity` tells engines apart that write to the same place; `controlled` says how requests of
    other processes ended that have not been answered yet; members are numbered by `next_member`.
    `stores` are the rows of windows that queries share. Queries that sleep are not among the
    `queries`; `leaders` stand for them, by kin, and those that fell asleep, woke or went since the
    last commit are `stirred`. Members that had left and came back have their earlier memberships
    in `returned`."""

    epoch: int = 0
    next_seq: int = 0
    clock: int = 0
    incarnation: int = 0
    streams: dict[str, StreamState] = field(default_factory=dict)
    queries: dict[str, QueryState] = field(default_factory=dict)
    outputs: dict[str, list[Described]] = field(default_factory=dict)
    tables: dict[str, list[PackMeta]] = field(default_factory=dict)
    definitions: dict[str, str] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    clocks: dict[str, int] = field(default_factory=dict)
    versions: dict[str, list[list[int]]] = field(default_factory=dict)
    identity: str = field(default_factory=new_identity)
    controlled: dict[str, dict[str, Any]] = field(default_factory=dict)
    next_member: int = 0
    stores: dict[str, WindowStore] = field(default_factory=dict)
    asleep: dict[str, QueryState] = field(default_factory=dict)
    leaders: dict[str, str] = field(default_factory=dict)
    returned: dict[str, list[Described]] = field(default_factory=dict)
    stirred: set[str] = field(default_factory=set)

    def to_json(self, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """`before` is the state as it was last committed."""
        known = {} if before is None else before.get("queries", {})
        return {
            "epoch": self.epoch,
            "next_seq": self.next_seq,
            "clock": self.clock,
            "incarnation": self.incarnation,
            "streams": {n: s.to_json() for n, s in self.streams.items()},
            "queries": {n: q.to_json(known.get(n)) for n, q in self.queries.items()},
            "outputs": dict(self.outputs),
            "tables": {n: [p.to_json() for p in ps] for n, ps in self.tables.items()},
            "definitions": dict(self.definitions),
            "sources": dict(self.sources),
            "groups": {k: dict(g) for k, g in self.groups.items()},
            "clocks": dict(self.clocks),
            "identity": self.identity,
            "versions": {n: [list(v) for v in vs] for n, vs in self.versions.items()},
            "controlled": dict(self.controlled),
            "next_member": self.next_member,
            "stores": {k: s.to_json() for k, s in self.stores.items()},
            "asleep": self._asleep_to_json(before),
            "leaders": dict(self.leaders),
            "returned": dict(self.returned),
        }

    def _asleep_to_json(self, before: Mapping[str, Any] | None) -> dict[str, Any]:
        """The very same as before, if nobody has stirred."""
        known: dict[str, Any] = {} if before is None else before.get("asleep", {})
        changed = self.asleep.keys() if before is None else self.stirred
        if not changed:
            return known
        found = {name: q for name, q in known.items() if name not in changed}
        return found | {
            name: self.asleep[name].asleep_to_json() for name in changed if name in self.asleep
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> EngineState:
        if not data:
            return EngineState()
        return EngineState(
            data["epoch"],
            data["next_seq"],
            data["clock"],
            data["incarnation"],
            {n: StreamState.from_json(s) for n, s in data["streams"].items()},
            {n: QueryState.from_json(q) for n, q in data["queries"].items()},
            dict(data["outputs"]),
            {n: [PackMeta.from_json(p) for p in ps] for n, ps in data["tables"].items()},
            dict(data["definitions"]),
            dict(data["sources"]),
            {k: dict(g) for k, g in data["groups"].items()},
            dict(data["clocks"]),
            {n: [list(v) for v in vs] for n, vs in data.get("versions", {}).items()},
            data.get("identity") or new_identity(),
            dict(data.get("controlled", {})),
            data.get("next_member", 0),
            {k: WindowStore.from_json(s) for k, s in data.get("stores", {}).items()},
            {n: QueryState.from_json(q) for n, q in data.get("asleep", {}).items()},
            dict(data.get("leaders", {})),
            dict(data.get("returned", {})),
        )

    def known(self, name: str) -> QueryState | None:
        """The state of a query, asleep or not."""
        query = self.asleep.get(name)
        return self.queries.get(name) if query is None else self._as_awake(query)

    def asleep_as_awake(self, name: str) -> QueryState:
        """One that sleeps has come as far as its leader."""
        return self._as_awake(self.asleep[name])

    def _as_awake(self, query: QueryState) -> QueryState:
        leader = self.leaders.get(query.kin)
        if leader is not None:  # it has not just been woken
            query.frontier = self.queries[leader].frontier
        return query

    def texts(self) -> dict[str, str]:
        """What each query says, by name."""
        return {n: q.text for queries in (self.queries, self.asleep) for n, q in queries.items()}

    def seen_by(self, query: QueryState, stream: str) -> list[PackMeta]:
        """The packs of a stream that a query sees: those since it began."""
        return [p for p in self.streams[stream].packs if p.seq >= query.first_seq]

    def files(self) -> set[str]:
        """Every pack the state refers to."""
        found = {p.name for s in self.streams.values() for p in s.packs}
        found |= {p[0] for s in self.streams.values() for p in s.rejects}
        for query in self.queries.values():
            found |= {f for slot in query.slots.values() for p in slot for f in p.files}
            found |= {p[0] for p in query.rejects}
            found |= {p[0] for p in (*query.base, *query.filling, *query.roll)}
        found |= {f for store in self.stores.values() for p in store.packs for f in p.files}
        found |= {p[0] for packs in self.outputs.values() for p in packs}
        return found | {p.name for packs in self.tables.values() for p in packs}
