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
Rows = list[tuple[int, ...]]
"""Rows of a stream: second, values."""


def streamed(rows: Rows, columns: str) -> list[pa.Table]:
    """Rows second by second; in each also one without keys, so that time goes on."""
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


THREE = """SELECT ISTREAM r1.a, r2.b, r3.b AS c FROM r1 [{}], r2 [{}], r3 [{}]
  WHERE r1.a = r2.a AND r2.b = r3.b"""
LONG = ("RANGE 1 HOUR",) * 3


def three(
    r1: Rows, r2: Rows, r3: Rows, windows: tuple[str, ...] = LONG, r2_first_meets: int = 2
) -> Query:
    """A join of three, of which R2 and R3 are kept for R1. Every second is an epoch."""
    streams = {"r1": streamed(r1, "a"), "r2": streamed(r2, "ab"), "r3": streamed(r3, "b")}
    runner = Runner()
    for name, tables in streams.items():
        runner.stream(name, tables[0].slice(0, 0))
    query = runner.query(THREE.format(*windows), name="q")
    second = (r2_first_meets, 2 - r2_first_meets)
    plan = runner.core.planner.physical(query.bound, Orders((), ((1, 2), second, (1, 0))))
    runner.core.plans.replace("q", plan)
    keep(runner, query, [Span(0, 0, 1)])
    for second in range(9):
        runner.epoch([runner.entry({n: tables[second] for n, tables in streams.items()})])
    runner.close()
    return query


def results(query: Query) -> list[tuple[int, ...]]:
    """(second, a, b, c) of every row."""
    found = query.results().to_pylist()
    return sorted((r["__ts"].second, r["a"], r["b"], r["c"]) for r in found)


def test_the_golden_trace() -> None:
    """The note's: R2 holds (1,2), (1,3), (2,3), R3 holds 2; R1 brings 1, 1; R3 then 3; R1 again 1.
    Miss and create, hit, insert to a present key, ignore an absent one (streamon #27)."""
    query = three([(4, 1), (5, 1), (8, 1)], [(1, 1, 2), (1, 1, 3), (1, 2, 3)], [(2, 2), (6, 3)])
    assert results(query) == [
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


def test_a_key_without_combinations_is_remembered() -> None:
    """streamon #27: the empty result is cached. 7 has no partner in R2, 8 has one there that has
    none in R3: both miss once and then hit; when R3 brings it, the empty entry of 8 is told."""
    query = three([(s, a) for s in (4, 5, 8) for a in (7, 8)], [(1, 8, 9), (1, 1, 2)], [(6, 9)])
    assert results(query) == [(6, 8, 9, 9), (6, 8, 9, 9), (8, 8, 9, 9)]
    counts = query.stats()["counts"]
    assert counts["lookups:r2⋈r3"] == 6
    assert counts["misses:r2⋈r3"] == counts["fills:r2⋈r3"] == 2
    assert counts["deltas:r2⋈r3"] == 1


def test_a_cache_whose_changes_do_not_come_by() -> None:
    """streamon #36: rows of R2 meet R1 first, and there is none of theirs, so that no pipeline
    brings what R2 and R3 have become; it is in the cache nevertheless, and leaves it with R2."""
    query = three(
        r1=[(2, 1), (5, 1), (7, 1), (8, 1)],
        r2=[(3, 1, 5), (8, 1, 5)],
        r3=[(4, 5)],
        windows=("NOW", "RANGE 3 SECONDS", "RANGE 1 HOUR"),
        r2_first_meets=0,
    )
    (subresult,) = query.plan.blocks[0].subresults
    assert subresult.upkeep
    assert results(query) == [(5, 1, 5, 5), (8, 1, 5, 5)]
    counts = query.stats()["counts"]
    assert counts["lookups:r2⋈r3"] == 4
    assert counts["fills:r2⋈r3"] == 1
    assert counts["deltas:r2⋈r3"] == 2


@pytest.mark.parametrize("buckets", [1, 4, 256])
@pytest.mark.parametrize("seeds", [range(i, i + 25) for i in range(0, 100, 25)])
def test_entries_are_consistent_after_every_epoch(
    seeds: range, buckets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Present keys have exactly their combinations, whatever came and went; one bucket is enough;
    packs are merged meanwhile; parts whose changes do not come by are among them.
    (streamon #25, #27, #29, #36)"""
    inspector = Inspector(monkeypatch)
    kept = apart = 0
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
        apart += any(s.upkeep for s in query.plan.blocks[0].subresults)
        runner.run()
        expected = reference_result(case)
        assert difference(expected.emitted, from_table(query.results())) is None, case.sql
    assert kept
    assert apart
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
