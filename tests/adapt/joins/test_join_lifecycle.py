"""States of candidates: only legal changes, and only for a reason."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_data import GOLDEN, is_prefix_set, one_column, random_estimates, random_pipelines

from thalweg.adapt.joins.candidates import Pipelines, Segment, candidates, compatible
from thalweg.adapt.joins.costs import benefit, net_benefit, upkeep
from thalweg.adapt.joins.lifecycle import CacheStates, Figures, State
from thalweg.adapt.joins.selection import select

USED, PROFILED, UNUSED = State.USED, State.PROFILED, State.UNUSED
LEGAL = {
    (None, PROFILED),
    (PROFILED, USED),
    (PROFILED, UNUSED),
    (USED, UNUSED),
    (USED, PROFILED),
    (UNUSED, PROFILED),
    (USED, None),
    (PROFILED, None),
    (UNUSED, None),
}

OUTER = Segment(4, 1, 3, frozenset({1, 2, 3}), ("a",))
INNER = Segment(4, 1, 2, frozenset({1, 2}), ("a",))
APART = Segment(1, 2, 3, frozenset({4, 5}), ("a",))
TWIN = Segment(2, 2, 3, frozenset({4, 5}), ("a",))


class Choice:
    """Chooses what it is told to, and remembers what it was offered."""

    def __init__(self, *wanted: Segment) -> None:
        self.wanted = wanted
        self.offered: list[set[Segment]] = []

    def __call__(self, found: Sequence[Segment]) -> frozenset[Segment]:
        self.offered.append(set(found))
        return frozenset(self.wanted) & set(found)


def observe(states: CacheStates, times: int = 10, **figures: tuple[float, float]) -> None:
    """The same figures again and again, by the name of the candidate."""
    for name, (saves, costs) in figures.items():
        for _ in range(times):
            states.observed(globals()[name], saves, costs)


def started(*used: Segment, found: Sequence[Segment] = (OUTER, INNER, APART)) -> CacheStates:
    """All profiled with benefit 10 and upkeep 4, and these of them chosen."""
    states = CacheStates(found)
    states.tick(0.0)
    for segment in found:
        for _ in range(10):
            states.observed(segment, 10, 4)
    assert states.decide(Choice(*used))
    return states


# --- choosing


def test_all_begin_profiled_and_wait_for_observations() -> None:
    """streamon #33: nothing is chosen before every candidate was observed often enough."""
    states = CacheStates([OUTER, INNER])
    choice = Choice(OUTER)
    assert states.states == {OUTER: PROFILED, INNER: PROFILED}
    observe(states, OUTER=(10, 4))
    observe(states, 9, INNER=(3, 1))
    assert not states.ready()
    assert not states.decide(choice)
    observe(states, 1, INNER=(3, 1))
    assert states.ready()
    assert states.decide(choice)
    assert states.states == {OUTER: USED, INNER: UNUSED}
    assert states.used == {OUTER}
    assert choice.offered == [{OUTER, INNER}]


def test_the_first_time_there_is_always_a_choice() -> None:
    """streamon #33: even of candidates that bring nothing at all."""
    states = CacheStates([OUTER])
    observe(states, OUTER=(0, 0))
    choice = Choice()
    assert states.decide(choice)
    assert len(choice.offered) == 1
    assert states.states == {OUTER: UNUSED}


def test_nothing_to_profile_is_never_ready() -> None:
    states = CacheStates([])
    assert not states.ready()
    assert not started(OUTER, INNER, APART).ready(), "all are used"


@pytest.mark.parametrize(
    ("saves", "costs", "anew"),
    [
        (10, 4, False),
        (12, 4, False),
        (8, 4.8, False),
        (8, 3.2, False),
        (12.1, 4, True),
        (7.9, 4, True),
        (10, 4.9, True),
        (10, 3.1, True),
    ],
)
@pytest.mark.parametrize("whose", ["OUTER", "APART"])
def test_a_new_choice_needs_a_change_of_a_fifth(
    whose: str, saves: float, costs: float, anew: bool
) -> None:
    """streamon #33: of the benefit or the upkeep of a used or a profiled candidate; else the last
    choice stands and nobody is asked."""
    states = started(OUTER, APART)  # OUTER hides INNER, APART stays in use
    assert states.tick(2.0)
    assert states.states == {OUTER: PROFILED, INNER: PROFILED, APART: USED}
    observe(states, OUTER=(10, 4), INNER=(10, 4), APART=(10, 4))
    observe(states, **{whose: (saves, costs)})
    choice = Choice(INNER)
    assert states.decide(choice) == anew
    assert states.used == ({INNER} if anew else {OUTER, APART})
    assert choice.offered == ([{OUTER, INNER, APART}] if anew else [])


