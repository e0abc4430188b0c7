"""The demo: three continuous queries over live, drifting data, checked against a batch at the end.

    thalweg demo

starts Spark, writes files for about half a minute, shows what the engine makes of them while they
appear, closes, and then recomputes every answer from the files.
"""

from __future__ import annotations

import io
import re
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.live import Live
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from thalweg.config import Config
from thalweg.demo import check
from thalweg.demo.board import Board, framed, live_view
from thalweg.demo.check import Audit
from thalweg.demo.shop import STREAMS, Feed
from thalweg.spark.terminal import local_engine

if TYPE_CHECKING:
    from thalweg.spark.engine import Engine

__all__ = ["demo"]

SECONDS = 25.0
GRACE_SECONDS = 1.5
WIDTH = 112

COLUMNS = {
    "orders": "id BIGINT, region STRING, amount DOUBLE, ts TIMESTAMP",
    "payments": "order_id BIGINT, method STRING, ts TIMESTAMP",
    "shipments": "order_id BIGINT, depot STRING, ts TIMESTAMP",
}

BIG_ORDERS = """\
CREATE QUERY big_orders AS                  -- a filter
  SELECT id, amount FROM orders WHERE amount > 300 AND region = 'north';"""

DELIVERED = """\
CREATE QUERY delivered AS                   -- a three-way join
  SELECT ISTREAM o.id, o.region, s.depot
  FROM orders [RANGE 15 SECONDS] o, payments [RANGE 15 SECONDS] p,
       shipments [RANGE 15 SECONDS] s
  WHERE o.id = p.order_id AND o.id = s.order_id AND p.method = 'card';"""

REVENUE = """\
CREATE QUERY revenue AS                     -- a windowed aggregate
  SELECT RSTREAM region, count(*) AS orders, sum(amount) AS revenue,
                 max(amount) AS largest
  FROM orders [RANGE 10 SECONDS SLIDE 1 SECOND] GROUP BY region;"""

QUERIES = (BIG_ORDERS, DELIVERED, REVENUE)

STORY = (
    "An online shop writes its orders, payments and shipments to files, a few thousand rows a "
    "second, some out of order and a few hopelessly late. Three SQL queries answer all the while, "
    "in one shared pipeline on Spark. Half way the customers change their habits. At the end every "
    "answer is recomputed from the files in one go and must be the same."
)


def demo(
    seconds: float = SECONDS,
    *,
    console: Console | None = None,
    svg: Path | None = None,
    master: str | None = None,
) -> int:
    """Run the demo; returns 0 if the results equal a batch recomputation, else 1.

    `seconds` is how long data flows; starting and closing Spark comes on top. `svg` saves the
    picture of the run.
    """
    console = console or Console()
    if console.width > WIDTH:
        console.width = WIDTH
    began = time.monotonic()
    _introduce(console)
    with tempfile.TemporaryDirectory(prefix="thalweg-demo-") as folder:
        with local_engine(console, master, config=Config()) as engine:
            feed = Feed(Path(folder), seconds)
            _define(engine, Path(folder))
            board = Board(engine, "revenue")
            picture = _Picture(svg)
            _flow(engine, feed, board, console, picture)
            _drain(engine, board, console)
            audits = _audits(engine, Path(folder), console)
            closing = _closing(engine, board, audits, time.monotonic() - began)
        console.print(*closing, sep="\n")
        picture.save(*closing)
    return 0 if all(a.equal for a in audits) else 1


def _introduce(console: Console) -> None:
    console.print(framed(Text(STORY), "[bold]Thalweg[/] · continuous SQL on Spark"))
    console.print(Syntax("\n".join(QUERIES), "sql", background_color="default"))
    console.print()


def _define(engine: Engine, folder: Path) -> None:
    for stream, columns in COLUMNS.items():
        engine.sql(
            f"CREATE STREAM {stream} ({columns}) TIMESTAMP BY ts LATENESS 2 SECONDS "
            f"FROM FILES '{folder / stream}' FORMAT parquet OPTIONS (max_files_per_trigger = 100)"
        )
    for query in QUERIES:
        engine.sql(query)


# -- while it runs -----------------------------------------------------------------------------


def _flow(engine: Engine, feed: Feed, board: Board, console: Console, picture: _Picture) -> None:
    """Feed and engine at work, until the feed ends by itself."""
    engine.start(progress=board.epoch)
    feed.start(ready=lambda: board.is_awake)
    try:
        if console.is_terminal:
            with Live(console=console, auto_refresh=False) as live:
                show = partial(_redraw, live, board, feed)
                _watch(engine, feed, show, picture, board)
        else:
            _watch(engine, feed, _Lines(console, board, feed), picture, board)
    finally:
        feed.stop()


def _redraw(live: Live, board: Board, feed: Feed) -> None:
    live.update(live_view(board, feed, live.console.width), refresh=True)


