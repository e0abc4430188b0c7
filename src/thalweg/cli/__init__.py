"""The `thalweg` command: demo, run, batch, sql, explain, doctor, state, vacuum, bench.

Exit codes: 0 all is well; 1 a refusal or a failure, said on stderr; 2 the command was misused;
130 stopped by Ctrl-C, after a clean stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from thalweg import __version__
from thalweg.cli.errors import exit_code

__all__ = ["app", "main"]

app = typer.Typer(
    name="thalweg",
    help="Continuous SQL on Spark, with exact results.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

Script = Annotated[
    Path, typer.Argument(help="A file of SQL statements; - reads them from standard input.")
]
EnginePath = Annotated[str, typer.Argument(help="The path (or URL) of an engine.")]
Master = Annotated[str | None, typer.Option(help="Spark master URL; by default all local cores.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"thalweg {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Continuous SQL on Spark, with exact results."""


@app.command("demo")
def _demo(
    seconds: Annotated[float, typer.Option(min=2, help="How long data flows.")] = 25.0,
    svg: Annotated[Path | None, typer.Option(help="Save a picture of the run here.")] = None,
    master: Master = None,
) -> None:
    """A guided run on live, drifting data; ends by itself in about a minute."""
    from thalweg.demo import demo

    raise typer.Exit(demo(seconds, svg=svg, master=master))


@app.command("run")
def _run(
    script: Script,
    once: Annotated[
        bool | None,
        typer.Option(
            "--once/--live",
            help="Drain the sources, close and print the results; or go on until Ctrl-C. "
            "By default live on a terminal, else once.",
        ),
    ] = None,
    path: Annotated[
        str | None, typer.Option(help="Keep log, state and results here, to go on later.")
    ] = None,
    master: Master = None,
    final: Annotated[
        bool | None,
        typer.Option(
            "--final/--open",
            help="With --once: let time go on until every window is empty, or leave the end open "
            "for later rows. By default final without --path.",
        ),
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="Newest rows to print per query.")] = 10,
    json: Annotated[
        bool, typer.Option("--json", help="Print every result row as a line of JSON.")
    ] = False,
) -> None:
    """Run a script of statements; Ctrl-C stops cleanly."""
    from thalweg.cli.run import Options, run_script

    raise typer.Exit(run_script(script, Options(once, path, master, show, json, final)))


@app.command("batch")
def _batch(
    script: Script,
    master: Master = None,
    show: Annotated[int, typer.Option(min=0, help="Last rows to print per SELECT.")] = 10,
    json: Annotated[
        bool, typer.Option("--json", help="Print every result row as a line of JSON.")
    ] = False,
) -> None:
    """Run SELECTs over tables once, with joins in the order that bounds say is best."""
    from thalweg.cli.batch import run_batch

    run_batch(script, master, show, json)


@app.command("sql")
def _sql(
    path: EnginePath,
    script: Annotated[str, typer.Argument(help="SQL statements, separated by semicolons.")],
    json: Annotated[bool, typer.Option("--json", help="Print rows as lines of JSON.")] = False,
) -> None:
    """Register, alter, pause, drop, list and invoke queries of an engine through its path."""
    from thalweg.cli.sql import send

    send(path, script, json)


@app.command("explain")
def _explain(script: Script) -> None:
    """Show each query's plan, routing and bounded-state verdict, without starting Spark."""
    from thalweg.cli.explain import explain_script

    explain_script(script)


@app.command("doctor")
def _doctor(
    path: Annotated[
        Path | None, typer.Option(help="Also judge this folder as a place for an engine's files.")
    ] = None,
    start: Annotated[bool, typer.Option(help="Also start Spark and run a small job.")] = False,
) -> None:
    """Look at Java, Spark and everything else Thalweg needs; say what to do about problems."""
    from thalweg.cli.doctor import examine

    raise typer.Exit(examine(path, start))


@app.command("state")
def _state(
    path: EnginePath,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what an engine keeps under its path; nothing is touched, and it may be running."""
    from thalweg.cli.state import show_state

    show_state(path, json)


@app.command("vacuum")
def _vacuum(
    path: EnginePath,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Change nothing, say what would be done.")
    ] = False,
    results_older_than: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Also forget results committed longer ago."),
    ] = None,
) -> None:
    """Remove what nothing refers to from the path of an engine that does not run."""
    from thalweg.cli.vacuum import vacuum

    vacuum(path, dry_run, results_older_than)


@app.command("bench")
def _bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="By default all of them.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer rows, no slow peers.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write the figures here.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
) -> None:
    """Reproduce the claims: run benchmarks and say which goals hold."""
    from thalweg.cli.bench import list_benches, run_benches

    if list_:
        list_benches()
        raise typer.Exit
    raise typer.Exit(run_benches(names or [], quick, json))


def main(argv: Sequence[str] | None = None) -> int:
    """The console script; returns the exit code."""
    try:
        app(args=None if argv is None else list(argv), prog_name="thalweg")
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else int(done.code is not None)
    except BaseException as error:
        return exit_code(error)
    return 0
