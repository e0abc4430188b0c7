"""Edges of the adaptive loop: guards found late, half-known profiles, forks that are elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filter_data import Bools, drive, predicates

from thalweg.adapt.constants import BAN_SLICES, METER_SLICES, REVERT_ROWS, SLICE_ROWS
from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.guards import allows, free
from thalweg.adapt.filters.hindsight import Memory
from thalweg.adapt.filters.ordering import Order, Ordering, Settings, Trigger
from thalweg.adapt.filters.static import best_order, cost_of
from thalweg.adapt.filters.sweep import Sweep
from thalweg.adapt.filters.watch import FilterWatch
from thalweg.adapt.loop import Loop
from thalweg.adapt.planlog import KEPT, PENDING, REVERTED, PlanLog, Switch
from thalweg.adapt.profiler import Profiler
from thalweg.columns.vector import Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.predicates.conjunction import judge
from thalweg.exec.tactics import DROPPED, ERRED, PASSED, UNKNOWN, Observation
from thalweg.plan.expr import Column, Predicate, UserCall
from thalweg.plan.predicate_order import Ordered, in_text_order
from thalweg.plan.types import BIGINT, BOOLEAN
from thalweg.testing import Runner

NEVER = 10**9
CHEAP, DEAR = 0.05, 1.0
"""The share of the rows that reach every predicate after the first."""


class Obedient(Ordering):
    """Takes the order it is told to."""

    profiles = True
    wish: Order | None = None

    def _learn(self, seen: Observation) -> None:
        if self.wish is not None:
            self._adopt(self.wish, Trigger("wish", 0, self.current[0], self.wish[0], 1, 2, 9))


def watched(order: Order, injected: bool = True, **changed: Any) -> Loop[Order]:
    n = len(order)
    settings = Settings(n, injected=(1.0,) * n if injected else None, **changed)
    watch = FilterWatch(Ordered.of(predicates(n)), Obedient(settings, order))
    return Loop(watch, ("q",), Profiler(), PlanLog())


def slice_of(
    order: Order, reach: float, rows: int = SLICE_ROWS, seconds: float = 0.0
) -> Observation:
    """A slice without profile: all rows are asked the first predicate, some the others, and each
    evaluation takes so many seconds."""
    n, left = len(order), int(rows * reach)
    asked = np.full(n, left)
    asked[order[0]] = rows
    return Observation(
        order, rows, asked, np.zeros(n, np.int64), asked * seconds, np.zeros(n), np.zeros(n),
        np.full(n, left), np.empty((0, n), np.int8),
    )  # fmt: skip


def profiled(seen: Observation, *rows: list[int], passed: int = 0) -> Observation:
    return replace(seen, profile=np.array(rows, np.int8), passed=passed)


def switched(watch: Loop[Order], new: Order, reach: float = CHEAP, **how: float) -> Switch:
    """Some slices, then a switch to another order."""
    before = slice_of(watch.watch.choice, reach, **how)
    for _ in range(METER_SLICES):
        watch.advance(before, 1)
    watch.watch.ordering.wish = new
    (switch,) = watch.advance(before, 1)
    watch.watch.ordering.wish = None
    assert watch.watch.choice == new
    return switch


# -- guards and reverts --------------------------------------------------------------------------

GUARD_SEEN = [
    DROPPED,
    ERRED,
]  # the second errs on a row that the first, before it in the text, drops
LEARNS = {"learns": (False, True)}


def test_a_switch_that_a_guard_forced_is_never_taken_back() -> None:
    """However dear the order is that the guard leaves: there is no way back, and it is no trial."""
    watch = watched((1, 0), **LEARNS)
    for _ in range(METER_SLICES):
        watch.advance(slice_of((1, 0), CHEAP), 1)
    (switch,) = watch.advance(profiled(slice_of((1, 0), CHEAP), GUARD_SEEN), 1)
    assert (switch.statistic, switch.outcome) == ("a guard was found", KEPT)
    for order in [(0, 1), (1, 0)] * 4:  # tasks that do not know of the guard yet go on for a while
        assert not watch.advance(slice_of(order, DEAR), 2)
        assert watch.watch.choice == (0, 1)
    assert len(watch.log) == 1
    assert watch.watch.ordering.banned == frozenset()


def test_a_guard_found_during_a_trial_leaves_no_way_back() -> None:
    """The old order was allowed when it was left, and is not any more when the trial ends."""
    watch = watched((1, 0), **LEARNS)
    switched(watch, (0, 1))
    watch.advance(profiled(slice_of((0, 1), DEAR), GUARD_SEEN), 2)
    for _ in range(4):
        watch.advance(slice_of((0, 1), DEAR), 2)
    assert watch.watch.choice == (0, 1)
    assert watch.watch.choice not in watch.watch.ordering.banned
    assert [s.new for s in watch.log] == [("f0", "f1")]


def test_a_guard_is_obeyed_though_the_only_order_left_is_banned() -> None:
    """A ban is about costs; a guard found later outweighs it."""
    watch = watched((1, 0), **LEARNS)
    switched(watch, (0, 1))
    for _ in range(-(-REVERT_ROWS // SLICE_ROWS)):
        watch.advance(slice_of((0, 1), DEAR), 2)
    assert watch.watch.choice == (1, 0)
    watch.advance(profiled(slice_of((1, 0), CHEAP), GUARD_SEEN), 3)
    assert allows(watch.watch.ordering.guards, watch.watch.choice)


# -- hindsight -----------------------------------------------------------------------------------

ALIKE = np.ones(2)
KNOWN = [[DROPPED, PASSED]] * 60 + [[PASSED, DROPPED]] * 20
PARTIAL = {
    "would count as passed": ((1, 0), [[UNKNOWN, DROPPED]] * 90),
    "would leave the others over": ((0, 1), [[DROPPED, UNKNOWN]] * 90 + [[PASSED, DROPPED]] * 99),
}


@pytest.mark.parametrize(("order", "rows"), PARTIAL.values(), ids=PARTIAL)
@pytest.mark.parametrize("together", [False, True])
def test_hindsight_knows_only_epochs_that_were_asked_everything(
    order: Order, rows: list[list[int]], together: bool
) -> None:
    """A half-known profile takes its whole epoch out of the best static order, no other epoch."""
    memory = Memory(2)
    partial = profiled(slice_of(order, DEAR), *rows, passed=7)
    memory.add(replace(partial, unasked=frozenset({order[1]})))
    if together:
        memory.add(profiled(slice_of(order, DEAR), *[[PASSED, DROPPED]] * 50))
    memory.end_epoch()
    assert memory.judged(ALIKE, free(2)) is None
    memory.add(profiled(slice_of((1, 0), DEAR), *KNOWN, passed=20))
    memory.end_epoch()
    found = memory.judged(ALIKE, free(2))
    assert found is not None
    assert found.order == (0, 1)
    assert found.static == pytest.approx(1 + 0.4)
    assert found.adaptive == pytest.approx(2)  # what was evaluated counts, known or not


def test_what_the_executor_leaves_unasked_is_unknown_to_hindsight() -> None:
    """Sweep asks one predicate more, A-Greedy all: the one says nothing of static orders."""
    passing = np.random.default_rng(4).random((120, 4)) < np.array([0.9, 0.5, 0.7, 0.3])
    costs = np.array([1.0, 2.0, 1.0, 3.0])
    for cls in (Sweep, AGreedy):
        settings = Settings(4, injected=tuple(costs), rate=1.0, evidence=NEVER)
        memory = Memory(4)
        for seen in drive(cls(settings), passing).slices:
            unknown = set(np.flatnonzero((seen.profile == UNKNOWN).any(0)).tolist())
            assert seen.unasked == unknown == ({2, 3} if cls is Sweep else set())
            memory.add(seen)
        memory.end_epoch()
        found = memory.judged(costs, free(4))
        if cls is Sweep:
            assert found is None
        else:
            assert found is not None
            assert found.order == best_order(~passing, costs)
            assert found.static == pytest.approx(cost_of(found.order, ~passing, costs))


# -- SysStream -----------------------------------------------------------------------------------


def stamps(micros: Any) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", "UTC"))


def swapping(rows: int) -> pa.Table:
    """Few pass b in the first third, few pass a in the second, few b again in the last."""
    rng = np.random.default_rng(6)
    often, seldom = rng.random(rows) < 0.9, rng.random(rows) < 0.1
    middle = np.arange(rows) * 3 // rows == 1
    a, b = np.where(middle, seldom, often), np.where(middle, often, seldom)
    return pa.table({"a": a.astype(int), "b": b.astype(int), "ts": stamps(np.arange(rows))})


ORDERED = "SELECT a FROM s WHERE a = 1 AND b = 1 WITH (filters = 'a-greedy', profile = 0.2)"
SWITCHES = (
    "SELECT ISTREAM epoch, value FROM SysStream [NOW] WHERE entity = 'q' AND property = 'switches'"
)
EPOCHS = 9


def swapped(read_from: int) -> tuple[Runner, dict[int, int]]:
    """The conjunction over data that change, and its switches by epoch as SysStream has them; it
    is read from the given epoch on."""
    made = Runner(epochs=EPOCHS, costs={"a = 1": 1.0, "b = 1": 1.0})
    table = swapping(EPOCHS * SLICE_ROWS)
    made.stream("s", table)
    made.query(ORDERED, "q")
    for number, piece in enumerate(made.pieces("s"), 1):
        if number == read_from:
            reader = made.query(SWITCHES)
        made.feed({"s": piece})
    made.close()
    return made, {r["epoch"]: r["value"] for r in reader.results().to_pylist()}


def test_sysstream_and_stats_tell_the_order_in_force() -> None:
    """Each epoch publishes its own switches; stats, state and plan show where the last one led."""
    made, published = swapped(read_from=1)
    query = made.queries["q"]
    switches = Counter(s.epoch for s in query.plan_log)
    assert len(switches) >= 3
    assert published == {e: switches[e] for e in range(1, EPOCHS + 1)}
    last = list(query.plan_log[-1].new)
    assert last == ["b = 1", "a = 1"]
    assert query.stats()["adapt"]["filters"][0]["order"] == last
    assert [p.label for p in query.plan.leaves[0].filters] == last
    assert made.core.adaptation.kept("q")["filters: a = 1 AND b = 1"] == [1, 0]


def test_switches_from_before_anybody_read_are_not_published() -> None:
    """`switches` are those of the epoch, as `emitted` and `evaluations` are."""
    made, published = swapped(read_from=3)
    switches = Counter(s.epoch for s in made.queries["q"].plan_log)
    assert switches[1] > 0
    assert published == {e: switches[e] for e in range(3, EPOCHS + 1)}


def test_counts_of_open_groups_are_neither_published_nor_kept() -> None:
    """`opens:` counters come and go with their groups: SysStream must not pile them up."""
    rows = 400
    table = pa.table({"x": np.arange(rows), "ts": stamps(np.arange(rows) * 10_000)})
    made = Runner(epochs=4)
    made.stream("s", table)
    made.query(
        "SELECT date_trunc('SECOND', ts) AS t, count(*) AS n FROM s WHERE x >= 0 AND x <> 7 "
        "GROUP BY date_trunc('SECOND', ts)",
        "q",
    )
    reader = made.query("SELECT ISTREAM entity, property FROM SysStream [NOW] WHERE value <> -1")
    core = made.core
    for piece in made.pieces("s"):
        made.feed({"s": piece})
        assert any(k.startswith("opens:") for k in core.state.queries["q"].operators.counts)
        assert core.system.growth is not None
        assert not any("opens" in name for _, name in core.system.growth._before)
    made.close()
    found = {(r["entity"], r["property"]) for r in reader.results().to_pylist()}
    assert ("q: x <> 7", "selectivity") in found
    assert not any("opens" in name for _, name in found)


# -- forks at other stages -----------------------------------------------------------------------


def sweeping(stage: int, n: int, **changed: Any) -> Sweep:
    """A sweep that asks every row, by default without ever leaving its stage."""
    changed = {"evidence": NEVER, "window": NEVER, **changed}
    sweep = Sweep(Settings(n, injected=(1.0,) * n, rate=1.0, **changed))
    sweep.stage = stage
    return sweep


def falling_to(*counts: int) -> Bools:
    """Rows in random order: so many fall to the first predicate only, to the second, ..."""
    which = np.random.default_rng(9).permutation(np.repeat(np.arange(len(counts)), counts))
    return which[:, None] != np.arange(len(counts))


def counted(sweep: Sweep) -> tuple[int, list[int], list[int]]:
    return sweep.seen, sweep.own.tolist(), sweep.rival.tolist()


def test_rows_that_a_stage_knows_nothing_of_do_not_count() -> None:
    """A fork at stage 2 did not ask the predicate of stage 1 of rows dropped before it."""
    passing = falling_to(1_000, 0, 0)
    driver = sweeping(1, 3)
    for seen in drive(sweeping(1, 3), passing).slices:
        driver.observe(seen)
    assert counted(driver) == (1_000, [1_000, 0, 0], [0, 0, 0])
    for seen in drive(sweeping(2, 3), passing).slices:
        driver.observe(seen)
    assert counted(driver) == (1_000, [1_000, 0, 0], [0, 0, 0])


def test_slices_of_another_order_do_not_count() -> None:
    """Positions mean other predicates there."""
    driver = sweeping(1, 3)
    for seen in drive(Sweep(driver.settings, (2, 1, 0)), falling_to(500, 300, 200)).slices:
        driver.observe(seen)
    assert counted(driver) == (0, [0, 0, 0], [0, 0, 0])


def test_a_fork_at_another_stage_does_not_tip_the_scales() -> None:
    """Of a fork's rows a stage counts those of all positions before it, or none."""
    driver = sweeping(1, 3, evidence=150)
    for seen in drive(sweeping(2, 3), falling_to(1_500, 750, 375)).slices:
        driver.observe(seen)
    assert driver.order == [0, 1, 2]


