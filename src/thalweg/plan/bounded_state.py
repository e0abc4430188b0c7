"""The bounded-state verdict: whether the query can run for ever in finite memory.

The verdict is about windows, not about data: "bounded" means that the state is limited by window
contents (and by the number of groups or partitions inside them).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from thalweg.plan.logical import (
    Aggregate,
    Emit,
    EmitKind,
    Node,
    Scan,
    Window,
    walk,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The reasons why state grows without bound (empty: it does not), and what it is bounded by."""

    reasons: tuple[str, ...]
    bounds: tuple[str, ...]

    @property
    def bounded(self) -> bool:
        return not self.reasons


def verdict(root: Emit) -> Verdict:
    reasons = [r for node in walk(root) for r in _reasons(node)]
    if root.kind is EmitKind.RSTREAM and _endless(root.input):
        reasons.append(f"RSTREAM repeats every row of {_listed(_endless(root.input))}")
    return Verdict(tuple(dict.fromkeys(reasons)), tuple(dict.fromkeys(_bounds(root))))


def _reasons(node: Node) -> list[str]:
    """The state that this node itself would have to keep for ever."""
    endless = _listed([name for child in node.inputs for name in _endless(child)])
    return node.keeps_for_ever(endless) if endless else []


def _endless(node: Node) -> list[str]:
    """Names of the streams whose rows never leave this relation."""
    if isinstance(node, Window):
        return [_name(node)] if node.window.grows else []
    if node.bounded_by() is not None or (isinstance(node, Aggregate) and not node.keys):
        return []  # one row, or one per key
    return list(dict.fromkeys(name for child in node.inputs for name in _endless(child)))


def _name(window: Window) -> str:
    if isinstance(window.input, Emit):
        return window.input.schema[0].name.split(".", 1)[0]
    return next(n.alias for n in walk(window) if isinstance(n, Scan))


def _bounds(node: Node) -> Iterator[str]:
    bound = node.bounded_by()
    if bound is not None:
        yield bound
        return
    if isinstance(node, Window):
        yield _bound(node)
    for child in node.inputs:
        yield from _bounds(child)


def _bound(window: Window) -> str:
    return f"{_name(window)}: {window.window.bound()}"


def _listed(names: list[str]) -> str:
    return " and ".join(dict.fromkeys(names))