def test_small_changes_add_up() -> None:
    """Figures are compared with those at the last choice, not with the last ones seen."""
    states = started(OUTER, APART)
    for step, saves in enumerate((11, 12), 1):
        states.tick(2.0 * step)
        observe(states, OUTER=(saves, 4), INNER=(10, 4))
        assert not states.decide(Choice())
    states.tick(6.0)
    observe(states, OUTER=(13, 4), INNER=(10, 4))
    assert states.decide(Choice(OUTER))
    states.tick(8.0)
    observe(states, OUTER=(13, 4), INNER=(10, 4))
    assert not states.decide(Choice()), "now 13 is what it is compared with"


@pytest.mark.parametrize(("now", "moved"), [(0.0, False), (1e-9, True), (-1e-9, True)])
def test_from_nothing_any_change_is_a_change(now: float, moved: bool) -> None:
    assert Figures(now, 1.0).moved(Figures(0.0, 1.0), 0.2) == moved
    assert Figures(1.0, now).moved(Figures(1.0, 0.0), 0.2) == moved


def test_no_choice_while_nothing_moves_by_a_fifth() -> None:
    """streamon #33: a hundred intervals with 19 % of noise bring no new choice."""
    rng = Random(5)
    states = started(OUTER, APART)
    choice = Choice(INNER)
    for interval in range(1, 101):
        states.tick(2.0 * interval)
        for segment in (OUTER, INNER, APART):
            for _ in range(10):
                states.observed(segment, 10 * rng.uniform(0.81, 1.19), 4 * rng.uniform(0.81, 1.19))
        assert not states.decide(choice)
        assert states.used == {OUTER, APART}
    assert choice.offered == []


# --- dropping


def test_a_cache_that_loses_is_dropped_at_once() -> None:
    """streamon #33: with the first observation that says so; the others stay."""
    states = started(OUTER, APART)
    states.observed(APART, 4.0, 4.0)
    assert states.states[APART] is USED, "it breaks even"
    states.observed(APART, 3.9, 4.0)
    assert states.states[APART] is UNUSED
    assert states.used == {OUTER}


def test_what_was_dropped_is_not_taken_back_by_keeping_the_choice() -> None:
    """streamon #33: it lost by less than a fifth, so there is no new choice; the old one is kept
    without it."""
    states = CacheStates([APART, OUTER])
    states.tick(0.0)
    observe(states, APART=(10.0, 9.9), OUTER=(10, 4))
    states.decide(Choice(APART, OUTER))
    observe(states, 1, APART=(9.8, 9.9))
    states.tick(2.0)
    observe(states, APART=(9.8, 9.9))
    assert not states.decide(Choice(APART))
    assert states.states == {APART: UNUSED, OUTER: USED}


def test_a_shared_cache_is_judged_by_all_who_use_it() -> None:
    """streamon #33: with an upkeep of 8 that is paid once, two who save 5 each keep it; who loses
    by it leaves alone, and then the other cannot pay for it."""
    states = CacheStates([APART, TWIN])
    observe(states, APART=(5, 8), TWIN=(5, 8))
    states.decide(Choice(APART, TWIN))
    observe(states, 1, APART=(5, 8), TWIN=(5, 8))
    assert states.used == {APART, TWIN}
    observe(states, 1, APART=(2.9, 8))
    assert states.used == frozenset()


def test_who_loses_by_a_shared_cache_leaves_alone() -> None:
    states = CacheStates([APART, TWIN])
    observe(states, APART=(5, 2), TWIN=(5, 2))
    states.decide(Choice(APART, TWIN))
    observe(states, 1, APART=(-0.1, 2))
    assert states.used == {TWIN}


# --- profiling again


def test_only_a_cache_that_hides_another_is_profiled_again() -> None:
    """streamon #33: after the interval and not before; APART hides nothing and goes on."""
    states = started(OUTER, APART)
    assert not states.tick(1.99)
    assert states.states == {OUTER: USED, INNER: UNUSED, APART: USED}
    assert states.tick(2.0)
    assert states.states == {OUTER: PROFILED, INNER: PROFILED, APART: USED}
    assert not states.tick(3.9)


def test_a_cache_within_an_unused_one_goes_on() -> None:
    states = started(INNER)
    states.tick(2.0)
    assert states.states == {OUTER: PROFILED, INNER: USED, APART: PROFILED}


def test_observations_begin_anew_with_each_interval() -> None:
    states = started(OUTER, APART)
    states.tick(2.0)
    observe(states, 9, OUTER=(10, 4), INNER=(10, 4))
    assert not states.ready()
    observe(states, 1, OUTER=(10, 4), INNER=(10, 4))
    assert states.ready()


