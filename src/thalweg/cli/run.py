"""`thalweg run`: a script's queries, drained once or followed live."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console
from rich.live import Live

from thalweg.cli import rows
from thalweg.cli.errors import FAILED, interrupted, print_error, print_note
from thalweg.cli.explain import show
from thalweg.cli.script import placed_in, read_script
from thalweg.errors import ConfigError, QueryFailed, SourceError
from thalweg.features import LANGUAGE
from thalweg.plan.catalog import REJECTS, SYSSTREAM, StreamDef
from thalweg.runtime.epoch.coordinator import EpochReport
from thalweg.runtime.session.rehearsal import plan_session
from thalweg.runtime.session.session import Query
from thalweg.runtime.sources.found_files import awaited, refuse_files
from thalweg.runtime.state.internal_names import kind_of_output
from thalweg.runtime.state.query_state import FAILED as QUERY_FAILED
from thalweg.runtime.state.query_state import FILTERS
from thalweg.spark.terminal import local_engine
from thalweg.statements import parse
from thalweg.store.storage import open_storage

if TYPE_CHECKING:
    from thalweg.spark.engine import Engine

REDRAW_SECONDS = 0.25
NEWEST = 3


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `thalweg run`."""

    once: bool | None = None
    path: str | None = None
    master: str | None = None
    show: int = 10
    json: bool = False
    final: bool | None = None


def run_script(path: Path, options: Options) -> int:
    """Run the statements; the exit code."""
    script = read_script(path)
    out = Console(highlight=False)
    once = not out.is_terminal if options.once is None else options.once
    _rehearse(script, options.path)
    with local_engine(Console(stderr=True), options.master, options.path) as engine:
        with placed_in(script):
            for statement in parse(script, LANGUAGE):
                made = engine.session.run([statement], script)
                if isinstance(made, (str, pa.Table)):
                    show(made, out)
        return _once(engine, options, out) if once else _live(engine, options, out)


def _rehearse(script: str, path: str | None) -> None:
    """Refuse what cannot run before Spark is started; a path knows streams that the script need
    not name."""
    session = plan_session(None if path is None else open_storage(path))
    with placed_in(script):
        for statement in parse(script, LANGUAGE):
            session.run([statement], script)
    for stream in session.catalog.streams.values():
        _check_source(stream)
    if not session.queries:
        raise ConfigError(
            "the script has no query", remedy="add CREATE QUERY name AS SELECT ..., or a SELECT"
        )


def _check_source(stream: StreamDef) -> None:
    """Rows must be able to come; if none can yet, that is said."""
    own = stream.name == SYSSTREAM or stream.name.endswith(REJECTS)
    if own or stream.source.kind in ("spark", "view"):
        return
    if stream.source.kind != "files":
        raise SourceError(
            f"stream {stream.name} has no source", remedy="add FROM FILES 'folder' FORMAT parquet"
        )
    refuse_files(stream)
    waiting = awaited(stream)
    if waiting is not None:
        print_note(f"stream {stream.name}: {waiting[0]}", waiting[1])


# -- once --------------------------------------------------------------------------------------


def _once(engine: Engine, options: Options, out: Console) -> int:
    tally = Tally(engine, 0)
    failed: SourceError | None = None
    before = engine.core.state.epoch
    with Console(stderr=True).status("Reading ...") as status:

        def progress(report: EpochReport) -> None:
            tally.epoch(report)
            status.update(f"{tally.rows:,} rows read, {tally.epochs} epochs ...")

        try:
            engine.run(progress, final=options.final)
        except SourceError as error:  # the others have been read to their end
            failed = error
    code = _print_results(engine, options, out, before)
    if failed is None:
        return code
    print_error(failed)
    return FAILED


def _print_results(engine: Engine, options: Options, out: Console, before: int) -> int:
    """What queries have emitted after an epoch: in this run."""
    code = 0
    for query in engine.queries.values():
        try:
            found = query.results(before)
        except QueryFailed as error:
            print_error(error)
            code = FAILED
            continue
        if options.json:
            rows.print_json(query.name, found)
        else:
            out.print(rows.result_table(query.name, found, options.show))
            _print_rejects(query, out)
    if not options.json:
        out.print(rows.summary(engine), style="dim", soft_wrap=True)
        out.print(_end(options), style="dim", soft_wrap=True)
    return code


def _end(options: Options) -> str:
    """How far time has gone."""
    if options.final or (options.final is None and options.path is None):
        return "final: time went on until every window that time empties was empty"
    return (
        "the end is open: windows are as of the last row, and the next run goes on from there "
        "(--final lets time empty them)"
    )


