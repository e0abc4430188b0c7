"""`x IN (SELECT ...)` over rows of one instant: a filter that gives the rows of the join."""

from __future__ import annotations

from random import Random

import pytest

from thalweg.testing import Runner
from thalweg.testing.generators import Case
from thalweg.testing.grid import VARIANTS, check_case, load
from thalweg.testing.random_streams import random_shape, random_stream

SEEDS = 40
WINDOWS = ("[ROWS 4]", "[RANGE 3 SECONDS]", "[PARTITION BY k ROWS 1]", "[NOW]", "[UNBOUNDED]")
SHAPES = (
    "SELECT ISTREAM {row} FROM s [NOW] WHERE k IN (SELECT k FROM t {w0})",
    "SELECT ISTREAM {row} FROM s [NOW] WHERE x > 0 AND k IN (SELECT k FROM t {w0}) "
    "AND x IN (SELECT x FROM u {w1})",
    "SELECT {row} FROM s [NOW] WHERE k IN (SELECT k FROM t {w0}) AND 6 / k > 1",
    "SELECT DSTREAM {row} FROM s [NOW] WHERE k IN (SELECT k FROM t {w0} WHERE x > 0)",
    "SELECT RSTREAM count(*) AS n, max(x) AS m FROM s [NOW] WHERE k IN (SELECT k FROM t {w0})",
    "SELECT k, count(*) AS n FROM s [NOW] WHERE k IN (SELECT k FROM t {w0}) "
    "AND k IN (SELECT k FROM u {w1}) AND x < 100 GROUP BY k",
    "SELECT ISTREAM {row} FROM s [NOW] WHERE k IN (SELECT k FROM s {w0} WHERE x < 0)",
)


def case(seed: int) -> Case:
    rng = Random(f"membership {seed}")
    shape = random_shape(rng)
    streams = {name: random_stream(rng, shape, rng.randrange(5, 25)) for name in "stu"}
    sql = SHAPES[seed % len(SHAPES)].format(
        row="k, x", w0=rng.choice(WINDOWS), w1=rng.choice(WINDOWS)
    )
    return Case(seed, "membership", streams, {}, f"{sql} WITH (unbounded = true)", frozenset())


@pytest.mark.parametrize("seed", range(SEEDS))
def test_equal_to_the_reference_on_the_grid(seed: int) -> None:
    check_case(case(seed), [VARIANTS[(seed + i) % len(VARIANTS)] for i in (0, 1, 3)])


@pytest.mark.parametrize("seed", range(len(SHAPES)))
def test_the_plan_looks_rows_up_instead_of_joining(seed: int) -> None:
    chosen = case(seed)
    plan = load(Runner(), chosen).explain(chosen.sql)
    assert "looked up at the row's instant" in plan
    assert "  join (" not in plan


def test_rows_that_stay_are_joined() -> None:
    """A row that is there for longer appears when its value does: that takes a join."""
    chosen = case(0)
    plan = load(Runner(), chosen).explain(
        "SELECT k FROM s [RANGE 1 SECOND] WHERE k IN (SELECT k FROM t [ROWS 3])"
    )
    assert "  join (" in plan
