"""Queries that other engines and benchmarks document, checked against a batch oracle.

Each `name.sql` is a script in the language; `oracle/name.sql` computes from the same rows, all at
once in DuckDB, what the script must emit: the instant `__ts`, `__sign` where it is a relation, then
the columns. Times are integers of microseconds there. However the input is cut, the answer must be
that bag.
"""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any

import duckdb
import nexmark_events
import numpy as np
import peer_events
import pyarrow as pa
import pytest

from thalweg.testing.compare import ResultRow, difference, from_table
from thalweg.testing.runner import Runner

HERE = Path(__file__).parent


@dataclass(frozen=True, eq=False)
class Input:
    """Streams in the order of their arrival, and tables, for both engines."""

    streams: Mapping[str, pa.Table]
    event_time: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)

    def emitted(self, script: str, way: Way) -> list[ResultRow]:
        """What the engine emits; no row may be late or rejected, for the oracle sees them all."""
        runner = way(self)
        for name, table in self.streams.items():
            time = self.event_time.get(name, "ts")
            runner.stream(name, table, time, lateness=disorder(table[time]))
        for name, table in self.tables.items():
            runner.table(name, table)
        query = runner.sql(script)
        runner.run()
        assert query.rejects().num_rows == 0
        assert all(runner.rejects(name).num_rows == 0 for name in self.streams)
        return from_table(query.results())

    def expected(self, script: str) -> list[ResultRow]:
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            for name, table in (*self.streams.items(), *self.tables.items()):
                connection.register(name, _plain(table))
            answer = connection.execute(script)
            names = [column[0] for column in answer.description]
            return [_result(names, row) for row in answer.fetchall()]


Way = Callable[[Input], Runner]


def disorder(times: pa.ChunkedArray) -> int:
    """How far a row comes behind the latest before it, at most: no lateness below will do."""
    micros = times.cast(pa.int64()).to_numpy()
    return int((np.maximum.accumulate(micros) - micros).max())


def _plain(table: pa.Table) -> pa.Table:
    """Timestamps as integers: no zones, no surprises."""
    for i, column in enumerate(table.schema):
        if pa.types.is_timestamp(column.type):
            table = table.set_column(i, column.name, table[column.name].cast(pa.int64()))
    return table


def _result(names: list[str], row: tuple[Any, ...]) -> ResultRow:
    assert names[0] == "__ts"
    if "__sign" in names:
        assert names[1] == "__sign"
        return row[0], row[1], row[2:]
    return row[0], 1, row[1:]


# -- ways of cutting -------------------------------------------------------------------------------


def one_epoch(given: Input) -> Runner:
    return Runner()


def random_cuts(given: Input) -> Runner:
    """Each stream is cut on its own, so that one may be far ahead of another."""
    rng = random.Random(11)
    cuts = {
        name: sorted(rng.randrange(table.num_rows) for _ in range(8))
        for name, table in given.streams.items()
    }
    return Runner(cuts, buckets=3, switches=5)


def small_epochs(given: Input) -> Runner:
    return Runner(30, buckets=2, restarts=range(3, 30, 8))


WAYS = (one_epoch, random_cuts, small_epochs)  # each draws its events from its place here


# -- the inputs ------------------------------------------------------------------------------------


@cache
def drawn_nexmark(seed: int) -> Input:
    return _nexmark(nexmark_events.drawn(seed, 5_000))


@cache
def stored_nexmark() -> Input:
    """The benchmark's own events, all of them; they are not part of the project."""
    root = os.environ.get("THALWEG_DATA") or HERE.parents[2] / "shared" / "data"
    folder = Path(root) / "nexmark"
    if not (folder / "bid.parquet").exists():
        pytest.skip(f"no Nexmark events at {folder}: set THALWEG_DATA to the folder above it")
    return _nexmark(nexmark_events.from_files(folder))


def _nexmark(streams: nexmark_events.Streams) -> Input:
    return Input(streams, nexmark_events.EVENT_TIME)


