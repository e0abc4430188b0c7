"""Subresults: looked up, filled, maintained, put out; and never seen in the output."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest
from inspecting import Inspector

from thalweg.plan.joins.join_caches import Span, all_spans, compatible, with_spans
from thalweg.plan.joins.join_order import Orders
from thalweg.runtime.session.session import Query
from thalweg.testing.compare import difference, from_table
from thalweg.testing.grid import load, reference_result
from thalweg.testing.joingraphs import random_join
from thalweg.testing.runner import Runner

SECOND = 1_000_000


def streamed(rows: list[tuple[int, ...]], columns: str) -> list[pa.Table]:
    """Rows (second, values...) of a stream, second by second; in each a row without keys, so that
    time goes on."""
    found = []
    for second in range(1, 10):
        now = [r[1:] for r in rows if r[0] == second]
        values = {
            c: pa.array([*(r[i] for r in now), None], pa.int64()) for i, c in enumerate(columns)
        }
        stamps = pa.array([second * SECOND] * (len(now) + 1), pa.timestamp("us", "UTC"))
        found.append(pa.table({**values, "ts": stamps}))
    return found


def keep(runner: Runner, query: Query, spans: list[Span]) -> None:
    plans = runner.core.plans
    plans.replace(query.name, with_spans(plans[query.name], 0, spans))
    runner.core.adaptation.queries.clear()  # nobody else changes the plan


THREE = """SELECT ISTREAM r1.a, r2.b, r3.b AS c FROM r1 [RANGE 1 HOUR], r2 [RANGE 1 HOUR],
  r3 [RANGE 1 HOUR] WHERE r1.a = r2.a AND r2.b = r3.b"""


def three() -> Query:
    """The note's example: R2 holds (1,2), (1,3), (2,3), R3 holds 2; R1 brings 1, 1; R3 then 3; R1
    again 1. Every second is an epoch."""
    streams = {
        "r1": streamed([(4, 1), (5, 1), (8, 1)], "a"),
        "r2": streamed([(1, 1, 2), (1, 1, 3), (1, 2, 3)], "ab"),
        "r3": streamed([(2, 2), (6, 3)], "b"),
    }
    runner = Runner()
    for name, tables in streams.items():
        runner.stream(name, tables[0].slice(0, 0))
    query = runner.query(THREE, name="q")
    plan = runner.core.planner.physical(query.bound, Orders((), ((1, 2), (2, 0), (1, 0))))
    runner.core.plans.replace("q", plan)
    keep(runner, query, [Span(0, 0, 1)])
    for second in range(9):
        runner.epoch([runner.entry({n: tables[second] for n, tables in streams.items()})])
    runner.close()
    return query


def test_the_golden_trace() -> None:
    """Miss and create, hit, insert to a present key, ignore an absent one (streamon #27)."""
    query = three()
    rows = sorted((r["__ts"].second, r["a"], r["b"], r["c"]) for r in query.results().to_pylist())
    assert rows == [
        (4, 1, 2, 2),
        (5, 1, 2, 2),
        (6, 1, 3, 3),
        (6, 1, 3, 3),
        (8, 1, 2, 2),
        (8, 1, 3, 3),
    ]
    counts = query.stats()["counts"]
    assert counts["lookups:r2⋈r3"] == 3
    assert counts["misses:r2⋈r3"] == counts["fills:r2⋈r3"] == 1  # the first ⟨1⟩; the others hit
    assert counts["deltas:r2⋈r3"] == 3  # ⟨1,2,2⟩ before anybody asked, then ⟨1,3,3⟩ and ⟨2,3,3⟩


@pytest.mark.parametrize("buckets", [1, 4, 256])
@pytest.mark.parametrize("seeds", [range(i, i + 25) for i in range(0, 100, 25)])
def test_entries_are_consistent_after_every_epoch(
    seeds: range, buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Present keys have exactly their combinations, whatever came and went; one bucket is enough;
    packs are merged meanwhile (streamon #25, #27, #29)."""
    inspector = Inspector(monkeypatch)
    kept = 0
    for seed in seeds:
        case = random_join(seed, sources=3 + seed % 2)
        rng = Random(seed)
        rows = max(s.table.num_rows for s in case.streams.values())
        runner = load(Runner(epochs={n: list(range(1, rows)) for n in case.streams}), case)
        query = runner.query(case.sql, name="q")
        spans = chosen(runner, query, rng, buckets)
        if not spans:
            continue
        kept += 1
        keep(runner, query, spans)
        runner.run()
        expected = reference_result(case)
        assert difference(expected.emitted, from_table(query.results())) is None, case.sql
    assert kept
    assert inspector.checked > 20
    assert inspector.empty


def chosen(runner: Runner, query: Query, rng: Random, buckets: int) -> list[Span]:
    """Orders under which something can be kept, and some of what can."""
    plans = runner.core.plans
    leaves = len(query.plan.leaves)
    for _ in range(12):
        orders = Orders((), tuple(tuple(rng.sample(range(leaves), leaves)) for _ in range(leaves)))
        plan = runner.core.planner.physical(query.bound, orders)
        block = plan.blocks[0]
        spans: list[Span] = []
        for span in rng.sample(found := all_spans(block), len(found)):
            span = replace(span, buckets=buckets, whole=rng.random() < 0.25)
            if compatible([*spans, span]):
                spans.append(span)
        if spans:
            plans.replace("q", plan)
            return spans
    return []
