"""What the driver remembers between epochs, as it stands in the manifest."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from thalweg.runtime.state.earlier_formats import LAYOUT, in_layout_of_today
from thalweg.runtime.state.field_readers import packs
from thalweg.runtime.state.query_state import Described, QueryState
from thalweg.runtime.state.serialization import Json
from thalweg.runtime.state.stream_state import StreamState, WindowStore
from thalweg.store.packs import PackMeta


def new_identity() -> str:
    return uuid.uuid4().hex[:8]


@dataclass(slots=True)
class EngineState:
    """Everything hard. Keys of `outputs` are those of `output_keys.py`; `sources` holds the last
    batch taken in from each ingest query; `groups` describes the ingest groups; `clocks` says when
    epochs with output were committed; `versions` of tables are (from which instant, given at which
    clock). `identity` tells engines apart that write to the same place; `controlled` says how
    requests of other processes ended that have not been answered yet; members of cohorts are
    numbered by `next_member`. Dormant queries are not among the `queries`; `leaders` stand for
    them, by group, and those that became dormant or ceased to be since the last commit
    are `dormant_changed`. What fails around the engine now is in `failures`. Log entries before
    that which is `dropped` of a stream are of one that had its name. Members that had left and are
    members again have their earlier memberships in `returned`."""

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
    window_stores: dict[str, WindowStore] = field(default_factory=dict)
    dormant: dict[str, QueryState] = field(default_factory=dict)
    leaders: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    returned: dict[str, tuple[Described, ...]] = field(default_factory=dict)
    dormant_changed: set[str] = field(default_factory=set)
    on_disk: Json = field(default_factory=dict, repr=False)
    """As it was read, in whatever layout; not written."""

    # -- as JSON -----------------------------------------------------------------------------

    def to_json(self, before: Mapping[str, Any] | None = None) -> Json:
        """`before` is the state as it was last committed."""
        known = {} if before is None else before.get("queries", {})
        return {
            "layout": LAYOUT,
            "identity": self.identity,
            **{name: getattr(self, name) for name in _NUMBERS},
            **{name: dict(getattr(self, name)) for name in _PLAIN},
            "streams": {n: s.to_json() for n, s in self.streams.items()},
            "window_stores": {k: s.to_json() for k, s in self.window_stores.items()},
            "tables": {n: [p.to_json() for p in ps] for n, ps in self.tables.items()},
            "groups": {k: dict(g) for k, g in self.groups.items()},
            "returned": {n: list(m) for n, m in self.returned.items()},
            "versions": {n: [list(v) for v in vs] for n, vs in self.versions.items()},
            "queries": {n: q.to_json(known.get(n)) for n, q in self.queries.items()},
            "dormant": self._dormant_to_json(before),
        }

    def _dormant_to_json(self, before: Mapping[str, Any] | None) -> Json:
        """The very same as before, if none of them has changed."""
        known: Json = {} if before is None else before.get("dormant", {})
        changed = self.dormant.keys() if before is None else self.dormant_changed
        if not changed:
            return known
        found = {name: q for name, q in known.items() if name not in changed}
        return found | {
            name: self.dormant[name].dormant_to_json() for name in changed if name in self.dormant
        }

    @staticmethod
    def from_json(saved: Json) -> EngineState:
        if not saved:
            return EngineState()
        data = in_layout_of_today(saved)
        data |= {name: dict(data.get(name, {})) for name in _PLAIN}
        return EngineState(
            **{name: data[name] for name in (*_NUMBERS, *_PLAIN)},
            identity=data["identity"] or new_identity(),
            streams={n: StreamState.from_json(s) for n, s in data["streams"].items()},
            queries={n: QueryState.from_json(q) for n, q in data["queries"].items()},
            tables={n: packs(ps) for n, ps in data["tables"].items()},
            groups={k: dict(g) for k, g in data["groups"].items()},
            versions={n: [list(v) for v in vs] for n, vs in data["versions"].items()},
            window_stores={k: WindowStore.from_json(s) for k, s in data["window_stores"].items()},
            dormant={n: QueryState.from_json(q) for n, q in data["dormant"].items()},
            returned={n: tuple(m) for n, m in data["returned"].items()},
            on_disk=saved,
        )

    # -- queries -----------------------------------------------------------------------------

    def known(self, name: str) -> QueryState | None:
        """The state of a query, dormant or not."""
        query = self.dormant.get(name)
        return self.queries.get(name) if query is None else self._as_awake(query)

    def dormant_as_awake(self, name: str) -> QueryState:
        """A dormant query, with the frontier of its leader."""
        return self._as_awake(self.dormant[name])

    def _as_awake(self, query: QueryState) -> QueryState:
        leader = self.leaders.get(query.sharing.dormant_group)
        if leader is not None:  # it has not just been woken
            query.progress.frontier = self.queries[leader].progress.frontier
        return query

    def of_kind(self, kind: str) -> list[tuple[str, QueryState]]:
        """The queries of a kind, by name."""
        return [(n, q) for n, q in list(self.queries.items()) if q.definition.kind == kind]

    def failure(self, kind: str, name: str) -> str | None:
        """What fails now of a query's sinks or a stream's source."""
        return self.failures.get(f"{kind}:{name}")

    def texts(self) -> dict[str, str]:
        """What each query says, by name."""
        both = (self.queries, self.dormant)
        return {n: q.definition.text for queries in both for n, q in queries.items()}

    def seen_by(self, query: QueryState, stream: str) -> list[PackMeta]:
        """The packs of a stream that a query sees: those since it began."""
        return [p for p in self.streams[stream].packs if p.seq >= query.history.first_seq]

    def files(self) -> set[str]:
        """Every pack the state refers to."""
        found = {p.name for s in self.streams.values() for p in s.packs}
        found |= {p[0] for s in self.streams.values() for p in s.rejects}
        for query in self.queries.values():
            found.update(query.operators.files)
            found.update(p[0] for p in _described(query))
        found |= {f for store in self.window_stores.values() for p in store.packs for f in p.files}
        found |= {p[0] for packs in self.outputs.values() for p in packs}
        return found | {p.name for packs in self.tables.values() for p in packs}


def _described(query: QueryState) -> Iterator[Described]:
    output = query.output
    yield from (*output.rejects, *output.base, *output.pending, *query.sharing.roll)


_NUMBERS = ("epoch", "next_seq", "clock", "incarnation", "next_member")
_PLAIN = (
    "outputs",
    "definitions",
    "sources",
    "clocks",
    "controlled",
    "leaders",
    "failures",
    "dropped",
)
