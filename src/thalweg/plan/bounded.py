"""The bounded-state verdict: can the query run for ever in finite memory?

The answer is about windows, not about data: a verdict of "bounded" means that what must be
remembered is limited by window contents (and by the number of groups or partitions inside them).
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.plan.logical import (
    Aggregate,
    Emit,
    EmitKind,
    Join,
    Node,
    RowWindow,
    Scan,
    TimeWindow,
    Window,
    walk,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why state grows without bound (empty: it does not), and what it is bounded by."""

    reasons: tuple[str, ...]
    bounds: tuple[str, ...]

    @property
    def bounded(self) -> bool:
        return not self.reasons


def verdict(root: Emit) -> Verdict:
    endless = [_name(n) for n in walk(root) if _is_endless(n)]
    reasons: list[str] = []
    join = next((n for n in walk(root) if isinstance(n, Join)), None)
    aggregate = next((n for n in walk(root) if isinstance(n, Aggregate)), None)
    if endless and join is not None and _stream_count(join) > 1:
        reasons.append(f"a join must keep every row of {_listed(endless)}")
    if endless and aggregate is not None and aggregate.keys:
        reasons.append(f"GROUP BY over all of {_listed(endless)} keeps every group ever seen")
    if endless and aggregate is None and root.kind is EmitKind.RSTREAM:
        reasons.append(f"RSTREAM repeats every row of {_listed(endless)}")
    return Verdict(tuple(reasons), tuple(_bound(n) for n in walk(root) if isinstance(n, Window)))


def _is_endless(node: Node) -> bool:
    return (
        isinstance(node, Window)
        and isinstance(node.window, TimeWindow)
        and (node.window.range is None)
    )


def _stream_count(join: Join) -> int:
    return sum(isinstance(n, Scan) and not n.is_table for n in walk(join))


def _name(window: Node) -> str:
    scan = next(n for n in walk(window) if isinstance(n, Scan))
    return scan.alias


def _bound(window: Window) -> str:
    name, spec = _name(window), window.window
    if isinstance(spec, RowWindow):
        per = f" per {', '.join(spec.partition_by)}" if spec.partition_by else ""
        return f"{name}: {spec.rows} rows{per}"
    if spec.range is None:
        return f"{name}: not kept"
    return f"{name}: {spec}"


def _listed(names: list[str]) -> str:
    return " and ".join(names)
