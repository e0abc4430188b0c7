"""A manifest is what has changed: with the state before it gives the state, and it is small."""

from __future__ import annotations

import json
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.store.manifest import apply, difference, load
from thalweg.testing.generators import random_case
from thalweg.testing.grid import load as load_case
from thalweg.testing.runner import Runner


def some_state(random: Random, depth: int = 4) -> dict[str, Any]:
    def value(left: int) -> Any:
        if left and random.random() < 0.5:
            return {key: value(left - 1) for key in random.sample("abcdef", random.randint(0, 4))}
        return random.choice([0, 1, None, "x", [], [1], [[1, "y"]], {}])

    return {key: value(depth - 1) for key in random.sample("abcdef", random.randint(1, 5))}


@pytest.mark.parametrize("seed", range(200))
def test_a_difference_leads_from_one_state_to_the_other(seed: int) -> None:
    random = Random(seed)
    states: list[dict[str, Any]] = [{}, *(some_state(random) for _ in range(6))]
    for old, new in pairwise(states):
        change = json.loads(json.dumps(difference(old, new)))
        assert apply(old, change) == new
        assert difference(new, dict(new)) == {}


def test_of_a_query_only_what_has_changed_is_written() -> None:
    old = {"queries": {"q": {"text": "x" * 1000, "frontier": 1}}, "epoch": 1}
    new = {"queries": {"q": {"text": "x" * 1000, "frontier": 2}}, "epoch": 2}
    change = difference(old, new)
    assert change == {
        "set": {"epoch": 2},
        "nested": {"queries": {"nested": {"q": {"set": {"frontier": 2}}}}},
    }


@pytest.mark.parametrize("seed", range(40))
def test_states_made_from_the_last_commit_are_the_same_as_anew(seed: int) -> None:
    """Whatever a query does meanwhile: the short way must not miss a change."""
    case = random_case(seed)
    runner = Runner(epochs=6, buckets=2, restarts=(3,))
    load_case(runner, case)

    def look(number: int) -> None:
        state = runner.core.state
        committed = runner.core.committer.committed
        assert state.to_json(committed) == state.to_json()
        assert json.loads(json.dumps(committed)) == load(runner.storage)[1]

    runner.run(look)
    look(-1)


def test_many_queries_that_wait_write_little() -> None:
    """Of those that only came further, a commit has a few numbers each."""
    runner = Runner()
    rows = pa.table({"v": [1], "ts": pa.array([0], pa.timestamp("us", "UTC"))})
    runner.stream("s", rows.slice(0, 0))
    for i in range(200):
        runner.query(
            f"SELECT v FROM s [RANGE 5 MICROSECONDS] WHERE v > {i} WITH (materialize = 'p')"
        )
    sizes = []
    for t in range(12):
        runner.feed({"s": pa.table({"v": [t], "ts": pa.array([t], pa.timestamp("us", "UTC"))})})
        epoch = runner.core.state.epoch
        sizes.append(len(runner.storage.read(f"manifests/{epoch:012d}.json")))
    assert max(sizes[2:]) < 200 * 100