@cache
def drawn_peers(seed: int) -> Input:
    return Input(peer_events.drawn(seed), tables=peer_events.tables())


# -- the comparison --------------------------------------------------------------------------------


def queries(folder: str) -> list[str]:
    """The scripts of a folder, by name."""
    return sorted(path.stem for path in (HERE / folder).glob("*.sql"))


@cache
def expected(path: str, given: Input) -> list[ResultRow]:
    """The oracle's answer; one that is empty would prove nothing."""
    script = HERE / f"{path}.sql"
    rows = given.expected((script.parent / "oracle" / script.name).read_text())
    assert rows
    return rows


def check(path: str, given: Input, way: Way) -> None:
    wanted = expected(path, given)
    ours = given.emitted((HERE / f"{path}.sql").read_text(), way)
    if not same_bag(wanted, ours):
        pytest.fail(f"{path}: {difference(wanted, ours)}", pytrace=False)


def same_bag(some: list[ResultRow], others: list[ResultRow]) -> bool:
    """Equal as bags and in the types of their values, floats at 1e-9 relative."""
    if _types(some) != _types(others):
        return False
    if Counter(some) == Counter(others):
        return True
    left, right = _by_exact_values(some), _by_exact_values(others)
    return left.keys() == right.keys() and all(_close(left[key], right[key]) for key in left)


def _types(rows: list[ResultRow]) -> list[set[type]]:
    """By column: to Python 1 and 1.0 are the same, to SQL they are not."""
    columns = zip(*(values for _, _, values in rows), strict=True)
    return [set(map(type, column)) for column in columns]


Floats = list[tuple[float, ...]]


def _by_exact_values(rows: list[ResultRow]) -> dict[Any, Floats]:
    """The floats of rows that agree in everything else, in order."""
    found: dict[Any, Floats] = defaultdict(list)
    for ts, sign, values in rows:
        rest = tuple(float if isinstance(v, float) else v for v in values)
        found[ts, sign, rest].append(tuple(v for v in values if isinstance(v, float)))
    return {key: sorted(floats) for key, floats in found.items()}


def _close(some: Floats, others: Floats) -> bool:
    return len(some) == len(others) and all(
        isclose(a, b, rel_tol=1e-9)
        for left, right in zip(some, others, strict=True)
        for a, b in zip(left, right, strict=True)
    )


# -- the tests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("query", queries("nexmark"))
def test_nexmark_on_drawn_events(query: str, way: Way) -> None:
    check(f"nexmark/{query}", drawn_nexmark(WAYS.index(way)), way)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("query", queries("nexmark"))
def test_nexmark_on_its_own_events(query: str, way: Way) -> None:
    check(f"nexmark/{query}", stored_nexmark(), way)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("query", queries("peers"))
def test_what_peers_document(query: str, way: Way) -> None:
    check(f"peers/{query}", drawn_peers(WAYS.index(way)), way)


@pytest.mark.parametrize("folder", ["nexmark", "peers"])
def test_every_script_has_an_oracle_and_says_what_it_asks(folder: str) -> None:
    names = queries(folder)
    oracles = set(queries(f"{folder}/oracle"))
    assert oracles == set(names)
    assert all((HERE / folder / f"{name}.sql").read_text().startswith("-- ") for name in names)


def test_the_comparison_sees_differences() -> None:
    rows: list[ResultRow] = [(5, 1, ("a", 1.0, None)), (5, 1, ("a", 2.0, None))]
    assert same_bag(rows, [(5, 1, ("a", 2.0 + 1e-12, None)), (5, 1, ("a", 1.0, None))])
    assert not same_bag(rows, rows[:1])
    assert not same_bag(rows, [*rows, rows[0]])
    for other in [(6, 1, ("a", 1.0, None)), (5, -1, ("a", 1.0, None)), (5, 1, ("a", 1.001, None))]:
        assert not same_bag(rows, [other, rows[1]])
    assert not same_bag(rows, [(5, 1, ("a", 1, None)), rows[1]])
