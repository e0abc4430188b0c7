"""The ranked tree against plain Python, and how little of it a query looks at."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from thalweg.synopses.ranked_tree import RankedTree, Summary


def plain(values: list[float | int | None]) -> Summary:
    known = [v for v in values if v is not None]
    if not known:
        return Summary(0, None, None, None, None)
    if isinstance(known[0], int):
        total = sum(known)
        return Summary(len(known), int(total), total / len(known), min(known), max(known))
    numbers = [v for v in known if not math.isnan(v)]
    if len(numbers) < len(known):
        low = min(numbers) if numbers else math.nan
        return Summary(len(known), math.nan, math.nan, low, math.nan)
    if any(map(math.isinf, known)):
        total = math.fsum(known) if len({v for v in known if math.isinf(v)}) == 1 else math.nan
    else:
        total = float(sum(map(Fraction, known)))
    return Summary(len(known), total, total / len(known), min(known), max(known))


def same(one: Summary, other: Summary) -> bool:
    def equal(a: object, b: object) -> bool:
        both = isinstance(a, float) and isinstance(b, float)
        return a == b or (both and math.isnan(a) and math.isnan(b))  # type: ignore[arg-type]

    return all(
        equal(getattr(one, n), getattr(other, n))
        for n in ("count", "total", "mean", "least", "most")
    )


@pytest.mark.parametrize("kind", ["integers", "doubles"])
@pytest.mark.parametrize("fan_out", [2, 3, 16])
def test_it_equals_the_reference(kind: str, fan_out: int) -> None:
    """priorart PS-10: five aggregates of any range, at most 2 · fan-out · ⌈log n⌉ nodes each."""
    rng = Random(f"{kind}{fan_out}")
    tree = RankedTree(fan_out)
    values: list[float | int | None] = []
    first = 0
    for _ in range(40):
        fresh: list[float | int | None] = []
        for _ in range(rng.randrange(60)):
            if rng.random() < 0.1:
                fresh.append(None)
            elif kind == "integers":
                fresh.append(rng.randrange(-(2**40), 2**40))
            else:
                odd = rng.choice([math.nan, math.inf, -math.inf]) if rng.random() < 0.01 else None
                fresh.append(odd or rng.choice([1e-300, 1.0, 3.3, -1e300]) * rng.random())
        values += fresh
        dtype = np.int64 if kind == "integers" else np.float64
        tree.append(
            np.array([0 if v is None else v for v in fresh], dtype),
            np.array([v is not None for v in fresh], np.bool_),
        )
        if rng.random() < 0.3:
            first = max(first, rng.randrange(len(values) + 1))
            tree.evict(first)
            assert tree.first <= first
        assert len(tree) == len(values)
        for _ in range(20):
            low = rng.randrange(first, len(values) + 1)
            high = rng.randrange(low, len(values) + 1)
            tree.visited = 0
            found = tree.query(low, high)
            assert same(found, plain(values[low:high])), (low, high, found, plain(values[low:high]))
            height = max(math.ceil(math.log(max(len(values), 2), fan_out)), 1)
            assert tree.visited <= 2 * fan_out * height


def test_it_gives_room_back() -> None:
    tree = RankedTree(4)
    for i in range(200):
        tree.append(np.arange(10))
        tree.evict(10 * i - 50)
    assert tree.nodes < 200
    assert tree.query(1_960, 2_000).count == 40


def test_sums_that_leave_their_type_say_so() -> None:
    tree = RankedTree()
    tree.append(np.array([2**62, 2**62, 5]))
    assert tree.query(0, 3).overflown
    assert not tree.query(1, 3).overflown
