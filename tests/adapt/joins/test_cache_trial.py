"""A change of caches is judged by what rows take after it, and taken back if that is more."""

from __future__ import annotations

import pytest

from thalweg.adapt.constants import COLD_EPOCHS, TRIAL_EPOCHS
from thalweg.adapt.joins.candidates import Segment
from thalweg.adapt.joins.lifecycle import CacheStates, State
from thalweg.adapt.joins.trial import CacheTrial
from thalweg.adapt.planlog import KEPT, PENDING, REVERTED, Switch
from thalweg.exec.tactics import JoinSeen

OLD = (Segment(0, 0, 1, frozenset({1, 2}), ("s.a",)),)


def switch() -> Switch:
    return Switch(9, "caches", ("none",), ("s⋈t",), "cost", "none", "s⋈t", 2.0, 1.0, 10, (2.0, 1.0))


def epoch(each: float, rows: int = 1_000, profiling: float = 0.0) -> list[JoinSeen]:
    """Two tasks of an epoch in which every row takes so many seconds."""
    half = rows // 2
    took = each * rows / 2 + profiling
    return [JoinSeen(took, profiling, {0: half - 10}, {0: 10}) for _ in range(2)]


def tried(before: list[float], after: list[float], now: float = 2.0) -> tuple[Switch, bool]:
    trial, made = CacheTrial(), switch()
    for each in before:
        trial.saw(epoch(each))
    trial.begin(made, OLD, ())
    failed = False
    for each in after:
        trial.saw(epoch(each))
        failed |= trial.has_failed(lambda _: now)
    return made, failed


@pytest.mark.parametrize(("after", "failed"), [(1.0, False), (1.1, False), (1.5, True)])
def test_a_change_after_which_rows_take_longer_fails(after: float, failed: bool) -> None:
    made, found = tried([1.0] * TRIAL_EPOCHS, [9.0] * COLD_EPOCHS + [after] * TRIAL_EPOCHS)
    assert found is failed
    assert made.outcome == (REVERTED if failed else KEPT)
    assert (made.before, made.after) == (pytest.approx(1.0), pytest.approx(after))


def test_one_good_epoch_speaks_for_it() -> None:
    """A busy machine makes epochs longer, never shorter."""
    busy = [3.0] * (TRIAL_EPOCHS - 1) + [1.0]
    made, failed = tried([1.0] * TRIAL_EPOCHS, [1.0] * COLD_EPOCHS + busy)
    assert not failed
    assert made.outcome == KEPT


def test_what_would_cost_more_by_now_anyway_is_no_failure() -> None:
    later = [9.0] * COLD_EPOCHS + [1.5] * TRIAL_EPOCHS
    assert tried([1.0] * TRIAL_EPOCHS, later)[1]
    assert not tried([1.0] * TRIAL_EPOCHS, later, now=3.0)[1]
    assert tried([1.0] * TRIAL_EPOCHS, later, now=1.0)[1]  # cheaper ones are no excuse


def test_nothing_is_judged_while_other_things_change() -> None:
    growing = [1.0, 1.6]
    made, failed = tried(growing, [9.0] * (COLD_EPOCHS + TRIAL_EPOCHS))
    assert not failed
    assert made.outcome == KEPT
    assert made.before is None


def test_nothing_is_judged_before_there_is_something_to_compare_with() -> None:
    made, failed = tried([1.0] * (TRIAL_EPOCHS - 1), [9.0] * (COLD_EPOCHS + TRIAL_EPOCHS))
    assert not failed
    assert made.outcome == KEPT


def test_a_change_in_the_midst_of_a_trial_ends_it() -> None:
    trial, first, second = CacheTrial(), switch(), switch()
    for _ in range(TRIAL_EPOCHS):
        trial.saw(epoch(1.0))
    trial.begin(first, OLD, ())
    assert first.outcome == PENDING
    trial.begin(second, (), OLD)
    assert (first.outcome, second.outcome) == (KEPT, KEPT)


def test_profiling_is_not_held_against_a_change() -> None:
    trial, made = CacheTrial(), switch()
    for _ in range(TRIAL_EPOCHS):
        trial.saw(epoch(1.0))
    trial.begin(made, OLD, ())
    for _ in range(COLD_EPOCHS + TRIAL_EPOCHS):
        trial.saw(epoch(1.0, profiling=500.0))
    assert not trial.has_failed(lambda _: None)
    assert made.after == pytest.approx(1.0)


def test_going_back_uses_what_was_used() -> None:
    new = Segment(1, 0, 1, frozenset({0, 2}), ("r.a",))
    states = CacheStates([*OLD, new], needed=1)
    for segment in (*OLD, new):
        states.observed(segment, 5.0, 1.0)
    states.decide(lambda _: {new})
    assert states.used == {new}
    states.go_back(OLD, "it did not pay")
    assert states.used == set(OLD)
    assert states.states[new] is State.UNUSED
