"""`thalweg sql`: statements for an engine that runs elsewhere, through its path."""

from __future__ import annotations

import pyarrow as pa
from rich.console import Console

from thalweg.cli import rows
from thalweg.cli.script import placed_in
from thalweg.runtime.session.client import Receipt, connect

MOST_ROWS = 1_000


def send(path: str, script: str, as_json: bool, console: Console | None = None) -> None:
    """Run the statements and print what they give."""
    console = console or Console(highlight=False)
    client = connect(path)
    with placed_in(script):
        made = client.sql(script)
    if isinstance(made, Receipt):
        console.print("no engine runs here: written down for the next one", style="yellow")
    elif isinstance(made, pa.Table) and as_json:
        rows.print_json("", made)
    elif isinstance(made, pa.Table) and not made.num_columns:
        console.print("none")
    elif isinstance(made, pa.Table) and made.column_names == ["plan"]:
        for plan in made.column("plan").to_pylist():  # a cell would cut it
            console.print(plan, soft_wrap=True)
    elif isinstance(made, pa.Table):
        console.print(rows.result_table(_title(made), made, MOST_ROWS))
    elif isinstance(made, str):
        console.print(made, soft_wrap=True)


def _title(table: pa.Table) -> str:
    told = table.schema.metadata or {}
    status = told.get(b"thalweg.status", b"").decode()
    since = told.get(b"thalweg.since", b"").decode()
    return f"{status} since {since}" if since else status or "found"
