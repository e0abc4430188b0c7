"""A driver that dies within an epoch while queries share their work and new ones are added: after
a restart no row is lost or doubled, and never do queries have come unequally far.

Seventeen queries and more only filter a stream, so that they run as one; others answer when they
are invoked, by what was kept of their conditions. Queries are added between batches, and again
before a batch that has to be done again.
"""

from __future__ import annotations

import random
import re
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from dying_storage import DyingStorage, Killed, orphans, storage

from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.settings import Settings
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.pack_rows import IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import arrow_fields, make_stream
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.open_path import claim, load_state, release, sweep
from thalweg.runtime.state.query_state import CONDITIONS, FILTERS
from thalweg.store.pack_cache import PackCache
from thalweg.testing.local_executor import LocalExecutor

SECOND = 1_000_000
BATCHES, EACH = 3, 12
Row = tuple[int, int, int]
"""Event time, k, x."""


def batch(number: int) -> list[Row]:
    rng = random.Random(number)
    times = sorted(rng.randrange(2 * SECOND) for _ in range(EACH))
    return [(2 * SECOND * number + t, rng.randrange(3), rng.randrange(6)) for t in times]


INPUT = [batch(number) for number in range(BATCHES)]
ROWS = [row for one in INPUT for row in one]


def table(rows: list[Row]) -> pa.Table:
    stamps = pa.array([r[0] for r in rows], pa.timestamp("us", "UTC"))
    ints = {name: pa.array([r[i] for r in rows], pa.int64()) for i, name in ((1, "k"), (2, "x"))}
    return pa.table({"ts": stamps, **ints})


Filters = dict[str, tuple[int, int]]
"""By name of a query the least x that it wants, and the k that it does not want."""


def some(kind: str, numbers: range) -> Filters:
    return {f"{kind}{i}": (i % 5, i % 3) for i in numbers}


FILTERS_AT_FIRST, ASKED_AT_FIRST = some("f", range(17)), some("p", range(2))
ADDED: list[Filters] = [some("f", range(17, 19)) | some("p", range(2, 4)), some("f", range(19, 20))]
"""The queries that are added before the second batch and before the third."""
AT_FIRST = FILTERS_AT_FIRST | ASKED_AT_FIRST
EVERY = AT_FIRST | ADDED[0] | ADDED[1]


def text(name: str, least: int, other: int) -> str:
    where = f"WHERE x >= {least} AND k <> {other}"
    if name.startswith("f"):
        return f"SELECT k, x FROM s {where}"
    return f"SELECT k, x FROM s [RANGE 3 SECONDS] {where} WITH (materialize = 'p')"


def register(session: Session, queries: Filters) -> None:
    for name, wanted in queries.items():
        if name not in session.queries:
            session.query(text(name, *wanted), name)


def opened(files: DyingStorage) -> tuple[Session, LogWriter]:
    """The engine over a path, with what it knows of earlier lives."""
    state = load_state(files)
    sweep(files, state)
    settings = Settings(tasks=2, share_from=0)
    core = EngineCore(files, LocalExecutor(PackCache(files)), state, settings, clock=wall_clock)
    fields = arrow_fields(table([]).schema)
    core.streams.define(make_stream("s", fields, "ts", retain="1 hour"))
    session = Session(core)
    session.resume()
    return session, LogWriter(files, state.next_seq, state.sources)


def live(files: DyingStorage, impatient: bool = False) -> Session:
    """One life of the driver. An `impatient` one adds all queries before it looks at the log, so
    that a batch that an earlier life began is done again beside them."""
    lock = claim(files.real)
    try:
        session, log = opened(files)
        check_prefix(session)
        register(session, EVERY if impatient else AT_FIRST)
        loop = session.core.driver(log, lambda script, name: session.sql(script))
        loop.save_definitions()
        for number, rows in enumerate(INPUT):
            if number and not impatient:
                register(session, ADDED[number - 1])
            if not log.has("source", number):
                plan = IngestPlan(session.catalog.streams["s"], (), 0, f"log/{number}-", 0)
                packs = ingest_table(plan, table(rows), files).packs
                log.append(1, ("source", number), {"s": packs}, {}, clock=0)
            loop.drain(lambda: True)
        loop.close()
        return session
    finally:
        release(lock)


# -- what is right -------------------------------------------------------------------------------


