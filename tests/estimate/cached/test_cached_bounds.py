"""Cached bounds against joins counted row by row: never below, for every sub-join."""

from __future__ import annotations

from random import Random

import joins_by_hand
import pytest
from joins_by_hand import SHAPES

from thalweg.estimate.cached.cached_bound import cached_bound
from thalweg.estimate.cached.table_statistics import TableStatistics
from thalweg.estimate.figure import Kind

CASES = 40
LIMITS = (100, 1_500, 3_000, 6_000, 20_000, 1_000_000)


@pytest.mark.parametrize("shape", SHAPES)
def test_no_sub_join_is_larger_than_its_bound(shape: str) -> None:
    for seed in range(CASES):
        random = Random(f"{shape} {seed}")
        query, tables = joins_by_hand.random_join(shape, random)
        true = joins_by_hand.true_sizes(query, tables)
        joins = {r.relation: list(r.attributes) for r in query.inputs}
        statistics = {
            n: TableStatistics.build(t, joins[n], None, random.choice(LIMITS))
            for n, t in tables.items()
        }
        found = cached_bound(query, statistics)
        assert found.whole.sources == tuple(r.alias for r in query.inputs)
        for part in found.sub_joins:
            assert part.figure.kind is Kind.BOUND, (seed, part)
            assert part.figure.rows is not None
            assert part.figure.rows >= true[part.sources], (seed, part, query)
