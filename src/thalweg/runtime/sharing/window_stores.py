"""Window stores: windows of several queries over the order of a stream that hold nearly the same
rows store them once.

A *store* has the rows of the widest window, as of an instant that all queries that share it have
passed; rows that arrived since are in the stream's packs anyhow. A query that shares it has a
*stub*: which of its slots is in which store. Stores are made, joined and left between epochs,
without a copy where that is possible; sharing changes no row.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.leaves.window_store import KeepResult, KeepTask
from thalweg.instants import BEFORE_TIME
from thalweg.plan import state_slots
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.executor import JobRunner
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.settings import Settings
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.state.stream_state import WindowStore
from thalweg.store.packs import Key, PackMeta
from thalweg.windows.protocol import OrderedWindow

log = logging.getLogger("thalweg")
SMALL = 65_536
"""The largest number of rows of a stream between the frontiers of queries that share a store."""


@dataclass(frozen=True, slots=True)
class StoredWindow:
    """A slot of a query that holds the content of a window, and the store it may be in."""

    query: str
    slot: str
    leaf: Leaf
    store: str = ""

    @property
    def window(self) -> OrderedWindow:
        return self.leaf.ordered_window

    @property
    def reach(self) -> int:
        return self.window.reach


class WindowStores:
    """The stores, and which queries share them."""

    def __init__(
        self,
        state: EngineState,
        plans: PlanTable,
        settings: Settings,
        runner: JobRunner,
        files: PendingFiles,
    ) -> None:
        self._state = state
        self._plans = plans
        self._settings = settings
        self._runner = runner
        self._files = files
        self._known: dict[str, tuple[QueryPlan | None, tuple[StoredWindow, ...]]] = {}

    # -- for steps and upkeep ----------------------------------------------------------------

    def content(self, query: QueryState) -> dict[str, WindowStore]:
        """The stores of a query's slots."""
        return {
            slot: self._state.window_stores[key]
            for slot, key in query.operators.shared_slots.items()
        }

    def low(self, stream: str) -> int | None:
        """The first event time of a stream's rows that are needed beside those of stores."""
        found = [s.frontier for s in self._state.window_stores.values() if s.stream == stream]
        return min(found, default=None)

    def tasks(self) -> list[KeepTask]:
        """Stores to advance: those with at least half as many new rows as they hold. So the cost of
        rewriting is proportional to the arrivals."""
        found = []
        for key, stubs in self._by_store().items():
            if len(stubs) < len(self._sharing(key)):
                continue  # a window that is not resumed yet may reach further
            store = self._state.window_stores[key]
            until = min(self._frontier(s) for s in stubs)
            newer = self._rows_between(stubs[0], store.frontier, until)
            held = sum(p.meta.rows for p in store.packs)
            if newer and newer * 2 >= held:
                found.append(self._task(key, stubs, until))
        return found

    def apply(self, result: KeepResult) -> None:
        store = self._state.window_stores[result.store]
        self._drop(store.packs)
        store.frontier, store.reach = result.until, result.reach
        store.packs = () if result.pack is None else (result.pack,)

    # -- between epochs ----------------------------------------------------------------------

    def settle(self) -> None:
        """Let windows that can share do so, and detach those that must not."""
        may_share = list(self._windows())
        together = {(w.query, w.slot, w.store) for w in may_share}
        for stubs in self._by_store().values():
            foremost = max(map(self._frontier, stubs))
            for stub in stubs:
                lags = self._far(stub, self._frontier(stub), foremost)
                if lags or (stub.query, stub.slot, stub.store) not in together:
                    self.leave(stub)
        self._dissolve()
        apart: dict[str, list[StoredWindow]] = {}
        for one in may_share:
            if one.slot not in self._state.queries[one.query].operators.shared_slots:
                apart.setdefault(one.store, []).append(one)
        for key, windows in apart.items():
            self._gather(key, windows)

    def leave(self, stub: StoredWindow) -> None:
        """Give a query rows of its own."""
        query = self._state.queries[stub.query]
        store = self._state.window_stores[stub.store]
        is_last = len(self._sharing(stub.store)) < 2
        if is_last and (store.frontier, store.reach) == (
            query.progress.frontier,
            stub.reach,
        ):
            packs, store.packs = store.packs, ()
        else:
            task = self._task(stub.store, [stub], query.progress.frontier)
            result = self._runner.run([[task]])[0][0]
            if not isinstance(result, KeepResult):
                log.warning("a window of %s stays shared: %s", stub.query, result)
                return
            packs = () if result.pack is None else (result.pack,)
        shared = {s: k for s, k in query.operators.shared_slots.items() if s != stub.slot}
        query.operators = replace(query.operators, shared_slots=shared)
        if packs:
            query.operators = query.operators.with_slot(stub.slot, packs)

    def _sharing(self, key: str) -> list[QueryState]:
        """The query of each stub, also of those that the engine has not resumed yet."""
        queries = self._state.queries.values()
        return [q for q in queries for shared in q.operators.shared_slots.values() if shared == key]

    def _dissolve(self) -> None:
        """Drop stores without queries, or with one that might as well have the rows itself."""
        by_store = self._by_store()
        for key in list(self._state.window_stores):
            stubs = by_store.get(key, [])
            if len(stubs) == len(self._sharing(key)) < 2:
                for stub in stubs:
                    self.leave(stub)
                if not self._sharing(key):
                    self._drop(self._state.window_stores.pop(key).packs)

    def _gather(self, key: str, windows: list[StoredWindow]) -> None:
        """Put windows into the store, which is founded by the one that is furthest behind, of those
        that another can share with."""
        if key not in self._state.window_stores:
            windows = sorted(windows, key=lambda w: (self._frontier(w), -w.reach))
            while windows and not any(self._can_share(windows[0], w) for w in windows[1:]):
                windows.pop(0)
            if not windows:
                return
            first = windows.pop(0)
            store = WindowStore(first.leaf.relation, first.reach, self._frontier(first))
            store.packs = self._into(first)
            self._state.window_stores[key] = store
        frontiers = [q.progress.frontier for q in self._sharing(key)]
        for window in windows:
            self._fold(window, self._state.window_stores[key], frontiers)

    def _can_share(self, first: StoredWindow, other: StoredWindow) -> bool:
        low, high = self._frontier(first), self._frontier(other)
        return other.reach <= first.reach and not self._far(other, low, high)

    def _fold(self, window: StoredWindow, store: WindowStore, frontiers: list[int]) -> None:
        """Add a window to a store: either the store has its rows, or its rows replace those of the
        store for all the others, which have these frontiers."""
        frontier = self._frontier(window)
        if self._far(window, min(frontier, store.frontier), max(frontier, *frontiers)):
            return
        if window.reach <= store.reach and frontier >= store.frontier:
            self._drop(self._into(window))
        elif window.reach >= store.reach and frontier <= min(frontiers):
            self._drop(store.packs)
            store.packs = self._into(window)
            store.reach, store.frontier = window.reach, frontier
        else:
            return
        frontiers.append(frontier)

    def _into(self, window: StoredWindow) -> tuple[StatePack, ...]:
        """Let a query share; its own rows are given up."""
        query = self._state.queries[window.query]
        own = query.operators.slots.get(window.slot, ())
        shared = {**query.operators.shared_slots, window.slot: window.store}
        query.operators = replace(query.operators.with_slot(window.slot, ()), shared_slots=shared)
        return own

    # -- windows -----------------------------------------------------------------------------

    def _windows(self) -> Iterator[StoredWindow]:
        """All windows that may be shared now."""
        if not self._settings.share_windows:
            return
        for name in self._plans:
            windows, query = self._windows_of(name), self._state.queries[name]
            if not windows or not self._may_share(name) or not _is_steady(query):
                continue
            for window in windows:
                if (
                    query.limits.floors.get(window.leaf.relation, BEFORE_TIME)
                    <= query.progress.frontier
                ):
                    yield replace(window, store=_key(window.leaf, query))

    def _may_share(self, name: str) -> bool:
        """Whether a query's options and limits of state permit sharing."""
        options = self._plans.options(name)
        limited = options.state_limit is not None or self._settings.state_limit is not None
        return options.share != "off" and not limited

    def _stubs(self) -> Iterator[StoredWindow]:
        for name, query in self._state.queries.items():
            if query.operators.shared_slots and name in self._plans:
                for window in self._windows_of(name):
                    if window.slot in query.operators.shared_slots:
                        yield replace(window, store=query.operators.shared_slots[window.slot])

    def _windows_of(self, name: str) -> tuple[StoredWindow, ...]:
        plan, (known, found) = self._plans[name], self._known.get(name, (None, ()))
        if plan is not known:
            found = tuple(windows_of(name, plan))
            self._known[name] = (plan, found)
        return found

    def _by_store(self) -> dict[str, list[StoredWindow]]:
        found: dict[str, list[StoredWindow]] = {}
        for stub in self._stubs():
            found.setdefault(stub.store, []).append(stub)
        return found

    def _far(self, window: StoredWindow, low: int, high: int) -> bool:
        return self._rows_between(window, low, high) > SMALL

    def _frontier(self, window: StoredWindow) -> int:
        return self._state.queries[window.query].progress.frontier

    def _packs(self, window: StoredWindow) -> tuple[PackMeta, ...]:
        query = self._state.queries[window.query]
        return tuple(self._state.seen_by(query, window.leaf.relation))

    def _rows_between(self, window: StoredWindow, low: int, high: int) -> int:
        """An estimate of the number of rows between two instants."""
        if low >= high:
            return 0
        return sum(p.rows for p in self._packs(window) if p.max_ts >= low and p.min_ts < high)

    def _task(self, key: str, stubs: Sequence[StoredWindow], until: int) -> KeepTask:
        """The task that advances a store, as far as the windows that share it reach."""
        store, one = self._state.window_stores[key], stubs[0]
        reach = max(s.reach for s in stubs)
        leaf = replace(one.leaf, window=one.window.reaching(reach))
        wanted: dict[Key, None] = {}
        for stub in stubs:
            for place, other in enumerate(self._plans[stub.query].leaves):
                if other == stub.leaf:
                    wanted |= dict.fromkeys(self._plans[stub.query].routing.keys_of(place))
        return KeepTask(
            key, leaf, tuple(p.meta for p in store.packs), self._packs(one), store.frontier, until,
            tuple(wanted), self._files.prefix_of(store.stream),
        )  # fmt: skip

    def _drop(self, packs: Sequence[StatePack]) -> None:
        self._files.drop(f for pack in packs for f in pack.files)


