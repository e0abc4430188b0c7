"""The instants of a query: where its relations can change, and the boundaries it emits at.

Between two such instants every relation is constant, so the one before an instant in this list is
also the state at the very last microsecond before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from thalweg.plan.logical import Emit, EmitKind, Filter, Node, Scan, Window, walk
from thalweg.plan.logical import Sequence as Sequence_
from thalweg.windows.protocol import WindowSpec
from thalweg.windows.range import UNBOUNDED


@dataclass(frozen=True)
class _Input:
    """A stream of the query, and the window that turns it into a relation."""

    stamps: tuple[int, ...]
    window: WindowSpec


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
        windows = [*(i.window for i in inputs), *derived]
        if horizon is None:
            horizon = _settled(root, max(seen))
        boundaries: set[int] = set()
        repeats = any(isinstance(n, Emit) and n.kind is EmitKind.RSTREAM for n in walk(root))
        for window in windows if repeats else ():
            found = window.boundaries(min(seen) + 1, horizon + 1)
            boundaries.update([] if found is None else found.tolist())
        return cls(inputs, derived, min(seen), horizon, frozenset(boundaries))

    def instants(self) -> list[int]:
        """Relations are constant between these; the first is the query's start."""
        changes = {self.start} | self.boundaries
        for item in self.inputs:
            for ts in item.stamps:
                changes.update(item.window.changes(ts))
        for _ in self.derived:
            # whatever changes may be emitted by a subquery, and enter and leave its window
            for window in self.derived:
                changes |= {t for ts in changes for t in window.changes(ts)}
        return sorted(τ for τ in changes if self.start <= τ <= self.horizon)


def _settled(node: Node, last: int) -> int:
    """The last instant at which rows up to `last` make something appear above a node."""
    found = max((_settled(n, last) for n in node.inputs), default=last)
    return node.window.settled(found) if isinstance(node, Window) else found


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


def scan_below(node: Node) -> Scan:
    """The stream a window stands over, filtered or not."""
    while isinstance(node, Filter):
        node = node.input
    if not isinstance(node, Scan):
        raise TypeError(f"a window stands over a stream, not over {type(node).__name__}")
    return node
