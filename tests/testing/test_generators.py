"""The random cases: reproducible, never late, and covering what they claim to cover."""

from __future__ import annotations

from itertools import pairwise, product
from random import Random

import pytest

from thalweg.testing.compare import column_values
from thalweg.testing.generators import EMITS, KINDS, WINDOWS, cuts, random_case
from thalweg.testing.random_streams import arrival_order

SEEDS = range(600)

EXPECTED = {
    *(f"kind:{k}" for k in KINDS),
    *(f"window:{w}" for w in WINDOWS),
    *(f"emit:{e}" for e in (*EMITS, "relation")),
    *(f"time:{u}" for u in ("microseconds", "milliseconds", "seconds")),
    *(f"slide:{s}" for s in ("tumbling", "hopping", "gap")),
    *(f"join:{j}" for j in (2, 3, 4, "star", "chain", "self", "table", "residual", "product")),
    *(f"key:{k}" for k in ("bigint", "mixed", "string", "two", "double", "expression")),
    *(f"agg:{a}" for a in ("count", "count(*)", "sum", "avg", "min", "max", "expression")),
    *(f"agg:{a}" for a in ("sum(n)", "sum(x)", "avg(n)", "avg(x)", "min(s)", "max(s)", "min(x)")),
    *(f"group:{g}" for g in ("global", "one", "two", "expression")),
    *(f"expr:{e}" for e in ("compare", "arithmetic", "null", "in", "divide", "cast", "case")),
    *(f"expr:{e}" for e in ("string", "like", "and-or", "not")),
    *(f"input:{i}" for i in ("rows", "empty", "lateness", "large")),
    *("having", "having:global", "where", "select:star"),
}  # fmt: skip


@pytest.fixture(scope="module")
def cases():
    return [random_case(seed) for seed in SEEDS]


def test_a_seed_always_gives_the_same_case():
    for seed in range(20):
        one, two = random_case(seed), random_case(seed)
        assert (one.sql, one.features, one.kind) == (two.sql, two.features, two.kind)
        for name, stream in one.streams.items():
            assert repr(stream.table.to_pylist()) == repr(two.streams[name].table.to_pylist())
            assert stream.lateness == two.streams[name].lateness


def test_no_row_is_late_however_the_stream_is_cut(cases):
    for case in cases:
        for stream in case.streams.values():
            latest = None
            for ts in column_values(stream.table["ts"]):
                assert latest is None or ts >= latest - stream.lateness
                latest = ts if latest is None else max(latest, ts)


def test_every_feature_appears(cases):
    assert frozenset().union(*(c.features for c in cases)) >= EXPECTED


def test_every_window_meets_every_emit_kind(cases):
    seen = {
        (window, emit)
        for case in cases
        for window, emit in product(WINDOWS, EMITS)
        if {f"window:{window}", f"emit:{emit}"} <= case.features
    }
    assert seen == set(product(WINDOWS, EMITS))


def test_every_pair_of_windows_is_joined(cases):
    joins = [c.features for c in cases if "join" in c.kind]
    pairs = {(a, b) for f in joins for a, b in product(WINDOWS, WINDOWS)
             if a < b and {f"window:{a}", f"window:{b}"} <= f}  # fmt: skip
    assert len(pairs) == len(WINDOWS) * (len(WINDOWS) - 1) // 2


def test_texts_differ_and_inputs_stay_small(cases):
    assert len({c.sql for c in cases}) >= 0.98 * len(cases)
    for case in cases:
        assert all(s.table.num_rows <= 60 for s in case.streams.values())
        assert {"s1"} <= set(case.streams)


def test_what_grows_for_ever_says_so(cases):
    for case in cases:
        grows = bool({"window:bare", "window:unbounded", "window:landmark"} & case.features)
        assert case.sql.endswith("WITH (unbounded = true)") is grows


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_can_be_asked_for(kind):
    for seed in range(30):
        assert random_case(seed, kind).kind == kind


def test_arrival_order_uses_its_freedom():
    stamps = list(range(50))
    assert arrival_order(Random(1), stamps, 0) == stamps
    shuffled = arrival_order(Random(1), stamps, 5)
    assert sorted(shuffled) == stamps
    assert any(a > b for a, b in pairwise(shuffled))


def test_cuts_are_ordered_and_inside():
    for seed in range(50):
        points = cuts(seed, 12)
        assert points == sorted(set(points))
        assert all(0 < p < 12 for p in points)
    assert cuts(1, 0) == cuts(1, 1) == []
