"""The five invariances of D7 on a thousand random queries, each against the naive reference."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thalweg.testing.generators import EMITS, WINDOWS, Case, random_case
from thalweg.testing.grid import VARIANTS, check_case, chosen_variants, covered, pairs

SEEDS = range(1_000)
CHUNK = 50
PER_CASE = 2

WINDOW_KINDS = [f"window:{w}" for w in WINDOWS]
EMIT_KINDS = [f"emit:{e}" for e in EMITS]
JOIN_SIZES = ["join:2", "join:3", "join:4"]
AGGREGATES = [f"agg:{a}" for a in ("count", "count(*)", "sum", "avg", "min", "max")]
GROUPS = [f"group:{g}" for g in ("global", "one", "two", "expression")]


@pytest.mark.parametrize("first", range(SEEDS.start, SEEDS.stop, CHUNK))
def test_output_depends_on_the_input_alone(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS.stop)):
        check_case(random_case(seed), chosen_variants(seed, PER_CASE))


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return [random_case(seed) for seed in SEEDS]


def test_the_seeds_cover_every_operator(cases: list[Case]) -> None:
    covered(
        cases,
        *WINDOW_KINDS,
        *EMIT_KINDS,
        *JOIN_SIZES,
        *AGGREGATES,
        *GROUPS,
        *("emit:relation", "join:table", "join:self", "join:residual", "join:product"),
        *("join:star", "join:chain", "having", "having:global", "input:empty", "input:lateness"),
        *("slide:gap", "slide:tumbling", "slide:hopping"),
    )


def test_the_seeds_cover_pairs(cases: list[Case]) -> None:
    covered(cases, *pairs(WINDOW_KINDS, EMIT_KINDS))
    covered(cases, *pairs(WINDOW_KINDS, AGGREGATES))
    covered(cases, *pairs(WINDOW_KINDS, JOIN_SIZES))
    covered(cases, *pairs(JOIN_SIZES, EMIT_KINDS))
    covered(cases, *pairs(GROUPS, EMIT_KINDS))


def test_every_variant_meets_every_operator(cases: list[Case]) -> None:
    for variant in VARIANTS:
        met = [c for c in cases if variant in chosen_variants(c.seed, PER_CASE)]
        covered(met, *WINDOW_KINDS, *EMIT_KINDS, *JOIN_SIZES, *AGGREGATES, *GROUPS)
        covered(met, *pairs(WINDOW_KINDS, EMIT_KINDS))


@settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.integers(min_value=len(SEEDS), max_value=2**40))
def test_any_seed_under_all_variants(seed: int) -> None:
    check_case(random_case(seed))


def test_a_difference_is_shown() -> None:
    """The grid must be able to fail: a wrong answer is named with its rows."""
    from thalweg.testing import grid

    case = next(c for c in map(random_case, range(100)) if grid.reference_result(c).emitted)
    expected = grid.reference_result(case)
    expected.emitted.pop()
    with pytest.raises(AssertionError, match="extra 1"):
        grid.check_variant(case, VARIANTS[0], expected)
