"""Result rows for the eye and for programs."""

from __future__ import annotations

import json
import math
import sys
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich import box
from rich.table import Table
from rich.text import Text

from thalweg.cli.sizes import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from thalweg.spark.engine import Engine

WIDEST_CELL = 40


def print_json(query: str, table: pa.Table) -> None:
    """One line of JSON a row, with the query's name if there is one; times as ISO text, what JSON
    lacks (NaN, decimals) as text."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            plain = {k: _plain(v) for k, v in row.items()}
            owner = {"query": query} if query else {}
            sys.stdout.write(json.dumps({**owner, **plain}) + "\n")
    sys.stdout.flush()


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)


def one_line(row: Mapping[str, Any]) -> str:
    """A row in one line: its instant, its sign if it has one, its values."""
    sign = {1: "+ ", -1: "- "}.get(row.get("__sign", 0), "")
    values = ", ".join(f"{k} {cell(v)}" for k, v in row.items() if not k.startswith("__"))
    return f"{cell(row['__ts'])}  {sign}{values}"


def cell(value: Any) -> str:
    """A value in the width of a table cell."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        return text.rstrip("0").rstrip(".")
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= WIDEST_CELL else text[: WIDEST_CELL - 1] + "…"


def result_table(name: str, found: pa.Table, most: int) -> Table:
    """The newest rows of a query."""
    shown = found.slice(max(0, found.num_rows - most))
    count = plural(found.num_rows, "row")
    if shown.num_rows < found.num_rows:
        count += f", the newest {shown.num_rows}"
    table = Table(
        title=f"{name} ({count})", title_justify="left", title_style="bold", box=box.ROUNDED,
        border_style="dim",
    )  # fmt: skip
    for field in found.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if number else "left")
    for row in shown.to_pylist():
        table.add_row(*(Text(cell(v)) for v in row.values()))
    return table


def live_table(engine: Engine, results: Mapping[str, int], newest: Mapping[str, pa.Table]) -> Table:
    """Every query with its count and newest rows."""
    table = Table(box=box.ROUNDED, border_style="dim", expand=True, caption="Ctrl-C stops")
    table.add_column("query", no_wrap=True)
    table.add_column("status", no_wrap=True)
    table.add_column("results", justify="right", no_wrap=True)
    table.add_column("newest rows", ratio=1)
    for name, query in engine.queries.items():
        lines = [one_line(r) for r in newest[name].to_pylist()] if name in newest else []
        style = "green" if query.status == "running" else "red"
        table.add_row(
            Text(name, "bold"),
            Text(query.status, style),
            f"{results.get(name, 0):,}",
            Text("\n".join(lines), "dim", no_wrap=True, overflow="ellipsis"),
        )
    return table


def summary(engine: Engine) -> str:
    """Rows read, late and rejected per stream."""
    streams: dict[str, dict[str, Any]] = {}
    for query in engine.queries.values():
        streams |= query.stats()["streams"]
    parts = []
    for name, state in streams.items():
        text = f"{name}: {plural(state['rows'], 'row')}"
        text += f", {state['late']:,} late" if state["late"] else ""
        text += f", {state['rejected']:,} rejected" if state["rejected"] else ""
        parts.append(text)
    return "; ".join(parts)
