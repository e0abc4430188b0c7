"""What an epoch costs depends on what arrives and what is in the windows, not on what has been.

Counts, never time: probes, arrivals, departures, rows and packs kept, packs described in a commit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from thalweg.store.packs import PackMeta
from thalweg.testing.runner import Runner

SECOND = 1_000_000
ROWS = 20
EPOCH = 10  # seconds of stream time in one epoch
LENGTHS = (10, 100, 1_000)
WARM = 10  # epochs until all windows are full

JOIN = (
    "SELECT ISTREAM a.v, b.v AS w FROM s [RANGE 50 SECONDS] a, t [RANGE 50 SECONDS] b "
    "WHERE a.k = b.k AND a.v < b.v"
)
SLIDING = (
    "SELECT k, count(*) AS c, max(v) AS m FROM s [RANGE 60 SECONDS SLIDE 10 SECONDS] GROUP BY k"
)
MOVING = "SELECT k, sum(v) AS c FROM s [RANGE 30 SECONDS] GROUP BY k"
LAST_ROWS = "SELECT count(*) AS c, min(v) AS m FROM s [ROWS 40]"
SIGNED = (
    "SELECT k, sum(-v - 0.1) AS s, avg((v - 1) * 1e10) AS a, stddev(-v) AS d, "
    "sum(1 / (v - 1.5)) AS q FROM s [RANGE 30 SECONDS] GROUP BY k"
)
NOT_FINITE = (
    "SELECT sum(CASE WHEN k = 1 THEN CAST('NaN' AS DOUBLE) WHEN k = 2 "
    "THEN CAST('-Infinity' AS DOUBLE) ELSE -v END) AS s, sum(-v) AS t FROM s"
)
QUERIES = {
    "join": JOIN,
    "sliding": SLIDING,
    "moving": MOVING,
    "rows": LAST_ROWS,
    "signed": SIGNED,
    "not finite": NOT_FINITE,
}


def batch(epoch: int, keys: int = 5) -> pa.Table:
    stamps = [(epoch * EPOCH + i * EPOCH // ROWS) * SECOND for i in range(ROWS)]
    return pa.table({
        "ts": pa.array(stamps, pa.timestamp("us", "UTC")),
        "k": pa.array([i % keys for i in range(ROWS)], pa.int64()),
        "v": [float(i % 3) for i in range(ROWS)],
    })  # fmt: skip


@dataclass
class Trace:
    """A query's statistics after every epoch."""

    stats: list[dict[str, Any]]

    def spent(self, epoch: int) -> dict[str, int]:
        """Counters of one epoch alone."""
        now, before = self.stats[epoch]["counts"], self.stats[epoch - 1]["counts"]
        return {name: count - before.get(name, 0) for name, count in now.items()}

    def kept(self, epoch: int, what: str) -> int:
        stats = self.stats[epoch]
        if what.startswith("state"):
            return int(stats[what])
        return sum(int(s[what]) for s in stats["streams"].values())

    def most_kept(self, what: str, first: int, last: int) -> int:
        return max(self.kept(e, what) for e in range(first, last))


def traced(queries: dict[str, str], epochs: int, **how: Any) -> dict[str, Trace]:
    runner = Runner(**how)
    for name in ("s", "t"):
        runner.stream(name, batch(0).slice(0, 0))
    made = {name: runner.query(sql, name=name) for name, sql in queries.items()}
    traces: dict[str, Trace] = {name: Trace([]) for name in made}
    for epoch in range(epochs):
        runner.feed({"s": batch(epoch), "t": batch(epoch)})
        for name, query in made.items():
            traces[name].stats.append(query.stats())
    return traces


@pytest.fixture(scope="module")
def traces() -> dict[str, Trace]:
    return traced(QUERIES, max(LENGTHS))


@pytest.mark.parametrize("name", QUERIES)
def test_an_epoch_counts_the_same_whenever_it_comes(name: str, traces: dict[str, Trace]) -> None:
    early = traces[name].spent(WARM)
    assert any(count > 0 for count in early.values())
    for length in LENGTHS[1:]:
        assert traces[name].spent(length - 1) == early
    assert all(traces[name].spent(e) == early for e in range(WARM, max(LENGTHS), 37))


def test_a_join_probes_once_per_row_that_comes(traces: dict[str, Trace]) -> None:
    spent = traces["join"].spent(max(LENGTHS) - 1)
    assert spent["arrivals:a"] == spent["arrivals:b"] == ROWS
    assert spent["probes:a"] <= 2 * ROWS
    assert spent["probes:b"] <= 2 * ROWS


@pytest.mark.parametrize("what", ["kept_rows", "packs", "kept_bytes", "state_rows", "state_bytes"])
@pytest.mark.parametrize("name", QUERIES)
def test_what_is_kept_does_not_grow(name: str, what: str, traces: dict[str, Trace]) -> None:
    trace = traces[name]
    early = trace.most_kept(what, WARM, 100)
    assert trace.most_kept(what, 100, max(LENGTHS)) <= early


def test_no_more_is_kept_than_the_windows_ask_for(traces: dict[str, Trace]) -> None:
    """The longest window over s is 60 s: 7 epochs, and some slack for whole packs."""
    kept = traces["sliding"].stats[-1]["streams"]["s"]["kept_rows"]
    assert kept <= (60 // EPOCH + 4) * ROWS


@pytest.mark.parametrize("buckets", [1, 3])
def test_packs_stay_logarithmic_when_everything_is_kept(buckets: int) -> None:
    """D3: neighbours are merged in tiers, so probing stays logarithmic in the number of epochs."""
    sql = "SELECT ISTREAM a.v FROM s [RANGE 30 DAYS] a, t [NOW] b WHERE a.k = b.k AND a.ts > b.ts"
    (trace,) = traced({"join": sql}, 400, buckets=buckets).values()
    for epoch in (9, 49, 99, 199, 399):
        s = trace.stats[epoch]["streams"]["s"]
        assert s["kept_rows"] == (epoch + 1) * ROWS
        assert s["packs"] <= 8 * math.ceil(math.log2(epoch + 2)), f"epoch {epoch}"


@pytest.mark.parametrize("aggregate", ["count(*)", "sum(v)", "max(v)"])
def test_group_state_is_folded(aggregate: str) -> None:
    """Groups are few and stay; their state must not grow by every epoch's changes."""
    sql = f"SELECT k, {aggregate} AS a FROM s [RANGE 40 SECONDS] GROUP BY k"
    (trace,) = traced({"groups": sql}, 200).values()
    early = trace.most_kept("state_rows", WARM, 60)
    assert trace.most_kept("state_rows", 60, 200) <= early


def test_a_commit_describes_what_changed_and_not_all_there_ever_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """D4: manifests are incremental; the work to write one may not grow with the results."""
    described = 0
    plain = PackMeta.to_json

    def counting(pack: PackMeta) -> Any:
        nonlocal described
        described += 1
        return plain(pack)

    monkeypatch.setattr(PackMeta, "to_json", counting)
    runner = Runner()
    for name in ("s", "t"):
        runner.stream(name, batch(0).slice(0, 0))
    runner.query(JOIN)
    costs = []
    for epoch in range(200):
        described = 0
        runner.feed({"s": batch(epoch), "t": batch(epoch)})
        costs.append(described)
    assert max(costs[150:]) <= 2 * max(costs[20:60])