def merged(driver: Ordering, *forks: Ordering, passing: Bools) -> list[int]:
    """The order after slices of several tasks, taken in by turns."""
    parts = np.array_split(passing, len(forks))
    runs = [drive(fork, part).slices for fork, part in zip(forks, parts, strict=True)]
    for turn in zip(*runs, strict=True):
        for seen in turn:
            driver.observe(seen)
    return driver.order


def auto(n: int) -> Auto:
    return Auto(Settings(n, injected=(1.0,) * n, rate=1.0))


def everything(n: int) -> AGreedy:
    """A fork that asks everything and keeps its order."""
    return AGreedy(Settings(n, injected=(1.0,) * n, rate=1.0, evidence=NEVER))


def test_auto_takes_no_profile_from_a_fork_that_went_sweeping() -> None:
    """Beside a task that asks everything, one that sweeps must not make others look idle."""
    passing = np.random.default_rng(2).random((8 * SLICE_ROWS, 4)) < [0.7, 0.6, 0.4, 0.2]
    alone = merged(auto(4), everything(4), passing=passing)
    assert alone == [3, 2, 1, 0]
    assert merged(auto(4), everything(4), sweeping(1, 4), passing=passing) == alone
    assert merged(auto(4), sweeping(2, 4), everything(4), passing=passing) == alone


