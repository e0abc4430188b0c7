"""`thalweg batch`: the SELECTs of a script over its tables, run by Spark once."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console

from thalweg.cli import rows
from thalweg.cli.script import placed_in, read_script
from thalweg.errors import ConfigError
from thalweg.features import LANGUAGE
from thalweg.spark.terminal import local_engine
from thalweg.statements import parse
from thalweg.statements.create_query import SelectStatement
from thalweg.statements.protocol import Statement


def run_batch(path: Path, master: str | None, show: int, as_json: bool) -> None:
    """Run the statements in their order, and print what each SELECT gives, with the order of its
    joins and the bound of their size in words."""
    script = read_script(path)
    out = Console(highlight=False)
    with placed_in(script):
        statements = list(parse(script, LANGUAGE))
    if not any(isinstance(s, SelectStatement) for s in statements):
        raise ConfigError("the script has no SELECT", remedy="add one over its tables")
    with local_engine(Console(stderr=True), master, None) as engine, placed_in(script):
        number = 0
        for statement in statements:
            if not isinstance(statement, SelectStatement):
                _define(engine, statement, script)
                continue
            number += 1
            frame = engine.batch(statement.text)
            begun = time.perf_counter()
            found = frame.toArrow()
            took = time.perf_counter() - begun
            run = engine.batch.log.runs[-1]
            run.execution = took
            if as_json:
                rows.print_json(f"select {number}", found)
                continue
            out.print(rows.result_table(f"select {number}", found, show))
            out.print(str(run), style="dim", soft_wrap=True)


def _define(engine: object, statement: Statement, script: str) -> None:
    from thalweg.spark.engine import Engine

    assert isinstance(engine, Engine)
    engine.session.run([statement], script)
