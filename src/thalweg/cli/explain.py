"""`thalweg explain`: what the statements of a script mean, without starting Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from thalweg.cli.script import placed_in, read_script
from thalweg.features import LANGUAGE
from thalweg.instants import format_duration
from thalweg.masking import masked
from thalweg.plan.catalog import StreamDef, TableDef
from thalweg.runtime.session.rehearsal import plan_session
from thalweg.runtime.session.session import Query
from thalweg.statements import parse


def explain_script(path: Path, console: Console | None = None) -> None:
    """Print every stream, table and query of the script as understood."""
    script = read_script(path)
    console = console or Console(highlight=False)
    session = plan_session()
    with placed_in(script):
        for statement in parse(script, LANGUAGE):
            show(session.run([statement], script), console)


def show(made: object, console: Console) -> None:
    """What a statement made, in words."""
    if isinstance(made, StreamDef):
        _heading(console, "stream", made.name, _stream(made))
    elif isinstance(made, TableDef):
        _heading(console, "table", made.name, ", ".join(f"{f.name} {f.type}" for f in made.fields))
    elif isinstance(made, Query):
        _heading(console, "query", made.name, "")
        if console.is_terminal:
            console.print(Syntax(masked(made.text), "sql", background_color="default"))
        _print_plan(console, made.explain())
    elif isinstance(made, str):
        _print_plan(console, made)
    elif isinstance(made, pa.Table):
        for row in made.to_pylist():
            console.print(", ".join(f"{k} {v}" for k, v in row.items()), soft_wrap=True)


def _heading(console: Console, kind: str, name: str, rest: str) -> None:
    text = Text.assemble((f"{kind} ", "cyan"), (name, "bold"), ("  " if rest else "", ""))
    console.print(text.append(rest), soft_wrap=True)


def _stream(stream: StreamDef) -> str:
    columns = ", ".join(f"{f.name} {f.type}" for f in stream.fields)
    time = f"time {stream.timestamp}" if stream.timestamp else "time of arrival"
    late = f", lateness {format_duration(stream.lateness)}" if stream.lateness else ", in order"
    return f"({columns})  {time}{late}"


def _print_plan(console: Console, plan: str) -> None:
    for line in plan.splitlines():
        style = "red" if line.startswith("state: unbounded") else ""
        style = "green" if line.startswith("state: bounded") else style
        console.print(Text("  " + line, style), soft_wrap=True)
    console.print()