def test_the_interval_may_be_any_unit() -> None:
    """streamon #33: tuples as well as seconds."""
    states = CacheStates([OUTER], needed=1, interval=10_000)
    states.tick(500)
    observe(states, 1, OUTER=(1, 2))
    states.decide(Choice())
    assert not states.tick(10_499)
    assert states.tick(10_500)


def test_what_is_observed_of_others_is_ignored() -> None:
    """Tasks may still report of caches that were dropped or are candidates no more."""
    states = started(OUTER, found=(OUTER, INNER))
    states.observed(INNER, 99, 0)
    states.observed(APART, 99, 0)
    assert states.states == {OUTER: USED, INNER: UNUSED}
    assert not states.moved()


# --- 34: reordering


def test_caches_of_changed_pipelines_are_dropped() -> None:
    """streamon #34: even if they are candidates in the new order too; the others stay in use."""
    states = started(OUTER, APART)
    states.reordered([OUTER, INNER, APART], changed=[4])
    assert states.states == {OUTER: PROFILED, INNER: PROFILED, APART: USED}
    gone = [t.segment for t in states.transitions if t.after is None]
    assert set(gone) == {OUTER, INNER}


def test_a_reordering_elsewhere_may_end_a_cache() -> None:
    """streamon #34: when 5 no longer meets 4 first, {4,5} is no candidate in any pipeline."""
    pipelines: Pipelines = {**GOLDEN, 5: (2, 4, 3, 1, 6)}
    before, after = candidates(GOLDEN, one_column), candidates(pipelines, one_column)
    states = started(*(s for s in before if len(s.leaves) == 2), found=before)
    assert APART in states.used
    states.reordered(after, changed=[5])
    assert set(states.states) == set(after)
    assert all(is_prefix_set(pipelines, s.leaves) for s in states.used)
    assert {s.leaves for s in states.used} == {frozenset({1, 2})}


def test_new_candidates_call_for_a_choice() -> None:
    """streamon #34: no figures have moved, but of the new ones none are known."""
    states = started(APART, found=(APART, TWIN))
    states.reordered([APART, TWIN, OUTER], changed=[4])
    assert not states.ready()
    observe(states, OUTER=(10, 4), TWIN=(10, 4))
    assert states.decide(Choice(OUTER, APART))
    assert states.used == {OUTER, APART}


def test_a_reordering_without_new_candidates_is_no_reason_to_choose() -> None:
    states = started(APART, found=(APART, OUTER))
    states.reordered([APART], changed=[4])
    assert states.states == {APART: USED}
    assert not states.ready()
    assert not states.moved()


# --- whatever happens


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.lists(st.sampled_from("oootdr"), max_size=60))
def test_only_legal_changes(seed: int, steps: list[str]) -> None:
    """streamon #33, streamon #34: observations, intervals, choices and reorderings in any order
    make legal changes only; what is used can be used together, is prefix-valid, and pays by the
    last observations."""
    rng = Random(seed)
    pipelines = random_pipelines(rng, 5)
    states = CacheStates(candidates(pipelines, one_column), needed=2)
    now = 0.0
    for step in steps:
        e = random_estimates(rng, pipelines, states.states)
        if step == "o":
            for s in list(states.states):
                states.observed(s, benefit(s, e), upkeep(s, e))
            groups = {
                s.shared: [t for t in states.used if t.shared == s.shared] for s in states.used
            }
            assert all(net_benefit(users, e) >= 0 for users in groups.values())
        elif step == "t":
            states.tick(now := now + rng.choice([0.5, 2.0]))
        elif step == "d":
            states.decide(lambda found, e=e: select(found, e))  # type: ignore[misc]
        else:
            leaf = rng.randrange(5)
            order = tuple(rng.sample(pipelines[leaf], 4))
            pipelines = {**pipelines, leaf: order}
            states.reordered(candidates(pipelines, one_column), changed=[leaf])
        assert compatible(states.used, pipelines)
        assert all(is_prefix_set(pipelines, s.leaves) for s in states.used)
        assert set(states.states) == set(candidates(pipelines, one_column))
    _check_history(states)


def _check_history(states: CacheStates) -> None:
    """Each change is legal, begins where the one before it ended, and all lead to what is."""
    at: dict[Segment, State | None] = {}
    for change in states.transitions:
        assert (change.before, change.after) in LEGAL
        assert at.get(change.segment) is change.before
        assert change.why
        at[change.segment] = change.after
    assert {s: state for s, state in at.items() if state} == states.states
