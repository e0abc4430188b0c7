"""Windows of modeled sources: over how long aggregates are, and when answers are emitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from thalweg.errors import ThalwegError, WindowMisuse
from thalweg.lang.binding.visible import Visible
from thalweg.models.relations.groups import Grouped
from thalweg.plan.logical import Node, Window, walk
from thalweg.windows.protocol import WindowSpec
from thalweg.windows.range import RangeWindow


def windows_of(
    sources: Sequence[Visible], fail: Callable[[ThalwegError], NoReturn]
) -> tuple[RangeWindow, ...]:
    """Those written at modeled sources, all of which are of time that passes."""
    found = []
    for source in sources:
        window = source.window
        if window is None or not source.curves:
            continue
        range_ = _over_time(window)
        if range_ is None or not range_.range:
            fail(
                WindowMisuse(
                    f"{window} of {source.alias}: a modeled source has no single rows to count",
                    remedy="write how long the window is, such as [RANGE 1 MINUTE SLIDE 1 SECOND], "
                    "or leave it out: at each instant there is one row per key",
                )
            )
        found.append(range_)
    return tuple(found)


def _over_time(window: WindowSpec) -> RangeWindow | None:
    return window if isinstance(window, RangeWindow) else None


def slides_of(
    windows: Sequence[RangeWindow], members: Sequence[Node], body: Node
) -> tuple[int, ...]:
    """The periods at which windows slide: those of modeled sources, of sources beside them, and of
    subqueries."""
    beside = (_over_time(m.window) for m in members if isinstance(m, Window))
    own = {w.slide for w in (*windows, *beside) if w is not None}
    own |= {node.slide for node in walk(body) if isinstance(node, Grouped)}
    return tuple(sorted(s for s in own if s is not None))