def test_a_sweeping_auto_merges_forks_at_different_stages() -> None:
    """Two tasks at two stages lead to the order that one task with all the rows leads to."""
    passing = np.random.default_rng(3).random((16 * SLICE_ROWS, 6)) < np.linspace(0.2, 0.95, 6)
    orders = []
    for stages in ([1], [1, 2]):
        driver = auto(6)
        driver._begin_sweep()
        orders.append(merged(driver, *(sweeping(s, 6) for s in stages), passing=passing))
    assert orders[0] == [0, 1, 2, 3, 4, 5]
    assert orders[1] == orders[0]


# -- trials --------------------------------------------------------------------------------------


def test_slices_much_shorter_or_of_another_order_do_not_judge_a_trial() -> None:
    """Not even many of them; from half the usual length on they do."""
    watch = watched((0, 1))
    switch = switched(watch, (1, 0))
    short = SLICE_ROWS // 2 - 1
    for _ in range(3 * REVERT_ROWS // short):
        assert not watch.advance(slice_of((1, 0), DEAR, short), 2)
        assert not watch.advance(slice_of((0, 1), DEAR), 2)
    assert (switch.outcome, watch.watch.choice) == (PENDING, (1, 0))
    for _ in range(REVERT_ROWS // (SLICE_ROWS // 2)):
        watch.advance(slice_of((1, 0), DEAR, SLICE_ROWS // 2), 2)
    assert (switch.outcome, watch.watch.choice) == (REVERTED, (0, 1))


def test_a_switch_that_costs_more_is_reverted_and_banned_after_enough_rows() -> None:
    """Not a row sooner, not for ever, and no other order is banned with it."""
    watch = watched((0, 1, 2))
    dear: Order = (2, 1, 0)
    switch = switched(watch, dear)
    for rows in (SLICE_ROWS, REVERT_ROWS - SLICE_ROWS - 1):
        assert not watch.advance(slice_of(dear, DEAR, rows), 2)
    assert (switch.outcome, watch.watch.choice) == (PENDING, dear)
    (back,) = watch.advance(slice_of(dear, DEAR), 2)
    assert switch.outcome == REVERTED
    assert (back.old, back.new) == (switch.new, switch.old)
    assert watch.watch.choice == (0, 1, 2)
    watch.watch.ordering.wish = dear
    for _ in range(BAN_SLICES - 1):
        assert not watch.advance(slice_of((0, 1, 2), CHEAP), 3)
    watch.watch.ordering.wish = (1, 0, 2)
    assert watch.advance(slice_of((0, 1, 2), CHEAP), 3)
    watch.watch.ordering.wish = dear
    assert watch.advance(slice_of((1, 0, 2), CHEAP), 4)
    assert watch.watch.choice == dear


@pytest.mark.parametrize(
    ("slower", "reach", "outcome"),
    [(5, 0.5, KEPT), (0.75, DEAR, KEPT), (5, DEAR, REVERTED)],
    ids=["time only", "evaluations only", "both"],
)
def test_time_and_evaluations_have_to_agree_against_a_switch(
    slower: float, reach: float, outcome: str
) -> None:
    """A busy machine takes no good switch back, nor do counts where rows take no longer."""
    watch = watched((0, 1), injected=False)
    switch = switched(watch, (1, 0), 0.5, seconds=1e-5)
    for _ in range(REVERT_ROWS // SLICE_ROWS):
        watch.advance(slice_of((1, 0), reach, seconds=1e-5 * slower), 2)
    assert switch.outcome == outcome
    assert watch.watch.choice == ((0, 1) if outcome == REVERTED else (1, 0))


# -- who is profiled -----------------------------------------------------------------------------


@pytest.mark.parametrize("movable", [False, True])
@pytest.mark.parametrize("deterministic", [False, True])
def test_only_movable_predicates_are_asked_of_dropped_rows(
    movable: bool, deterministic: bool
) -> None:
    """A profile of every row, by a tactic that knows of no guards: `movable` alone decides."""
    rows = np.arange(300)
    kept = rows[rows % 3 == 0].tolist()
    asked: list[int] = []
    functions = {"odd": UserFunction("odd", lambda n: asked.append(n) or n % 2 == 1, BOOLEAN)}
    column = Column(BIGINT, False, "n")
    call = UserCall(BOOLEAN, False, "odd", (column,), deterministic, movable, raises=False)
    both = in_text_order([Predicate(Column(BOOLEAN, False, "third"), 0), Predicate(call, 1)])
    columns = {"third": Vector(BOOLEAN, rows % 3 == 0), "n": Vector(BIGINT, rows)}
    tactics = {both: everything(2)}
    ctx = TaskContext(cache=None, functions=functions, since=0, until=0, tactics=tactics)  # type: ignore[arg-type]
    assert judge(both, columns, len(rows), ctx).passing.tolist() == [n for n in kept if n % 2]
    assert sorted(asked) == (rows.tolist() if movable else kept)
    (seen,) = ctx.observations[both]
    dropped_first = seen.profile[seen.profile[:, 0] == DROPPED]
    assert len(dropped_first) == len(rows) - len(kept)
    assert (dropped_first[:, 1] == UNKNOWN).all() == (not movable)