def _watch(
    engine: Engine, feed: Feed, show: Callable[[], object], picture: _Picture, board: Board
) -> None:
    over: float | None = None
    while over is None or time.monotonic() - over < GRACE_SECONDS:
        _raise_failure(engine, feed)
        show()
        if feed.elapsed > 0.96 * feed.seconds:
            picture.take(board, feed)
        if over is None and feed.is_over:
            over = time.monotonic()
        time.sleep(0.2)


def _raise_failure(engine: Engine, feed: Feed) -> None:
    failure = engine.failure or feed.failure
    if failure is not None:
        raise failure


class _Lines:
    """Progress for a file or a pipe: a line every few seconds."""

    EVERY = 4.0

    def __init__(self, console: Console, board: Board, feed: Feed) -> None:
        self.console, self.board, self.feed = console, board, feed
        self._next = 0.0

    def __call__(self) -> None:
        if not self.board.is_awake or self.feed.elapsed < self._next:
            return
        self._next = self.feed.elapsed + self.EVERY
        rows = sum(self.board.total(s) for s in STREAMS)
        rate = sum(self.board.rate(s) for s in STREAMS)
        results = ", ".join(f"{q} {self.board.total(q):,}" for q in self.board.engine.queries)
        phase = "after" if self.feed.has_drifted else "before"
        self.console.print(
            f"{self.feed.elapsed:5.1f} s  {phase} the drift  {rows:,} rows in ({rate:,.0f}/s)  "
            f"results: {results}",
            highlight=False,
            soft_wrap=True,
        )


class _Picture:
    """The screen late in the run and the closing tables, as an SVG."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._taken = path is None
        self._canvas = Console(
            record=True,
            width=WIDTH,
            file=io.StringIO(),
            force_terminal=True,
            color_system="truecolor",
        )

    def take(self, board: Board, feed: Feed) -> None:
        if not self._taken:
            self._taken = True
            self._canvas.print(live_view(board, feed, WIDTH))
            self._canvas.print()

    def save(self, *closing: object) -> None:
        if self.path is not None:
            self._canvas.print(*closing, sep="\n")
            drawn = self._canvas.export_svg(title="thalweg demo")
            # fonts from afar are not loaded where pictures are shown; the fallback is fine
            self.path.write_text(re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.S), "utf-8")


# -- after it ran ------------------------------------------------------------------------------


def _drain(engine: Engine, board: Board, console: Console) -> None:
    with console.status("The data has ended: draining and closing ..."):
        engine.stop()
        engine.run(progress=board.epoch)


def _audits(engine: Engine, folder: Path, console: Console) -> list[Audit]:
    with console.status("Recomputing every answer from the files ..."):
        keys = {"orders": "id", "payments": "order_id", "shipments": "order_id"}
        rows = {s: check.accepted(folder / s, keys[s], engine.rejects(s)) for s in STREAMS}
        orders, payments, shipments = (rows[s] for s in STREAMS)
        expected = {
            "big_orders": check.filtered(orders, above=300, region="north"),
            "delivered": check.joined(orders, payments, shipments, method="card", seconds=15),
            "revenue": check.windowed(orders, seconds=10, slide=1),
        }
        return [check.audit(n, engine.queries[n].results(), e) for n, e in expected.items()]


def _closing(
    engine: Engine, board: Board, audits: list[Audit], seconds: float
) -> tuple[Table, Text, Text]:
    table = Table(
        title="what happened", title_justify="left", title_style="bold", box=box.ROUNDED,
        border_style="dim",
    )  # fmt: skip
    for heading in ("query", "rows in", "of them late", "results", "same as a batch"):
        table.add_column(heading, justify="left" if heading == "query" else "right")
    for one in audits:
        streams = engine.queries[one.query].stats()["streams"].values()
        verdict = "[green]yes[/]" if one.equal else f"[red]{one.missing} missing, "
        verdict += "" if one.equal else f"{one.unexpected} unexpected[/]"
        table.add_row(
            one.query,
            f"{sum(s['rows'] + s['late'] for s in streams):,}",
            f"{sum(s['late'] for s in streams):,}",
            f"{one.rows:,}",
            verdict,
        )
    return table, _figures(board, seconds), _verdict(audits, sum(board.late.values()))


def _figures(board: Board, seconds: float) -> Text:
    rows = sum(board.total(s) for s in STREAMS)
    return Text(
        f"{rows:,} rows in {len(board.epochs)} epochs, median {1000 * board.median_epoch():.0f} ms "
        f"an epoch; {seconds:.0f} s in all, starting Spark included."
    )


def _verdict(audits: list[Audit], late: int) -> Text:
    total = sum(a.rows for a in audits)
    if all(a.equal for a in audits):
        return Text(
            f"✓ equal to a batch recomputation: {total:,} rows "
            f"({late:,} late rows set aside, counted and listed as rejects)",
            "bold green",
        )
    return Text("✗ not equal to a batch recomputation: please report this", "bold red")
