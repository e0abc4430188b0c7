"""The five invariances of D7 on a thousand random queries, each against the naive reference."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thalweg.exec.leaves import pack_view
from thalweg.store import packs
from thalweg.testing.compare import difference, from_table
from thalweg.testing.generators import EMITS, RARE_AGGREGATES, WINDOWS, Case, random_case
from thalweg.testing.grid import (
    VARIANTS,
    check_case,
    check_variant,
    chosen_variants,
    pairs,
    reference_result,
    uncovered,
)
from thalweg.testing.runner import Runner

SEEDS = (*range(1_000), 1036, 1300, 1315)
"""The last ones let the variants that meet few cases meet every operator."""
CHUNK = 50
PER_CASE = 2

WINDOW_KINDS = [f"window:{w}" for w in WINDOWS]
EMIT_KINDS = [f"emit:{e}" for e in EMITS]
JOIN_SIZES = ["join:2", "join:3", "join:4"]
AGGREGATES = [f"agg:{a}" for a in ("count", "count(*)", "sum", "avg", "min", "max")]
RARE = [f"agg:{a}" for a in RARE_AGGREGATES]
GROUPS = [f"group:{g}" for g in ("global", "one", "two", "expression")]
SETS = [f"group:{g}" for g in ("rollup", "cube", "grouping sets")]


@pytest.mark.parametrize("first", range(0, len(SEEDS), CHUNK))
def test_output_depends_on_the_input_alone(first: int) -> None:
    for seed in SEEDS[first : first + CHUNK]:
        check_case(random_case(seed), chosen_variants(seed, PER_CASE))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_large_packs_change_nothing(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories and time indexes, which large packs alone have, on small ones."""
    monkeypatch.setattr(pack_view, "_FEW", 0)
    monkeypatch.setattr(packs, "TIME_INDEXED", 1)
    for seed in range(first, first + 20):
        check_case(random_case(seed), chosen_variants(seed, PER_CASE))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [random_case(seed) for seed in SEEDS]


def test_the_seeds_cover_every_operator(cases: list[Case]) -> None:
    assert not uncovered(
        cases,
        *WINDOW_KINDS,
        *EMIT_KINDS,
        *JOIN_SIZES,
        *AGGREGATES,
        *RARE,
        *GROUPS,
        *SETS,
        *(f"agg:{a}(distinct)" for a in ("count", "sum", "avg")),
        *("agg:filter", "order:limit", "order:all"),
        *("emit:relation", "join:table", "join:self", "join:residual", "join:product"),
        *("join:star", "join:chain", "having", "having:global", "input:empty", "input:lateness"),
        *("slide:gap", "slide:tumbling", "slide:hopping"),
    )


def test_the_seeds_cover_pairs(cases: list[Case]) -> None:
    assert not uncovered(cases, *pairs(WINDOW_KINDS, EMIT_KINDS))
    assert not uncovered(cases, *pairs(WINDOW_KINDS, AGGREGATES))
    assert not uncovered(cases, *pairs(WINDOW_KINDS, JOIN_SIZES))
    assert not uncovered(cases, *pairs(JOIN_SIZES, EMIT_KINDS))
    assert not uncovered(cases, *pairs(GROUPS, EMIT_KINDS))
    assert not uncovered(cases, *pairs(RARE, EMIT_KINDS))
    assert not uncovered(cases, *pairs(SETS, EMIT_KINDS))


def test_every_variant_meets_every_operator(cases: list[Case]) -> None:
    for variant in VARIANTS:
        met = [c for c in cases if variant in chosen_variants(c.seed, PER_CASE)]
        assert not uncovered(met, *WINDOW_KINDS, *EMIT_KINDS, *JOIN_SIZES, *AGGREGATES, *GROUPS)
        assert not uncovered(met, *pairs(WINDOW_KINDS, EMIT_KINDS))


@settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.integers(min_value=max(SEEDS) + 1, max_value=2**40))
def test_any_seed_under_all_variants(seed: int) -> None:
    check_case(random_case(seed))


def test_a_difference_is_shown() -> None:
    """The grid must be able to fail: a wrong answer is named with its rows."""
    case = next(c for c in map(random_case, range(100)) if reference_result(c).emitted)
    expected = reference_result(case)
    expected.emitted.pop()
    with pytest.raises(AssertionError, match="extra 1"):
        check_variant(case, VARIANTS[0], expected)


# --- the same at the size where vectorised code takes its other branches

LARGE = (
    "SELECT a.s, b.x, a.n FROM s1 [RANGE 300 SECONDS] a, s2 [RANGE 200 SECONDS] b "
    "WHERE a.s = b.s AND a.k = b.k",
    "SELECT ISTREAM a.k, b.n FROM s1 [RANGE 200 SECONDS] a, s2 [ROWS 50] b "
    "WHERE a.k = b.k AND a.x < b.x",
    "SELECT DSTREAM a.n, b.n AS m, c.n AS o FROM s1 [RANGE 60 SECONDS] a, s2 [RANGE 60 SECONDS] b, "
    "s1 [NOW] c WHERE a.k = b.k AND b.s = c.s",
    "SELECT s, k, count(*) AS c, sum(x) AS t, avg(x) AS m, min(x) AS l, max(s) AS h "
    "FROM s1 [RANGE 500 SECONDS] GROUP BY s, k",
    "SELECT RSTREAM k, sum(x) AS t, min(n) AS l FROM s2 [RANGE 900 SECONDS SLIDE 100 SECONDS] "
    "GROUP BY k HAVING count(*) > 2",
    "SELECT s, n FROM s1 [PARTITION BY s, k ROWS 4] WHERE x > 0",
)


def large_stream(seed: int, rows: int = 4_000) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(0, 1, rows) * 10.0 ** rng.integers(-20, 20, rows)
    x[rng.random(rows) < 0.01] = np.nan
    stamps = np.sort(rng.integers(0, 8_000, rows)) * 500_000
    names = np.array(["", "a", "b", "日本", "a much longer name than the others", "A"])
    return pa.table({
        "ts": pa.array(stamps).cast(pa.timestamp("us", "UTC")),
        "k": pa.array(rng.integers(0, 40, rows), mask=rng.random(rows) < 0.02),
        "s": pa.array(names[rng.integers(0, len(names), rows)], mask=rng.random(rows) < 0.02),
        "x": pa.array(x, mask=rng.random(rows) < 0.02),
        "n": pa.array(np.arange(rows)),
    })  # fmt: skip


@pytest.mark.parametrize("sql", LARGE)
def test_thousands_of_rows_cut_many_ways(sql: str) -> None:
    found = []
    for how in ({}, {"epochs": 40, "buckets": 5, "switches": 3}, {"epochs": 9, "restarts": (4,)}):
        runner = Runner(**how)
        runner.stream("s1", large_stream(1))
        runner.stream("s2", large_stream(2))
        query = runner.query(sql)
        runner.run()
        found.append(from_table(query.results()))
    assert found[0]
    assert difference(found[0], found[1]) is None
    assert difference(found[0], found[2]) is None
