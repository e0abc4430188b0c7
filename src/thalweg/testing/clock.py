"""The instants of a query: where its relations can change, and the boundaries it emits at.

Between two such instants every relation is constant, so the one before an instant in this list is
also the state at the very last microsecond before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from thalweg.plan.logical import (
    UNBOUNDED,
    Emit,
    EmitKind,
    Filter,
    Node,
    Scan,
    SessionWindow,
    TimeWindow,
    Window,
    WindowSpec,
    walk,
)
from thalweg.plan.logical import Sequence as Sequence_


@dataclass(frozen=True)
class _Input:
    """A stream of the query, and the window that turns it into a relation."""

    stamps: tuple[int, ...]
    window: WindowSpec

    @property
    def slide(self) -> int | None:
        return self.window.slide if isinstance(self.window, TimeWindow) else None


@dataclass(frozen=True)
class Clock:
    """The instants of a query at which anything can change or must be emitted."""

    inputs: tuple[_Input, ...]
    derived: tuple[WindowSpec, ...]
    start: int
    horizon: int
    boundaries: frozenset[int]

    @classmethod
    def of(
        cls, root: Emit, stamps: Mapping[str, Sequence[int]], horizon: int | None
    ) -> Clock | None:
        inputs = tuple(_inputs(root, stamps))
        seen = [ts for i in inputs for ts in i.stamps]
        if not seen:
            return None
        derived = tuple(_derived_windows(root))
        slides = [i.slide for i in inputs if i.slide is not None]
        slides += [w.slide for w in derived if isinstance(w, TimeWindow) and w.slide is not None]
        windows = [*(i.window for i in inputs), *derived]
        gaps = [w.gap for w in windows if isinstance(w, SessionWindow)]
        if horizon is None:
            last = max(seen)
            horizon = max(
                [last, *(_boundary_after(last, s) for s in slides), *(last + g + 1 for g in gaps)]
            )
        boundaries: set[int] = set()
        repeats = any(isinstance(n, Emit) and n.kind is EmitKind.RSTREAM for n in walk(root))
        for slide in slides if repeats else ():
            boundaries.update(range(_boundary_after(min(seen), slide), horizon + 1, slide))
        return cls(inputs, derived, min(seen), horizon, frozenset(boundaries))

    def instants(self) -> list[int]:
        """Relations are constant between these; the first is the query's start."""
        changes = {self.start} | self.boundaries
        for item in self.inputs:
            for ts in item.stamps:
                changes.update(_changes(ts, item.window))
        for _ in self.derived:
            # whatever changes may be emitted by a subquery, and enter and leave its window
            for window in self.derived:
                changes |= {t for ts in changes for t in _changes(ts, window)}
        return sorted(τ for τ in changes if self.start <= τ <= self.horizon)


def _inputs(root: Node, stamps: Mapping[str, Sequence[int]]) -> Iterator[_Input]:
    windowed = [
        (scan_below(n.input), n.window)
        for n in walk(root)
        if isinstance(n, Window) and not isinstance(n.input, (Emit, Sequence_))
    ]
    known = {scan for scan, _ in windowed}
    bare = [(n, UNBOUNDED) for n in walk(root) if isinstance(n, Scan) and n not in known]
    for scan, window in [*windowed, *bare]:  # one stream may be read under several windows
        if not scan.is_table:
            yield _Input(tuple(stamps[scan.relation]), window)


def _derived_windows(root: Node) -> Iterator[WindowSpec]:
    for node in walk(root):
        if isinstance(node, Window) and isinstance(node.input, (Emit, Sequence_)):
            yield node.window


def _boundary_after(ts: int, slide: int) -> int:
    return (ts // slide + 1) * slide


def _changes(ts: int, window: WindowSpec) -> Iterator[int]:
    """When a row enters its window and, by time, leaves it."""
    if isinstance(window, SessionWindow):
        yield from (ts + window.gap + 1, ts + window.gap + 2)
        return
    slide = window.slide if isinstance(window, TimeWindow) else None
    yield ts if slide is None else _boundary_after(ts, slide)
    if isinstance(window, TimeWindow) and window.every is not None:
        yield _boundary_after(ts, window.every)
    if isinstance(window, TimeWindow) and window.range is not None:
        yield (
            ts + window.range + 1 if slide is None else _boundary_after(ts + window.range, slide)
        )


def in_window(ts: int, window: TimeWindow, instant: int) -> bool:
    """Whether a row belongs to the content of a time window."""
    if window.since is not None and ts < window.since:
        return False
    if window.until is not None and ts > window.until:
        return False
    if window.every is not None:
        return instant // window.every * window.every <= ts <= instant
    if window.slide is None:
        return ts <= instant and (window.range is None or instant - window.range <= ts)
    boundary = instant // window.slide * window.slide
    return ts < boundary and (window.range is None or boundary - window.range <= ts)


def scan_below(node: Node) -> Scan:
    """The stream a window stands over, filtered or not."""
    while isinstance(node, Filter):
        node = node.input
    if not isinstance(node, Scan):
        raise TypeError(f"a window stands over a stream, not over {type(node).__name__}")
    return node
