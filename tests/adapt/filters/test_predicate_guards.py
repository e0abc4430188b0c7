"""Guards stay before what they guard, and calls that are not deterministic in their place."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filter_data import correlated, drive, permuted, rng_of
from ordering_runs import SLICE, adaptive, by_name, numbered, numbers, ran, usual

from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.guards import allows
from thalweg.adapt.filters.ordering import Ordering, Settings
from thalweg.testing import Runner

COIN = "y < 90 AND COIN(x) AND z < 10"

GUARDED = ["x <> 0", "y < 90", "10 / x > 2"]


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


def tossed(name: str, **options: Any) -> tuple[list[int], Any]:
    """Which rows a function that calls itself not deterministic was asked about."""
    asked: list[int] = []

    def coin(value: int) -> bool:
        asked.append(value)
        return value % 2 == 0

    functions = {"coin": (coin, {"deterministic": False, **options})}
    costs = {"y < 90": 1.0, "COIN(x)": 20.0, "z < 10": 1.0}
    how: dict[str, Any] = {"epochs": 6, "functions": functions, "costs": costs}
    _, query = ran(numbers(12_000, "coin"), COIN, name, **how)
    return asked, query


@pytest.mark.parametrize("how", ["filters = 'a-greedy', profile = 1", "filters = 'auto'"])
def test_the_profile_never_asks_what_a_guard_keeps_away(how: str) -> None:
    """A function that hangs on 0 never sees 0: the guard holds for sampled rows, too."""
    made = Runner()
    made.core.settings.function_deadline = 0.5
    seen: list[int] = []

    def careful(x: int) -> bool:
        seen.append(x)
        if x == 0:
            time.sleep(3)
        return x > 1

    made.function("careful", careful, "BOOLEAN", raises=True)
    made.stream("s", pa.table({"x": [0, 1, 2, 3] * 3, "ts": stamps(range(12))}))
    query = made.query(f"SELECT x FROM s WHERE x <> 0 AND careful(x) WITH ({how})")
    made.run()
    assert query.status == "running"
    assert 0 not in seen
    assert query.results().num_rows == 6


def test_a_known_plan_that_a_guard_forbids_is_not_taken_up() -> None:
    ordering = Auto(Settings(2, injected=(1.0, 1.0)))
    ordering.guards = (frozenset(), frozenset({0}))
    ordering.window.push(np.ones((100, 2), bool))
    ordering.known[ordering._region()] = (1, 0)
    assert not ordering._recall()
    assert allows(ordering.guards, ordering.order)


@by_name
def test_what_is_not_deterministic_keeps_its_place(name: str) -> None:
    """A coin is tossed once for each row that what stands before it in the text lets through, and
    never for the profile; `movable` predicates may be asked later."""
    table = numbers(12_000, "coin").to_pydict()
    before = [x for x, y in zip(table["x"], table["y"], strict=True) if y < 90]
    asked, query = tossed(name)
    assert asked == before
    assert query.plan_log == []
    moved, query = tossed(name, movable=True)
    rows = numbered(query.results(), "x", "y", "z")
    wanted = zip(table["x"], table["y"], table["z"], range(12_000), strict=True)
    assert rows == Counter(r for r in wanted if r[1] < 90 and r[0] % 2 == 0 and r[2] < 10)
    if name == "fixed":
        assert moved == before
    else:
        assert len(moved) < 0.7 * len(before)
        order = query.stats()["adapt"]["filters"][0]["order"]
        assert order.index("z < 10") < order.index("COIN(x)")


@by_name
def test_a_guard_stays_before_what_it_guards(name: str) -> None:
    """However dear the guard and cheap what it guards: others move, these two do not pass."""
    table = numbers(20_000, "guard").set_column(
        1, "x", pa.array(rng_of("guarded").integers(0, 12, 20_000))
    )
    costs = {"x <> 0": 50.0, "y < 90": 1.0, "10 / x > 2": 1.0}
    runner, query = ran(table, " AND ".join(GUARDED), name, epochs=8, costs=costs)
    orders = [s.new for s in query.plan_log] + [query.stats()["adapt"]["filters"][0]["order"]]
    assert all(o.index("x <> 0") < o.index("10 / x > 2") for o in orders)
    counts = runner.core.state.queries[query.name].operators.counts
    assert counts["evaluations:10 / x > 2"] <= counts["passed:x <> 0"]
    assert query.rejects().num_rows == 0
    if name not in ("fixed", "local-swaps"):  # what is guarded blocks the way of neighbours
        assert orders[-1][0] == "y < 90"


@adaptive
def test_guards_hold_under_every_switch(cls: type[Ordering]) -> None:
    """Random guards, random data that moves: each order taken respects them."""
    for seed in range(5):
        rng = rng_of("guards", seed)
        n = 6
        guards = tuple(frozenset(np.flatnonzero(rng.random(i) < 0.3).tolist()) for i in range(n))
        rates = np.linspace(0.3, 0.9, n)
        passing, _ = permuted(rng, rates, 6, 20 * SLICE, 2)
        ordering = usual(cls, rng.uniform(0.5, 5, n), guards=guards, rate=0.2)
        run = drive(ordering, passing)
        assert run.judged.passing.tolist() == np.flatnonzero(passing.all(1)).tolist()
        for order in [s.new for s in ordering.switches] + [s.order for s in run.slices]:
            assert all(guards[p] <= set(order[:i]) for i, p in enumerate(order))
        ordering.force(tuple(reversed(range(n))))
        assert all(guards[p] <= set(ordering.order[:i]) for i, p in enumerate(ordering.order))


@adaptive
def test_guards_leave_no_way_but_the_text(cls: type[Ordering]) -> None:
    """A chain of guards, and predicates that would like to go the other way."""
    guards = tuple(frozenset(range(i)) for i in range(4))
    passing = correlated(rng_of("chain"), 20 * SLICE, np.array([0.95, 0.8, 0.5, 0.1]))
    ordering = usual(cls, np.ones(4), guards=guards, rate=0.5)
    drive(ordering, passing)
    assert ordering.order == [0, 1, 2, 3]
    assert ordering.switches == []
