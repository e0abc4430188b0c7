"""`thalweg state`: what an engine keeps under its path, read without touching it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from thalweg.cli.sizes import format_bytes, plural
from thalweg.runtime.state.query_state import RUNNING
from thalweg.runtime.upkeep.inspection import Files, Kept, PathView, QueryView, inspect, instant
from thalweg.store.storage import open_storage

NOTHING = "–"


def show_state(path: str, as_json: bool = False, console: Console | None = None) -> None:
    """Print what lies under the path, as tables or as one JSON object."""
    view = inspect(open_storage(path))
    if as_json:
        print(json.dumps(view.to_dict(), indent=2))
        return
    console = console or Console(highlight=False)
    console.print(_heading(view), soft_wrap=True)
    for table in (_streams(view), _queries(view), _kept(view), _groups(view), _totals(view)):
        if table.row_count:
            console.print(table)
    for name in view.totals.missing:
        console.print(f"missing: {name} is referred to but not there", style="red", soft_wrap=True)


def _heading(view: PathView) -> Text:
    text = Text.assemble((view.path, "bold"), f"  format {view.format}, ")
    if view.epoch:
        text.append(f"epoch {view.epoch:,} committed {_time(view.clock)}, ")
    else:
        text.append("no epoch committed yet, ")
    text.append(f"incarnation {view.incarnation}, ")
    text.append(f"{plural(view.totals.manifests.files, 'manifest')} on disk")
    if view.owner is not None:
        text.append(f"\nprocess {view.owner} has it open", "green")
    if view.waiting.packs:
        text.append(f"\n{view.waiting.rows:,} rows are read but not taken in by an epoch yet")
    return text


def _streams(view: PathView) -> Table:
    table = _table(
        "streams", "stream", "rows in", "late", "rejected", "event times kept", "watermark"
    )
    for s in view.streams:
        covered = NOTHING if s.first is None else f"{_time(s.first)}\n{_time(s.last)}"
        counts = (f"{n:,}" for n in (s.rows, s.late, s.rejected))
        name = Text(s.name).append(f"\n{s.error}" if s.error else "", "red")
        table.add_row(name, *counts, covered, _time(s.watermark))
    return table


def _queries(view: PathView) -> Table:
    table = _table("queries", "query", "status", "answered up to", "emitted", "rejected")
    for q in view.queries:
        table.add_row(q.name, _status(q), _time(q.frontier), f"{q.emitted:,}", f"{q.rejected:,}")
    return table


def _status(query: QueryView) -> Text:
    text = Text(query.status, "green" if query.status == RUNNING else "red")
    return text.append(f"\n{query.error}", "red") if query.error else text


def _kept(view: PathView) -> Table:
    table = _table("kept", "of", "what", "packs", "rows", "size")
    for of, what, kept in _holdings(view):
        if kept.packs:
            size = format_bytes(kept.bytes)
            table.add_row(of, what, f"{kept.packs:,}", f"{kept.rows:,}", size)
    return table


def _holdings(view: PathView) -> Iterator[tuple[str, str, Kept]]:
    for stream in view.streams:
        yield stream.name, "rows of the stream", stream.kept
        yield stream.name, "rejects", stream.rejects
    for query in view.queries:
        for slot in query.state:
            yield query.name, f"{slot.holds} ({slot.name})", slot.kept
        yield query.name, _results(query.result_epochs), query.results
        yield query.name, "rejects", query.rejects
    for table in view.tables:
        yield table.name, "table", table.kept


def _results(epochs: tuple[int, int] | None) -> str:
    return "results" if epochs is None else "results of epochs {:,} to {:,}".format(*epochs)


def _groups(view: PathView) -> Table:
    table = _table("ingest", "group", "stream", "source", "last batch")
    for group in view.groups:
        batch = NOTHING if group.last_batch is None else f"{group.last_batch:,}"
        for stream, source in group.streams:
            table.add_row(str(group.number), stream, source, batch)
    return table


def _totals(view: PathView) -> Table:
    totals = view.totals
    table = _table("on disk", "what", "files", "size")
    rows: Sequence[tuple[str, Files]] = (
        ("rows of streams", totals.streams),
        ("state of queries", totals.state),
        ("results", totals.results),
        ("rejects", totals.rejects),
        ("tables", totals.tables),
        ("read, waiting for an epoch", totals.waiting),
        ("manifests", totals.manifests),
        ("checkpoints of Spark", totals.checkpoints),
    )
    for what, found in rows:
        if found.files:
            table.add_row(what, f"{found.files:,}", format_bytes(found.bytes))
    style = "yellow" if totals.unreferenced.files and view.owner is None else ""
    under_way = "" if view.owner is None else ", or under way"
    table.add_row(
        Text(f"referred to by nothing{under_way}", style),
        f"{totals.unreferenced.files:,}",
        format_bytes(totals.unreferenced.bytes),
    )
    return table


# -- cells -------------------------------------------------------------------------------------

NUMBERS = {"rows in", "late", "rejected", "emitted", "packs", "rows", "size", "files",
           "last batch"}  # fmt: skip


def _table(title: str, *columns: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=box.ROUNDED, border_style="dim"
    )
    for name in columns:
        justify: JustifyMethod = "right" if name in NUMBERS else "left"
        table.add_column(name, justify=justify, overflow="fold")
    return table


def _time(micros: int | None) -> str:
    return instant(micros) or NOTHING
