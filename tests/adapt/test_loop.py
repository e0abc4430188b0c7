"""The loop around the orderings: slices, plan log, reverts, known plans, restarts, statistics."""

from __future__ import annotations

import pickle
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from thalweg.adapt.constants import BAN_SLICES, REVERT_ROWS, SLICE_ROWS
from thalweg.adapt.estimates import share
from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.catalog import ORDERINGS, make_ordering
from thalweg.adapt.filters.ordering import Order, Ordering, Settings, Trigger
from thalweg.adapt.filters.watch import FilterWatch
from thalweg.adapt.loop import Loop
from thalweg.adapt.planlog import KEPT, REVERTED, PlanLog, Switch
from thalweg.adapt.profiler import Profiler
from thalweg.exec.tactics import DROPPED, PASSED, Observation
from thalweg.plan.expr import Column, Predicate
from thalweg.plan.predicate_order import Ordered
from thalweg.plan.types import BOOLEAN
from thalweg.testing import Runner

COSTS = {"a = 1": 1.0, "b = 1": 1.0}


def drifting(rows: int, seed: int = 1) -> pa.Table:
    """In the first half nearly every `a` passes and few `b`, in the second half the other way."""
    rng = np.random.default_rng(seed)
    early = np.arange(rows) < rows // 2
    often, seldom = rng.random(rows) < 0.9, rng.random(rows) < 0.1
    return pa.table(
        {
            "a": np.where(early, often, seldom).astype(np.int64),
            "b": np.where(early, seldom, often).astype(np.int64),
            "ts": pa.array(np.arange(rows), pa.timestamp("us", "UTC")),
        }
    )


def runner(rows: int, option: str, **how: object) -> Runner:
    made = Runner(costs=COSTS, **how)
    made.stream("s", drifting(rows))
    made.query(f"SELECT a FROM s WHERE a = 1 AND b = 1 WITH (filters = '{option}')", "q")
    return made


# -- slices --------------------------------------------------------------------------------------


def test_the_order_changes_inside_one_epoch() -> None:
    """Drift within a single epoch is met: both halves run in the order that suits them."""
    rows = 40 * SLICE_ROWS
    made = runner(rows, "auto")
    made.run()
    fixed = runner(rows, "fixed")
    fixed.run()
    orders = [s.new for s in made.queries["q"].plan_log]
    assert ("b = 1", "a = 1") in orders
    assert orders[-1] == ("a = 1", "b = 1")
    assert {s.epoch for s in made.queries["q"].plan_log} == {1}
    assert made.cost("q") < 0.85 * fixed.cost("q")
    assert made.queries["q"].results().num_rows == fixed.queries["q"].results().num_rows


def test_the_plan_shows_the_order_in_force_and_a_restart_keeps_it() -> None:
    made = runner(20 * SLICE_ROWS, "a-greedy", epochs=8, restarts=(3,))
    pieces = made.pieces("s")
    for piece in pieces[:3]:
        made.feed({"s": piece})
    query = made.queries["q"]
    assert [str(p) for p in query.plan.leaves[0].filters] == ["b = 1", "a = 1"]
    assert [s.new for s in query.plan_log] == [("b = 1", "a = 1")]
    for piece in pieces[3:]:
        made.feed({"s": piece})
    assert [str(p) for p in query.plan.leaves[0].filters] == ["a = 1", "b = 1"]
    assert "a = 1, b = 1" in query.explain()


@pytest.mark.parametrize("name", ORDERINGS)
def test_orderings_travel_to_workers(name: str) -> None:
    ordering = make_ordering(name, Settings(3, injected=(1.0, 2.0, 3.0)))
    copy = pickle.loads(pickle.dumps(ordering.fork(7)))
    again = pickle.loads(pickle.dumps(ordering.fork(7)))
    assert copy.order == ordering.order
    assert copy.sample(10_000).tolist() == again.sample(10_000).tolist()


def test_a_sample_is_a_share_of_the_rows() -> None:
    ordering = make_ordering("a-greedy", Settings(2, rate=0.05)).fork(3)
    drawn = [ordering.sample(2_000) for _ in range(200)]
    counts = [len(d) for d in drawn]
    assert abs(np.mean(counts) - 100) < 3
    assert abs(np.std(counts) - np.sqrt(2_000 * 0.05 * 0.95)) < 2
    assert all((np.diff(d) > 0).all() and d.max() < 2_000 for d in drawn)
    places = np.concatenate(drawn)
    assert abs(np.mean(places) - 1_000) < 20  # no end of a slice is drawn more often


# -- switches that pay, and those that do not ----------------------------------------------------


class Stubborn(Ordering):
    """Switches when it is told to."""

    profiles = True
    wish: tuple[int, ...] | None = None

    def _learn(self, seen: Observation) -> None:
        if self.wish is not None:
            self._adopt(self.wish, Trigger("wish", 0, self.current[0], self.wish[0], 1, 2, 9))


