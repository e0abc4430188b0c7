"""Where a query begins: how much of the past it sees, and from which instant on it emits.

A query that sees the past is an ordinary query whose frontier lies behind: it goes through what is
kept, slice by slice, by the same steps as everything else, so that nothing is missed or seen twice
where the past ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.instants import BEFORE_TIME
from thalweg.plan.catalog import Catalog
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import HistoryStart, QueryState
from thalweg.runtime.state.stream_state import StreamState
from thalweg.store.packs import TIME, PackMeta
from thalweg.store.storage import Storage

REPLAY, SEED, NONE = "replay", "seed", "none"


@dataclass(frozen=True, slots=True)
class Beginning:
    """`begins` are the first instants of which all rows are seen, per stream; `first_seq` is the
    first log entry; nothing is emitted before `silent_until`."""

    begins: Mapping[str, int] = field(default_factory=dict)
    first_seq: int = 0
    silent_until: int = BEFORE_TIME

    @property
    def frontier(self) -> int:
        first = min(self.begins.values(), default=BEFORE_TIME)
        if self.silent_until == BEFORE_TIME:
            return first
        return min(first, self.silent_until - 1)  # what stands before the first row is not news


def usual_history(plan: QueryPlan, catalog: Catalog) -> str:
    """Unless a query says otherwise: the past of streams that are kept, none of others'."""
    streams = [catalog.streams[s] for s in plan.streams if s in catalog.streams]
    return REPLAY if streams and all(s.is_retained for s in streams) else NONE


def beginning(
    plan: QueryPlan, history: str, state: EngineState, cut: int | None = None
) -> Beginning:
    """Where a query that comes now begins. With `seed` its windows are filled as they would stand
    at the `cut`, by default the first instant that is not over."""
    streams = {s: state.streams[s] for s in plan.streams}
    if history == NONE:
        return Beginning({s: _after(known) for s, known in streams.items()}, state.next_seq)
    begins = {s: known.kept_since for s, known in streams.items()}
    if history == REPLAY:
        return Beginning(begins)
    if cut is None:
        cut = min((known.watermark for known in streams.values()), default=BEFORE_TIME)
    cut = plan.ended(cut)
    furthest = reach(plan, cut)
    return Beginning({s: max(b, furthest) for s, b in begins.items()}, silent_until=cut)


def _after(stream: StreamState) -> int:
    """The first instant of which no row has arrived yet."""
    return stream.max_ts + 1 if stream.rows else BEFORE_TIME


def reach(plan: QueryPlan, cut: int) -> int:
    """From which instant on rows may matter at the cut. Windows may lie above one another: what
    they reach back adds up."""
    if cut == BEFORE_TIME or passes_rows_on(plan):
        return cut
    found = cut
    for window in plan.windows:
        low = window.reached_from(cut)
        if window.is_endless or low == BEFORE_TIME:
            return BEFORE_TIME
        found -= cut - low
    return BEFORE_TIME if any(r.sees_rows_once for r in plan.relations) else found


def begin(query: QueryState, given: Beginning, state: EngineState, storage: Storage) -> None:
    """Let a query begin there."""
    before = {s: state.streams[s].rows for s in given.begins}
    floors: dict[str, int] = {}
    query.progress.start = None
    query.progress.frontier = BEFORE_TIME
    if not given.first_seq:
        query.progress.frontier = given.frontier
        for stream, since in given.begins.items():
            packs = state.streams[stream].packs
            before[stream] -= rows_since(storage, packs, since)
            if any(p.min_ts < since for p in packs):
                floors[stream] = since
        query.progress.behind = any(state.streams[s].packs for s in given.begins)
    query.limits = replace(query.limits, floors=floors, evicted={})
    query.history = HistoryStart(
        given.first_seq, dict(given.begins), before, given.silent_until, query.history.had_rows
    )


def passes_rows_on(plan: QueryPlan) -> bool:
    """Whether each row is judged by itself and emitted once: earlier ones make no difference."""
    root = plan.only_block
    return (
        plan.kind is EmitKind.ISTREAM
        and root is not None
        and root.grouping is None
        and sum(not leaf.is_standing for leaf in root.leaves) == 1
        and all(leaf.window is None or leaf.window.only_grows for leaf in root.leaves)
    )


def rows_since(storage: Storage, packs: Sequence[PackMeta], since: int) -> int:
    """How many rows are not older than an instant."""
    return sum(len(_times_since(storage, p, since)) if p.min_ts < since else p.rows for p in packs)


def first_instant(storage: Storage, packs: Sequence[PackMeta], since: int) -> int | None:
    """The first event time from an instant on."""
    reaching = [p for p in packs if p.max_ts >= since]
    firsts = [p.min_ts for p in reaching if p.min_ts >= since]
    cut = [_times_since(storage, p, since).min() for p in reaching if p.min_ts < since]
    return min(map(int, [*firsts, *cut]), default=None)


def _times_since(storage: Storage, pack: PackMeta, since: int) -> np.ndarray:
    if pack.max_ts < since:
        return np.empty(0, np.int64)
    times: np.ndarray = storage.read_table(pack.name).column(TIME).to_numpy()
    return times[times >= since]
