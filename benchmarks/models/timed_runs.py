"""Queries over tables in this process, from packs to the committed epoch, by process CPU time.

The rows lie in packs before the clock starts: ingest costs the same with and without models.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from thalweg.testing import Runner

REPEATS = 5
WHOLE = 1 << 30
"""Epochs as they are fed, not in slices: what is measured is work, not the cost of many epochs."""


@dataclass(frozen=True)
class Stream:
    """The rows of a stream, in the order of time, and its key."""

    table: pa.Table
    key: tuple[str, ...]


@dataclass(frozen=True)
class Ran:
    """One run: CPU seconds of its epochs, the rows that the query emitted, what it counted."""

    seconds: float
    rows: int
    counts: Mapping[str, float]
    results: pa.Table | None = None


@dataclass(frozen=True)
class Timed:
    """The median of some runs, and half of what lies between the fastest and the slowest."""

    seconds: float
    spread: float
    rows: int
    counts: Mapping[str, float]

    def rate(self, tuples: int) -> float:
        """Millions a second."""
        return tuples / self.seconds / 1e6


def ran(
    sql: str,
    streams: Mapping[str, Stream],
    epochs: int = 1,
    *,
    view: str | None = None,
    epoch_rows: int | None = WHOLE,
    results: bool = False,
) -> Ran:
    """Run a query; with `view` one that keeps segments is made and fed before the clock starts, and
    the query then goes through what it keeps."""
    runner = Runner(epoch_rows=epoch_rows)
    batches: list[dict[str, pa.Table]] = [{} for _ in range(epochs)]
    for name, stream in streams.items():
        runner.stream(name, stream.table.slice(0, 0), key=list(stream.key))
        n = stream.table.num_rows
        for i, batch in enumerate(batches):
            low, high = n * i // epochs, n * (i + 1) // epochs
            batch[name] = stream.table.slice(low, high - low)
    if view is not None:
        runner.sql(view)
        for batch in batches:
            runner.feed(batch)
        runner.close()
        batches = []
    query = runner.query(sql, name="q")
    seconds = 0.0
    for batch in batches:
        entry = runner.entry(batch)
        begun = time.process_time()
        runner.epoch([entry])
        seconds += time.process_time() - begun
    begun = time.process_time()
    if view is not None:
        runner.epoch([])
    runner.close()
    seconds += time.process_time() - begun
    counts = dict(runner.core.state.queries["q"].operators.counts)
    found = query.results() if results else None
    return Ran(seconds, query.stats()["emitted"], counts, found)


def turns(ways: Mapping[str, Callable[[], Ran]], repeats: int = REPEATS) -> dict[str, Timed]:
    """Run all ways in turns, so that noise meets each alike, after one that compiles."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    last: dict[str, Ran] = {}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            last[name] = way()
            if turn:
                times[name].append(last[name].seconds)
    return {
        name: Timed(statistics.median(found), spread_of(found), last[name].rows, last[name].counts)
        for name, found in times.items()
    }


def spread_of(times: Sequence[float]) -> float:
    """Half of the range, in percent of the median."""
    return 100 * (max(times) - min(times)) / 2 / statistics.median(times)
