"""Joins that answer when they are invoked, made once for many queries."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.runtime.state.internal_names import kind_of_output
from thalweg.runtime.state.query_state import CONDITIONS
from thalweg.testing.compare import difference, from_table
from thalweg.testing.runner import Runner

STREAMS = ("r", "s", "t")


def rows(stream: str, since: int, until: int) -> pa.Table:
    rng = Random(f"{stream}{since}")
    times = [t for t in range(since, until) if rng.random() < 0.7]
    return pa.table(
        {
            "k": pa.array([rng.randrange(5) for _ in times], pa.int64()),
            "v": pa.array([rng.randrange(256) for _ in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def runner(retain: str | None = "1 hour", **how: Any) -> Runner:
    made = Runner(**how)
    for name in STREAMS:
        made.stream(name, rows(name, 0, 0), **({"retain": retain} if retain else {}))
    return made


def bag(table: pa.Table) -> Any:
    at = pa.array([0] * table.num_rows, pa.timestamp("us", "UTC"))
    return from_table(table.replace_schema_metadata(None).append_column("__ts", at))


WINDOW = "[RANGE 25 MICROSECONDS]"
JOINS = [
    f"SELECT r.k, r.v, s.v AS w FROM r {WINDOW}, s {WINDOW} WHERE r.k = s.k AND r.v > 60",
    f"SELECT r.v, s.v AS w FROM r {WINDOW}, s [RANGE 9 MICROSECONDS] "
    "WHERE r.k = s.k AND r.v < s.v AND s.v > 100 AND r.v <> 7",
    f"SELECT DISTINCT r.k FROM r {WINDOW}, s [NOW] WHERE r.k = s.k AND s.v < 128",
    f"SELECT r.k, count(*) AS n, sum(s.v) AS total FROM r {WINDOW}, s {WINDOW} "
    "WHERE r.k = s.k AND s.v >= 40 GROUP BY r.k HAVING count(*) > 2",
    f"SELECT a.v, b.v AS w FROM r {WINDOW} a, r {WINDOW} b WHERE a.k = b.k AND a.v > 200",
    f"SELECT r.v, s.v AS w, t.v AS x FROM r {WINDOW}, s {WINDOW}, t {WINDOW} "
    "WHERE r.k = s.k AND s.k = t.k AND r.v > 100 AND t.v < 200",
    "SELECT r.v, t.v AS x FROM r [RANGE 10 MICROSECONDS SLIDE 4 MICROSECONDS], "
    "t [LANDMARK EVERY 30 MICROSECONDS] WHERE r.k = t.k AND r.v > 30",
]


@pytest.mark.parametrize("sql", JOINS)
def test_joins_answer_alike(sql: str) -> None:
    """priorart PS-5, PS-8, PS-13: two and three streams, whichever side comes last; combinations
    are in while all their rows are, and no entry is there twice."""
    rng = Random(sql)
    made = runner(slice_rows=13, buckets=rng.choice((1, 3)))
    reference = made.query(sql, "reference")
    modes = ("none", "p", "c", "auto")
    queries = {m: made.query(f"{sql} WITH (materialize = '{m}')", m) for m in modes}
    seen = 0
    for step in range(14):
        span = (step * 12, step * 12 + 12)
        order = rng.sample(STREAMS, 3)
        for name in order:  # one side after the other
            made.feed({name: rows(name, *span)})
        if step == 6:
            for m in modes:
                queries[f"late_{m}"] = made.query(f"{sql} WITH (materialize = '{m}')", f"late_{m}")
            made.restart()
        expected = bag(reference.invoke())
        seen += len(expected)
        for name, query in queries.items():
            problem = difference(expected, bag(query.invoke()))
            assert problem is None, f"{name}, step {step}: {sql}\n{problem}"
    assert seen >= 5
    assert made.core.state.known("auto").definition.mode == "p"
    for name in ("none", "p"):
        problem = difference(bag(reference.invoke(140)), bag(made.queries[name].invoke(140)))
        assert problem is None, f"{name} at 140\n{problem}"


def test_composites_share_what_queries_have_in_common() -> None:
    """priorart PS-6: with composites on or off the same answers; what queries share, the join, is
    done once instead of once for each."""
    made: dict[bool, Runner] = {}
    for composite in (True, False):
        one = made[composite] = runner()
        one.core.conditions.composite = composite
        for i in range(12):
            one.query(
                f"SELECT r.v, s.v AS w FROM r {WINDOW}, s {WINDOW} WHERE r.k = s.k "
                f"AND r.v > {20 * i} AND s.v < {256 - 10 * i} WITH (materialize = 'p')", f"q{i}",
            )  # fmt: skip
        for step in range(10):
            for name in STREAMS[:2]:
                one.feed({name: rows(name, step * 12, step * 12 + 12)})
    for i in range(12):
        on, off = (made[c].queries[f"q{i}"].invoke() for c in (True, False))
        assert difference(bag(on), bag(off)) is None
    probes = {}
    for composite, one in made.items():
        cohorts = [q for _, q in one.core.state.of_kind(CONDITIONS)]
        assert len(cohorts) == (1 if composite else 12)
        probes[composite] = sum(
            n for q in cohorts for k, n in q.operators.counts.items() if "probes:" in k
        )
    assert probes[False] == 12 * probes[True] > 0


def test_combinations_beyond_the_longest_window_are_forgotten() -> None:
    made = runner(retain=None)
    sql = f"SELECT r.v, s.v AS w FROM r {WINDOW}, s {WINDOW} WHERE r.k = s.k AND r.v > 60"
    query, plain = made.query(f"{sql} WITH (materialize = 'p')", "q"), made.query(sql, "plain")
    for step in range(40):
        for name in STREAMS[:2]:
            made.feed({name: rows(name, step * 12, step * 12 + 12)})
        assert difference(bag(plain.invoke()), bag(query.invoke())) is None
        kept = [k for k in made.core.state.outputs if kind_of_output(k) == CONDITIONS]
        assert len(kept) <= 10
    query.drop()
    assert not [k for k in made.core.state.outputs if kind_of_output(k) == CONDITIONS]
