"""What the demo knows while it runs, and how it looks."""

from __future__ import annotations

import statistics
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from thalweg.demo.shop import REGIONS, STREAMS, Feed
from thalweg.runtime.epoch.coordinator import EpochReport
from thalweg.spark.terminal import bar, sparkline

if TYPE_CHECKING:
    from thalweg.spark.engine import Engine

SPAN = 16
NARROW = 100
COLOURS = {"orders": "cyan", "payments": "magenta", "shipments": "yellow"}
Counts = dict[str, int]


@dataclass(slots=True)
class Board:
    """Counters after each epoch; written by the engine's thread, read by the screen's."""

    engine: Engine
    windows: str
    moments: list[tuple[float, Counts]] = field(default_factory=list)
    epochs: list[float] = field(default_factory=list)
    marks: Counts = field(default_factory=dict)
    late: Counts = field(default_factory=dict)
    newest: dict[str, dict[str, Any]] = field(default_factory=dict)
    revenue: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def epoch(self, report: EpochReport) -> None:
        """The engine's progress callback."""
        tables = {
            name: self.engine.queries[name].output(packs)
            for name, packs in report.outputs.items()
            if packs
        }
        with self._lock:
            self.epochs.append(report.seconds)
            self._count(report)
            for name, table in tables.items():
                self.newest[name] = table.slice(table.num_rows - 1).to_pylist()[0]
            if self.windows in tables:
                self._last_window(tables[self.windows].to_pylist())

    def _count(self, report: EpochReport) -> None:
        counts = dict(self.moments[-1][1]) if self.moments else {}
        for name, rows in report.rows_out.items():
            counts[name] = counts.get(name, 0) + rows
        for query in self.engine.queries.values():
            for stream, state in query.stats()["streams"].items():
                counts[stream] = state["rows"] + state["late"]
                self.marks[stream] = state["watermark"]
                self.late[stream] = state["late"]
        self.moments.append((time.time(), counts))

    def _last_window(self, rows: list[dict[str, Any]]) -> None:
        last = max(r["__ts"] for r in rows)
        self.revenue = {r["region"]: r["revenue"] for r in rows if r["__ts"] == last}

    # -- figures -----------------------------------------------------------------------------

    @property
    def is_awake(self) -> bool:
        return bool(self.moments)

    def total(self, name: str) -> int:
        return self.moments[-1][1].get(name, 0) if self.moments else 0

    def rates(self, name: str) -> list[float]:
        """Rows per second in each of the last seconds, oldest first."""
        with self._lock:
            times = [t for t, _ in self.moments]
            totals = [c.get(name, 0) for _, c in self.moments]
        if not times:
            return [0.0] * SPAN
        edges = times[-1] - np.arange(SPAN, -1, -1)
        return [max(0.0, float(r)) for r in np.diff(np.interp(edges, times, totals, left=0))]

    def rate(self, name: str) -> float:
        """Over the last three seconds, so that the figure can be read."""
        return float(np.mean(self.rates(name)[-3:]))

    def behind(self, stream: str) -> float | None:
        mark = self.marks.get(stream)
        return None if mark is None else max(0.0, time.time() - mark / 1e6)

    def median_epoch(self) -> float:
        return statistics.median(self.epochs) if self.epochs else 0.0


# -- pictures ----------------------------------------------------------------------------------


def live_view(board: Board, feed: Feed, width: int) -> RenderableType:
    """The whole screen: about twenty lines, or thirty where it is narrow."""
    parts: list[RenderableType] = [_streams(board), _revenue(board)]
    if width >= NARROW:
        side = Table.grid(padding=(0, 4, 0, 0))
        side.add_row(*parts)
        parts = [side]
    return Group(_clock(board, feed), Text(), *parts, _queries(board), _footer(board))


def _clock(board: Board, feed: Feed) -> RenderableType:
    width = 30
    done = round(width * feed.elapsed / feed.seconds)
    half = width // 2
    track = Text("━" * done, "green") + Text("━" * (width - done), "grey37")
    track.plain = track.plain[:half] + "╋" + track.plain[half + 1 :]
    if not board.is_awake:
        words = Text("   waiting for the first rows; a very first run compiles kernels", "dim")
    elif feed.has_drifted:
        words = Text("   after the drift: the west is busy, orders are large", "bold yellow")
    else:
        words = Text("   before the drift: the north is busy, orders are small", "bold cyan")
    return Text.assemble(track, f"  {feed.elapsed:2.0f} of {feed.seconds:.0f} s", words)


def _streams(board: Board) -> RenderableType:
    table = _table("rows in")
    table.add_column("stream", no_wrap=True)
    table.add_column("rows", justify="right", no_wrap=True, min_width=8)
    table.add_column("rows/s", justify="right", no_wrap=True)
    table.add_column(f"last {SPAN} s", no_wrap=True, min_width=SPAN)
    table.add_column("behind", justify="right", no_wrap=True)
    table.add_column("late", justify="right", no_wrap=True)
    for stream in STREAMS:
        behind = board.behind(stream)
        table.add_row(
            Text(stream, COLOURS[stream]),
            f"{board.total(stream):,}",
            f"{board.rate(stream):,.0f}",
            Text(sparkline(board.rates(stream)), COLOURS[stream]),
            "-" if behind is None else f"{behind:.1f} s",
            f"{board.late.get(stream, 0):,}",
        )
    return table


def _revenue(board: Board) -> RenderableType:
    table = _table("revenue of the last 10 s")
    table.add_column("region", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=16)
    table.add_column("", justify="right", no_wrap=True, min_width=10)
    top = max(board.revenue.values(), default=0.0)
    for region in REGIONS:
        amount = board.revenue.get(region, 0.0)
        table.add_row(region, Text(bar(amount, top, 16), "green"), f"{amount:,.0f}")
    return table


def _queries(board: Board) -> RenderableType:
    table = _table("results out")
    table.add_column("query", no_wrap=True, min_width=10)
    table.add_column("results", justify="right", no_wrap=True, min_width=8)
    table.add_column("per s", justify="right", no_wrap=True, min_width=6)
    table.add_column(f"last {SPAN} s", no_wrap=True, min_width=SPAN)
    table.add_column("newest result", ratio=1, no_wrap=True, overflow="ellipsis")
    for name in board.engine.queries:
        table.add_row(
            Text(name, "bold"),
            f"{board.total(name):,}",
            f"{board.rate(name):,.0f}",
            Text(sparkline(board.rates(name)), "green"),
            Text(shown(board.newest.get(name)), "dim"),
        )
    return table


def _footer(board: Board) -> RenderableType:
    if not board.epochs:
        return Text("")
    median = 1000 * board.median_epoch()
    return Text(
        f"{len(board.epochs)} epochs committed, median {median:.0f} ms each; behind = now - "
        "watermark, 2 s of it to wait for stragglers",
        "dim",
    )


def shown(row: dict[str, Any] | None) -> str:
    """A result row in one line."""
    if row is None:
        return ""
    values = [f"{k} {_value(v)}" for k, v in row.items() if not k.startswith("__")]
    return f"{row['__ts']:%H:%M:%S}  " + ", ".join(values)


def _value(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)


def _table(title: str) -> Table:
    return Table(
        title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD,
        header_style="dim", padding=(0, 1), pad_edge=False,
    )  # fmt: skip


def framed(text: Text, title: str) -> Panel:
    return Panel(text, title=title, title_align="left", border_style="cyan", padding=(0, 1))
