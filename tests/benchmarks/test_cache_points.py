"""Points of the seed's comparison of join plans, by operations; the bench has all, and larger."""

from __future__ import annotations

import pytest

from caches.bench_caches import spectrum
from caches.workloads import point


@pytest.mark.parametrize("name", ["D1", "D4", "D7"])
def test_subresults_save_operations(name: str) -> None:
    """The best tree, the best prefix caches and the best caches of all need fewer operations than
    no subresults at all, and any caches no more than the best tree (streamon #38)."""
    found = spectrum(point(name, 24, 7, 5))
    without = found["M"].per_row
    assert max(found[kind].per_row for kind in "XPG") <= 1.02 * without
    assert found["G"].per_row <= 1.1 * found["X"].per_row
