"""Which rows a profile takes, and what is kept of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from filter_data import correlated, drive, rng_of
from ordering_runs import SLICE, usual

from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.catalog import make_ordering
from thalweg.adapt.filters.ordering import Settings
from thalweg.testing import Runner


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


def test_a_tiny_profile_is_possible() -> None:
    ordering = make_ordering("a-greedy", Settings(2, rate=1e-30)).fork(1)
    assert len(ordering.sample(10_000)) == 0


def test_nothing_piles_up_where_nothing_is_sampled() -> None:
    made = Runner(epochs=30)
    made.stream("s", pa.table({"x": range(300), "ts": stamps(range(300))}))
    query = made.query("SELECT x FROM s WHERE x > 1 AND x < 9 WITH (filters = 'fixed')")
    made.run()
    watched = made.core.adaptation.queries[query.name].of("filters")[0]
    assert watched.memory._fresh == []


def test_a_retry_samples_the_same_rows() -> None:
    """Forks of one seed agree, those of two do not; the original is left alone."""
    ordering = usual(AGreedy, np.ones(3), rate=0.1)
    first, again, other = (ordering.fork(s).sample(5_000).tolist() for s in (1, 1, 2))
    assert first == again != other
    assert first == sorted(set(first))
    assert max(first) < 5_000
    passing = correlated(rng_of("fork"), 20 * SLICE, np.array([0.9, 0.5, 0.1]))
    fork = ordering.fork(3)
    drive(fork, passing)
    assert fork.order == [2, 1, 0]
    assert ordering.order == [0, 1, 2]