def wanted(name: str, frontier: int) -> Counter[tuple[int, ...]]:
    """The rows, of those before a frontier, that a query has put out, or is to answer with."""
    least, other = EVERY[name]
    since = frontier - 1 - 3 * SECOND if name.startswith("p") else -1
    rows = [r for r in ROWS if since <= r[0] < frontier and r[2] >= least and r[1] != other]
    return Counter(r if name.startswith("f") else r[1:] for r in rows)


def found(session: Session, name: str) -> Counter[tuple[int, ...]]:
    query = session.queries[name]
    given = query.results() if name.startswith("f") else query.invoke()
    columns = [given[c].to_pylist() for c in ("k", "x")]
    if name.startswith("f"):
        columns.insert(0, given["__ts"].cast(pa.int64()).to_pylist())
    return Counter(zip(*columns, strict=True))


def check_prefix(session: Session) -> None:
    """What is committed when a path is opened is the answer of some queries over some rows, and
    these rows are the same for all queries that do not lie behind."""
    core = session.core
    frontiers = set()
    for name in session.queries:
        if core.readiness.is_behind(name):
            continue
        frontier = session.queries[name].stats()["frontier"]
        if not core.state.streams["s"].rows:
            continue
        frontiers.add(frontier)
        assert found(session, name) == wanted(name, frontier), (name, frontier)
    assert len(frontiers) <= 1, frontiers


def check(path: Path, session: Session, title: str) -> None:
    """Everything, once."""
    end = ROWS[-1][0] + 1
    for name in EVERY:
        assert found(session, name) == wanted(name, end), (title, name)
    stream = session.core.state.streams["s"]
    assert (stream.rows, stream.late) == (len(ROWS), 0), title
    assert not orphans(path), title


def undisturbed(tmp_path: Path) -> tuple[Session, list[str]]:
    files = storage(tmp_path / "undisturbed")
    return live(files), files.seen


def test_queries_share_what_they_do(tmp_path: Path) -> None:
    """Without this the others would show little."""
    session, points = undisturbed(tmp_path)
    check(tmp_path / "undisturbed", session, "undisturbed")
    core = session.core
    assert len(core.cohorts.by_name) == sum(name.startswith("f") for name in EVERY) >= 17
    assert set(core.condition_cohorts.by_name)
    kinds = {kind: [n for n, _ in core.state.of_kind(kind)] for kind in (FILTERS, CONDITIONS)}
    assert all(kinds.values()), kinds
    for written in ("commit log", "commit manifests", "write log/", "write q/__"):
        assert any(p.startswith(written) for p in points), written


def chosen(points: list[str]) -> list[int]:
    """After one write or deletion of each kind; of each commit of a batch or an epoch, in turns,
    before it, with a draft at hand, and when it is made; and within one write."""
    kinds: dict[str, list[int]] = {}
    for number, point in enumerate(points):
        kinds.setdefault(re.sub(r"[0-9a-f]{8,}|[0-9]+", "", point), []).append(number)
    found = {at[len(at) // 2] for kind, at in kinds.items() if kind.endswith("after")}
    for what in ("commit log", "commit manifests"):
        commits = [n for n, p in enumerate(points) if p.startswith(what)]
        found |= {commits[3 * turn + turn % 3] for turn in range(len(commits) // 3)}
    torn = [n for n, p in enumerate(points) if p.endswith("torn")]
    return sorted({*found, torn[len(torn) // 2]})


@pytest.mark.parametrize("part", range(2))
def test_death_within_an_epoch(tmp_path: Path, part: int) -> None:
    """priorart C7, PS-7: killed before, inside and after writes and commits, of the log and of the
    manifest, between packs and manifest; every second life afterwards adds what is new beside the
    batch that it does again."""
    _, points = undisturbed(tmp_path)
    for turn, number in enumerate(chosen(points)[part::2]):
        path, title = tmp_path / "killed", f"killed at {number}: {points[number]}"
        with pytest.raises(Killed):
            live(storage(path, number))
        check(path, live(storage(path), impatient=turn % 2 == 0), title)
        shutil.rmtree(path)


@pytest.mark.parametrize("seed", range(4))
def test_deaths_in_a_row(tmp_path: Path, seed: int) -> None:
    """priorart C7, PS-7: lives end anywhere, those that recover too, and with a batch half done
    more queries come."""
    rng = random.Random(seed)
    deaths, session = 0, None
    while session is None:
        files = storage(tmp_path, rng.randrange(60) if deaths < 8 else -1)
        try:
            session = live(files, impatient=rng.random() < 0.3)
        except Killed:
            deaths += 1
    check(tmp_path, session, f"seed {seed}, {deaths} deaths")