def watch(ordering: Ordering) -> Loop[Order]:
    predicates = [Predicate(Column(BOOLEAN, False, n), i, n) for i, n in enumerate("xy")]
    return Loop(FilterWatch(Ordered.of(predicates), ordering), ("q",), Profiler(), PlanLog())


def slice_of(order: tuple[int, ...], evaluations: tuple[int, int]) -> Observation:
    asked = np.array(evaluations)
    zeros, floats = np.zeros(2, np.int64), np.zeros(2)
    return Observation(
        order, SLICE_ROWS, asked, zeros, floats, floats, floats,
        np.array([SLICE_ROWS // 2] * 2), np.empty((0, 2), np.int8),
    )  # fmt: skip


def test_a_switch_that_does_not_pay_is_reverted_and_remembered() -> None:
    ordering = Stubborn(Settings(2, injected=(1.0, 1.0)))
    watched = watch(ordering)
    cheap, dear = (SLICE_ROWS, 100), (SLICE_ROWS, SLICE_ROWS)
    watched.advance(slice_of((0, 1), cheap), 1)
    ordering.wish = (1, 0)
    (switch,) = watched.advance(slice_of((0, 1), cheap), 1)
    assert switch.before == pytest.approx(1 + 100 / SLICE_ROWS)
    assert watched.watch.choice == (1, 0)
    back: list[Switch] = []
    for _ in range(-(-REVERT_ROWS // SLICE_ROWS)):
        back += watched.advance(slice_of((1, 0), dear), 2)
    assert switch.after == pytest.approx(2.0)
    assert switch.outcome == REVERTED
    assert watched.watch.choice == (0, 1)
    assert [s.statistic for s in back] == ["measured cost per row"]
    for _ in range(BAN_SLICES - 2):  # it would like to, but may not
        assert not watched.advance(slice_of((0, 1), cheap), 3)
    assert watched.watch.choice == (0, 1)
    assert ordering.fork(1).banned == {(1, 0)}
    found = [watched.advance(slice_of((0, 1), cheap), 4) for _ in range(5)]
    assert any(found)
    assert watched.watch.choice == (1, 0)


def test_a_switch_that_pays_is_kept() -> None:
    ordering = Stubborn(Settings(2, injected=(1.0, 1.0)))
    watched = watch(ordering)
    watched.advance(slice_of((0, 1), (SLICE_ROWS, SLICE_ROWS)), 1)
    ordering.wish = (1, 0)
    (switch,) = watched.advance(slice_of((0, 1), (SLICE_ROWS, SLICE_ROWS)), 1)
    for _ in range(3):
        watched.advance(slice_of((1, 0), (100, SLICE_ROWS)), 2)
    assert switch.outcome == KEPT
    assert switch.after < switch.before
    assert watched.watch.choice == (1, 0)


def switched(epoch: int, old: str, new: str) -> Switch:
    return Switch(
        epoch, "x AND y", tuple(old), tuple(new), "drops per cost", old[0], new[0], 1, 2, 9
    )


def test_plans_that_are_left_soon_again_count_as_transients() -> None:
    log = PlanLog()
    log.add(switched(1, "xy", "yx"))
    log.add(switched(2, "yx", "xy"))
    log.add(switched(30, "xy", "yx"))
    log.add(switched(60, "yx", "xy"))
    assert log.transients == Counter({("x", "y"): 1})


def test_a_pair_that_caused_transients_has_to_differ_by_more() -> None:
    ordering = Stubborn(Settings(2, injected=(1.0, 1.0)))
    watched = watch(ordering)
    alpha = ordering.settings.alpha
    for epoch, wish in enumerate([(1, 0), (0, 1), (1, 0)], 1):
        seen = slice_of(tuple(ordering.order), (SLICE_ROWS, SLICE_ROWS))
        ordering.wish = wish
        watched.advance(seen, epoch)
    assert ordering.settings.alpha < alpha


# -- what the plan log knows ---------------------------------------------------------------------


def profile(order: list[int], shares: tuple[float, ...], rows: int, seed: int) -> Observation:
    """A slice in which every row was profiled."""
    drops = np.random.default_rng(seed).random((rows, len(shares))) < np.array(shares)
    some = drops[drops.any(1)]
    gone = np.logical_or.accumulate(drops[:, order], axis=1)
    survivors = rows - gone.sum(0)
    asked = np.empty(len(shares), np.int64)
    asked[order] = np.concatenate([[rows], survivors[:-1]])
    floats = np.zeros(len(shares))
    return Observation(
        tuple(order), rows, asked, np.zeros_like(asked), floats, floats, floats, survivors,
        np.where(some, DROPPED, PASSED).astype(np.int8), rows - len(some),
    )  # fmt: skip


def test_a_known_plan_is_taken_up_again_for_statistics_seen_before() -> None:
    ordering = Auto(Settings(3, injected=(1.0, 1.0, 1.0)))
    first, second = (0.2, 0.4, 0.8), (0.8, 0.4, 0.2)
    reasons = []
    for step, shares in enumerate([first, second, first, second]):
        for i in range(30):
            ordering.observe(profile(ordering.order, shares, SLICE_ROWS, 100 * step + i))
        reasons.append([s.trigger.statistic for s in ordering.switches])
        ordering.switches.clear()
    assert ordering.order[0] == 0
    assert "known statistics" not in reasons[0] + reasons[1]
    assert "known statistics" in reasons[2]
    assert "known statistics" in reasons[3]
    assert set(ordering.known.values()) == {(2, 1, 0), (0, 1, 2)}


def test_statistics_that_cannot_matter_are_left_out_of_the_profile() -> None:
    ordering = Auto(Settings(3, injected=(1.0, 1.0, 100.0)))
    for i in range(80):
        ordering.observe(profile(ordering.order, (0.5, 0.5, 0.5), SLICE_ROWS, i))
    assert ordering.ignored == {2}
    last = ordering.order.index(2)
    assert not ordering.wanted(last, np.zeros(4, np.int64)).any()
    assert ordering.wanted(1, np.zeros(4, np.int64)).all()


def test_the_return_on_adapting_is_against_the_best_static_order() -> None:
    made = runner(60 * SLICE_ROWS, "auto", epochs=10)
    made.run()
    found = made.queries["q"].stats()["adapt"]["filters"][0]
    table = drifting(60 * SLICE_ROWS)
    a, b = (table[c].to_numpy() for c in "ab")
    static = min(len(a) + int(x.sum()) for x in (a, b))
    actual = sum(
        v for k, v in made.queries["q"].stats()["counts"].items()
        if k.startswith(("evaluations:", "profiled:"))
    )  # fmt: skip
    assert found["return_on_adapting"] == pytest.approx(static / actual, rel=0.05)
    assert found["return_on_adapting"] > 1.15


# -- the Profiler --------------------------------------------------------------------------------


def test_only_what_was_asked_for_is_kept_and_changes_are_announced() -> None:
    profiler = Profiler()
    told: list[tuple[float, float]] = []
    profiler.ask(("q", "p"), lambda key, old, new: told.append((old.value, new.value)))
    profiler.ask(("q", "p"))
    profiler.record(("q", "other"), 1, 2)
    assert profiler.kept == {("q", "p")}
    profiler.record(("q", "p"), 500, 1_000)
    profiler.record(("q", "p"), 510, 1_000)  # chance
    assert told == []
    profiler.record(("q", "p"), 800, 1_000)
    assert told == [(0.5, 0.8)]
    estimate = profiler.estimate(("q", "p"))
    assert estimate.count == 3_000
    assert estimate.value == pytest.approx(1_810 / 3_000)
    profiler.release(("q", "p"))
    assert profiler.kept == {("q", "p")}
    profiler.release(("q", "p"))
    assert profiler.kept == frozenset()


def test_intervals_cover_the_truth() -> None:
    """An estimate's margin is that of a 95 % interval."""
    rng = np.random.default_rng(5)
    found = [share(int(x), 400) for x in rng.binomial(400, 0.3, 2_000)]
    inside = np.mean([abs(e.value - 0.3) <= e.margin for e in found])
    assert 0.93 < inside < 0.97


# -- guards --------------------------------------------------------------------------------------


def test_a_guard_is_learned_from_the_rows_on_which_a_function_raised() -> None:
    """is_word guards length_of though both are user functions: once seen, it stays before it."""
    words = ["abc", "7", "word", "9"] * 20_000
    made = Runner(epochs=4)
    stamps = pa.array(np.arange(len(words)), pa.timestamp("us", "UTC"))
    made.stream("s", pa.table({"w": words, "ts": stamps}))
    raised = Counter()

    def is_word(values: pa.Array) -> list[bool]:
        return [v.isalpha() for v in values.to_pylist()]

    def short(values: pa.Array) -> list[bool]:
        found = values.to_pylist()
        if any(not v.isalpha() for v in found):
            raised["calls"] += 1
            raise ValueError("not a word")
        return [len(v) < 3 for v in found]

    for name, function in (("is_word", is_word), ("short", short)):
        made.function(name, function, "BOOLEAN", arguments=["STRING"], vectorized=True)
    query = made.query("SELECT w FROM s WHERE is_word(w) AND short(w)", "q")
    made.run()
    report = query.stats()["adapt"]["filters"][0]
    assert report["order"] == ["is_word(w)", "short(w)"]
    assert query.results().num_rows == 0
    assert query.rejects().num_rows == 0
    assert "short(w): passes" in query.explain(adapt=True)
    assert "behind is_word(w)" in query.explain(adapt=True)