def windows_of(name: str, plan: QueryPlan) -> Iterator[StoredWindow]:
    """The windows over the order of streams of a query, in no store yet."""
    for number, relation in enumerate(plan.relations):
        for i, leaf in enumerate(relation.leaves):
            if leaf.keeps_rows and leaf.is_stored:
                yield StoredWindow(name, state_slots.slot(number, state_slots.LEAF, i), leaf)


def _key(leaf: Leaf, query: QueryState) -> str:
    """Windows with the same key hold the same rows, except for how far they reach."""
    window = leaf.ordered_window
    by = ", ".join(leaf.bare(c) for c in window.partition_by)
    return f"{leaf.relation} {window.name} ({by}) {_beginning(leaf.relation, query)}".rstrip()


def _beginning(stream: str, query: QueryState) -> str:
    """Where a query began to read a stream; empty, if it has read all of it."""
    seen_all = not query.history.rows_before.get(stream, 0)
    return (
        ""
        if seen_all
        else f"{query.history.first_seq}:{query.history.begins.get(stream, BEFORE_TIME)}"
    )


def _is_steady(query: QueryState) -> bool:
    """Whether it advances from epoch to epoch with the rows that arrive."""
    return (
        query.runs
        and not query.works_on_demand
        and not query.progress.behind
        and not query.limits.evicted
        and query.progress.frontier >= query.history.silent_until
        and query.progress.frontier > BEFORE_TIME
    )


def shared_windows(state: EngineState, query: QueryState) -> dict[str, Any]:
    """Per shared slot its size, and the queries that share it."""
    return {
        slot: {
            "rows": sum(p.meta.rows for p in state.window_stores[key].packs),
            "bytes": sum(p.meta.bytes for p in state.window_stores[key].packs),
            "queries": [
                n for n, q in state.queries.items() if key in q.operators.shared_slots.values()
            ],
        }
        for slot, key in query.operators.shared_slots.items()
    }
