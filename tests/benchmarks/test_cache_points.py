"""Points of the seed's comparison of join plans, by operations; the bench has all, and larger."""

from __future__ import annotations

import pytest

from caches.bench_caches import source_spectrum, spectrum
from caches.workloads import point

POINTS = {"D1": 0.75, "D4": 0.55, "D7": 0.5}
"""The part of the operations without subresults that the others need at most."""


@pytest.mark.parametrize("name", POINTS)
def test_subresults_save_operations(name: str) -> None:
    """The best tree, the best prefix caches and the best caches of all need far fewer operations
    than no subresults at all; caches no more than the best tree, and least is gained where windows
    share most values (streamon #38)."""
    found = {kind: outcome.per_row for kind, outcome in spectrum(point(name, 24, 7, 5)).items()}
    for kind in "XPG":
        assert found[kind] <= POINTS[name] * found["M"], (kind, found)
    assert found["G"] <= found["P"] <= 1.1 * found["X"]


def test_the_sources_own_problem_has_caches_for_orders_that_are_given() -> None:
    """Pipelines stay as A-Greedy has ordered them; all plans give the same results."""
    found = source_spectrum(point("D4", 12, 7, 5))
    assert found["G"].per_row <= found["P"].per_row < 0.75 * found["M"].per_row
    assert {o.orders[0] for o in (found["P"], found["G"])} == {found["M"].orders[0]}
