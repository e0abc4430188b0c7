"""Random join graphs against the naive reference, under cuts, buckets, switches and restarts."""

from __future__ import annotations

import pytest

from thalweg.testing.grid import check_case, chosen_variants, uncovered
from thalweg.testing.joingraphs import SHAPES, WINDOWS, random_join

SEEDS = 500


@pytest.mark.parametrize("seed", range(0, SEEDS, 10))
def test_join_graphs_equal_the_reference(seed: int) -> None:
    """Every graph gives the reference's rows, however it runs (streamon #22, #28)."""
    for one in range(seed, seed + 10):
        check_case(random_join(one), chosen_variants(one, 1 + one % 2))


def test_join_graphs_cover_every_shape_and_window() -> None:
    """Each shape with each number of sources; each window with each way to emit."""
    cases = [random_join(seed) for seed in range(SEEDS)]
    sizes = [f"{n} sources" for n in range(2, 8)]
    wanted: list[str | tuple[str, ...]] = [(s, n) for s in SHAPES for n in sizes]
    wanted += [(w, e) for w in WINDOWS for e in ("ISTREAM", "DSTREAM", "relation")]
    wanted += ["self-join", "table", "residual"]
    assert uncovered(cases, *wanted) == []
