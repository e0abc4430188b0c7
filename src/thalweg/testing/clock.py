"""The instants of a query: where its relations can change and where it emits.

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
    TimeWindow,
    Window,
    WindowSpec,
    walk,
)


@dataclass(frozen=True)
class _Input:
    """A stream of the query, and the window that turns it into a relation."""

    stamps: tuple[int, ...]
    window: WindowSpec

    @property
    def slide(self) -> int | None:
        return self.window.slide if isinstance(self.window, TimeWindow) else None

    @property
    def range(self) -> int | None:
        return self.window.range if isinstance(self.window, TimeWindow) else None


@dataclass(frozen=True)
class Clock:
    """The instants of a query at which anything can change or must be emitted."""

    inputs: tuple[_Input, ...]
    derived: tuple[TimeWindow, ...]
    start: int
    horizon: int
    emitting: frozenset[int]

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
        slides += [w.slide for w in derived if w.slide is not None]
        if horizon is None:
            horizon = max([max(seen), *(_boundary_after(max(seen), s) for s in slides)])
        emitting: set[int] = set()
        if root.kind is EmitKind.RSTREAM:
            for slide in slides:
                emitting.update(range(_boundary_after(min(seen), slide), horizon + 1, slide))
            emitting.update(ts for i in inputs if i.slide is None for ts in i.stamps)
        return cls(inputs, derived, min(seen), horizon, frozenset(emitting))

    def instants(self) -> list[int]:
        """Relations are constant between these; the first is the query's start."""
        changes = {self.start} | self.emitting
        for item in self.inputs:
            for ts in item.stamps:
                changes.update(_changes(ts, item.range, item.slide))
        for _ in self.derived:
            # whatever changes may be emitted by a subquery, and enter and leave its window
            for window in self.derived:
                changes |= {t for ts in changes for t in _changes(ts, window.range, window.slide)}
        return sorted(τ for τ in changes if self.start <= τ <= self.horizon)


def _inputs(root: Node, stamps: Mapping[str, Sequence[int]]) -> Iterator[_Input]:
    windows = {
        scan_below(n.input): n.window
        for n in walk(root)
        if isinstance(n, Window) and not isinstance(n.input, Emit)
    }
    for scan in walk(root):
        if isinstance(scan, Scan) and not scan.is_table:
            yield _Input(tuple(stamps[scan.relation]), windows.get(scan, UNBOUNDED))


def _derived_windows(root: Node) -> Iterator[TimeWindow]:
    for node in walk(root):
        if isinstance(node, Window) and isinstance(node.input, Emit):
            yield node.window if isinstance(node.window, TimeWindow) else UNBOUNDED


def _boundary_after(ts: int, slide: int) -> int:
    return (ts // slide + 1) * slide


def _changes(ts: int, range_: int | None, slide: int | None) -> Iterator[int]:
    """When a row enters its window and, by time, leaves it."""
    yield ts if slide is None else _boundary_after(ts, slide)
    if range_ is not None:
        yield ts + range_ + 1 if slide is None else _boundary_after(ts + range_, slide)


def in_window(ts: int, window: TimeWindow, instant: int) -> bool:
    """Whether a row belongs to the content of a time window."""
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
