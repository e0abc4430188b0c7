"""Switches are events that say what, why and when, and no row depends on them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filter_data import correlated, drive, price, rng_of, survivors
from ordering_runs import MESSY, NAMES, SLICE, TEXTS, by_name, drifting, messy, ran, usual

from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.independent import Independent
from thalweg.adapt.filters.ordering import Ordering


def bag(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """Rows, whatever their order."""
    return Counter(zip(*(c.to_pylist() for c in table.columns), strict=True))


@pytest.mark.parametrize("name", [n for n in NAMES if n != "fixed"])
def test_switch_events_say_what_why_and_when(name: str) -> None:
    """streamon #9: each event carries the plan left and taken, the statistic that moved, and the
    epoch; events follow one another without a gap, and the change at half time shows."""
    costs = dict.fromkeys(TEXTS, 1.0)
    _, query = ran(drifting(), " AND ".join(TEXTS), name, epochs=20, costs=costs)
    log = query.plan_log
    assert log
    assert query.stats()["adapt"]["switches"] == len(log)
    for one, after in pairwise(log):
        assert one.new == after.old
        assert one.epoch <= after.epoch
    for switch in log:
        assert sorted(switch.old) == sorted(switch.new) == sorted(TEXTS)
        assert switch.old != switch.new
        assert switch.statistic
        assert {switch.incumbent, switch.challenger} <= set(TEXTS)
        assert 1 <= switch.epoch <= 20
        assert {"epoch", "old", "new", "statistic", "had", "has"} <= set(switch.to_dict())
    moved = [s for s in log if s.epoch > 10]
    assert moved
    assert moved[0].epoch <= 16
    assert list(log[-1].new) == query.stats()["adapt"]["filters"][0]["order"]
    assert log[-1].new[0] == "c < 95"


@pytest.mark.parametrize("name", ["a-greedy", "sweep", "local-swaps"])
def test_the_statistic_of_a_switch_is_the_one_that_was_violated(name: str) -> None:
    """streamon #9: the challenger's drops per cost exceed the incumbent's by more than alpha
    allows, the challenger moves before the incumbent, and costs predicted fall."""
    _, query = ran(drifting(), " AND ".join(TEXTS), name, epochs=20, costs={"a < 30": 2.0})
    for switch in query.plan_log:
        if not switch.statistic.startswith("drops per cost"):
            continue
        assert switch.had < 0.9 * switch.has
        assert switch.evidence > 0
        before = switch.old.index(switch.incumbent), switch.old.index(switch.challenger)
        assert before[0] < before[1]
        assert switch.new.index(switch.challenger) == before[0]
        assert switch.predicted is None or switch.predicted[1] < switch.predicted[0]


@pytest.mark.parametrize("cls", [AGreedy, Independent, Auto])
def test_predicted_costs_are_what_rows_cost(cls: type[Ordering]) -> None:
    """streamon #9: what an event says a row costs, by the profile, is what rows cost, those that
    pass included."""
    costs = np.array([1.0, 3.0, 2.0])
    passing = correlated(rng_of("predicted"), 40 * SLICE, np.array([0.9, 0.8, 0.7]))
    ordering = usual(cls, costs, rate=1.0)
    drive(ordering, passing)
    alive = survivors(~passing)
    for order in ((0, 1, 2), (2, 0, 1), (1, 2, 0)):
        assert ordering.predicted(order) == pytest.approx(price(order, alive, costs), rel=0.05)


@by_name
def test_no_result_depends_on_the_ordering(name: str) -> None:
    """streamon #9, streamon #21: with and without adapting, the same rows at the same instants."""
    table = drifting(20_000)
    _, plain = ran(table, " AND ".join(TEXTS))
    costs = {"a < 30": 1.0, "b < 60": 5.0, "c < 95": 0.5}
    how: list[dict[str, Any]] = [{"epochs": 7, "buckets": 3}, {"epochs": 12, "costs": costs}]
    for one in how:
        _, query = ran(table, " AND ".join(TEXTS), name, **one)
        assert bag(query.results()) == bag(plain.results())


@pytest.mark.parametrize("seed", range(4))
def test_no_result_depends_on_forced_switches(seed: int) -> None:
    """streamon #9: orders drawn anew every few rows change neither rows nor rejects."""
    table = messy(3_000)
    _, plain = ran(table, MESSY)
    _, query = ran(table, MESSY, epochs=5, buckets=2, switches=seed)
    assert bag(query.results()) == bag(plain.results())
    assert bag(query.rejects()) == bag(plain.rejects())