def _print_rejects(query: Query, out: Console) -> None:
    count = query.stats()["rejected"]
    if count:
        first = query.rejects().slice(0, 1).to_pylist()[0]
        why = first.get("__reason") or first.get("reason") or "see Query.rejects()"
        out.print(f"{count:,} rows rejected; the first: {why}", style="yellow", soft_wrap=True)


# -- live --------------------------------------------------------------------------------------


class Tally:
    """Counts and newest rows, kept by the engine's thread."""

    def __init__(self, engine: Engine, newest: int) -> None:
        self.engine = engine
        self.rows = 0
        self.epochs = 0
        self.late = 0
        self.results: dict[str, int] = dict.fromkeys(engine.queries, 0)
        self.newest: dict[str, pa.Table] = {}
        self._keep = newest
        self._shown: dict[str, int] = {}
        self.lock = threading.Lock()

    def epoch(self, report: EpochReport) -> None:
        """The engine's progress callback."""
        with self.lock:
            self.rows += report.rows_in
            self.epochs += 1
            self.late += report.late
        for name, packs in report.outputs.items():
            if packs and name in self.engine.queries:
                query = self.engine.queries[name]
                self._came(query, query.output(packs))
            elif packs and kind_of_output(name) == FILTERS:
                self._of_members(report)

    def _of_members(self, report: EpochReport) -> None:
        """Output of queries that share a filter lies together."""
        for name, query in self.engine.queries.items():
            shown = self._shown.get(name, report.epoch - 1)
            if report.outputs.get(name) or shown >= report.epoch:
                continue
            self._shown[name] = query.stats()["epoch"]
            output = query.results(shown)
            if output.num_rows:
                self._came(query, output)

    def _came(self, query: Query, output: pa.Table) -> None:
        with self.lock:
            self.results[query.name] = self.results.get(query.name, 0) + output.num_rows
        self.arrived(query, output)

    def arrived(self, query: Query, output: pa.Table) -> None:
        """An epoch's output of one query."""
        self.newest[query.name] = output.slice(max(0, output.num_rows - self._keep))


class Printer(Tally):
    """For pipes: every result as it comes, as JSON or as text."""

    def __init__(self, engine: Engine, options: Options, out: Console) -> None:
        super().__init__(engine, options.show)
        self.options, self.out = options, out

    def arrived(self, query: Query, output: pa.Table) -> None:
        if self.options.json:
            rows.print_json(query.name, output)
            return
        for row in output.slice(0, self._keep).to_pylist():
            self.out.print(f"{query.name}  {rows.one_line(row)}", soft_wrap=True)
        if output.num_rows > self._keep:
            self.out.print(f"{query.name}  ... {output.num_rows - self._keep:,} more")


def _live(engine: Engine, options: Options, out: Console) -> int:
    screen = out.is_terminal and not options.json
    tally = Tally(engine, min(options.show, NEWEST)) if screen else Printer(engine, options, out)
    engine.start(tally.epoch)
    try:
        if screen:
            with Live(console=out, auto_refresh=False) as live:
                while _going(engine):
                    live.update(rows.live_table(engine, tally.results, tally.newest), refresh=True)
                    time.sleep(REDRAW_SECONDS)
        else:
            while _going(engine):
                time.sleep(REDRAW_SECONDS)
        code = FAILED
    except KeyboardInterrupt as error:
        code = interrupted(error)
        print("stopping ...", file=sys.stderr)
    _stop(engine)
    if screen:
        out.print(rows.summary(engine), style="dim", soft_wrap=True)
    return max(code, _failures(list(engine.queries.values())))


def _going(engine: Engine) -> bool:
    statuses = [q.status for q in engine.queries.values()]
    return engine.failure is None and any(s != QUERY_FAILED for s in statuses)


def _stop(engine: Engine) -> None:
    """Stop; what stopped the engine before is the error to show."""
    failure = engine.failure
    engine.stop()
    if failure is not None:
        raise failure


def _failures(queries: Sequence[Query]) -> int:
    code = 0
    for query in queries:
        if query.status == QUERY_FAILED:
            reason = str(query.stats()["error"] or "unknown").splitlines()[0]
            print_error(
                QueryFailed(
                    f"query {query.name} failed: {reason}",
                    remedy="mend its cause and start again: it goes on where it stopped",
                )
            )
            code = FAILED
    return code
