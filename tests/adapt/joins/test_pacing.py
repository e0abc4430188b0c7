"""When a join looks at its caches again: at first, after a surprise, and as profiling pays."""

from __future__ import annotations

import pytest

from thalweg.adapt.constants import RATE_EPOCHS, RATE_ROWS, URGENT_EPOCHS, URGENT_PAUSE
from thalweg.adapt.joins.pacing import Pace
from thalweg.exec.tactics import JoinSeen

SETTLED = URGENT_EPOCHS + URGENT_PAUSE


def epoch(rows: int, seconds: float = 1.0, profiling: float = 0.0) -> list[JoinSeen]:
    """Two tasks, rows of two streams in each."""
    halves = {0: rows // 2, 1: 500}
    return [JoinSeen(seconds / 2, profiling / 2, dict(halves)) for _ in range(2)]


def calm(rows: int = 1_000, timed: bool = True, epochs: int = SETTLED) -> Pace:
    """Caches were chosen, and nothing has changed since."""
    pace = Pace(timed)
    for _ in range(epochs):
        pace.saw(epoch(rows))
        pace.chosen()
    return pace


def values(pace: Pace) -> tuple[float, float] | None:
    if pace.surprise is None:
        return None
    then, now = pace.surprise
    return then.value, now.value


@pytest.mark.parametrize("rows", [2_100, 20_000, 480, 0])
def test_a_stream_that_gets_much_faster_or_slower(rows: int) -> None:
    """By more than twice, for two epochs: told with what it was and what it is."""
    pace = calm()
    for _ in range(RATE_EPOCHS):
        assert pace.surprise is None
        pace.saw(epoch(rows))
    assert values(pace) == (1_000, rows)


@pytest.mark.parametrize("rows", [1_000, 1_950, 520])
def test_what_is_about_the_same_is_no_surprise(rows: int) -> None:
    pace = calm()
    for _ in range(9):
        pace.saw(epoch(rows))
        assert pace.surprise is None


def test_few_rows_are_no_surprise() -> None:
    pace = calm(rows=2)
    for _ in range(9):
        pace.saw(epoch(RATE_ROWS))
        assert pace.surprise is None
    for _ in range(RATE_EPOCHS):
        pace.saw(epoch(RATE_ROWS + 2))
    assert values(pace) == (2, RATE_ROWS + 2)


def test_one_odd_epoch_is_no_surprise() -> None:
    pace = calm()
    for _ in range(5):
        pace.saw(epoch(9_000))
        assert pace.surprise is None
        pace.saw(epoch(1_000))
        assert pace.surprise is None


def test_a_join_that_takes_much_longer() -> None:
    """Unless profiling is what takes so long, or its caches have just changed, or is not timed."""
    for timed, how, surprised in (
        (True, {"seconds": 2.1}, True),
        (True, {"seconds": 1.9}, False),
        (True, {"seconds": 9.0, "profiling": 8.0}, False),
        (False, {"seconds": 9.0}, False),
    ):
        pace = calm(timed=timed)
        for _ in range(RATE_EPOCHS):
            pace.saw(epoch(1_000, **how))
        assert (pace.surprise is not None) == surprised, how
    pace = calm()
    for _ in range(RATE_EPOCHS):
        pace.saw(epoch(1_000, 9.0), on_trial=True)
    assert pace.surprise is None


def test_the_largest_change_is_told() -> None:
    pace = calm()
    for _ in range(RATE_EPOCHS):
        pace.saw(epoch(3_000, seconds=5.0))
    assert values(pace) == (1.0, 5.0)


def test_nothing_surprises_before_caches_were_chosen() -> None:
    pace = Pace(timed=True)
    for number in range(9):
        pace.saw(epoch(1_000 << number))
        assert pace.surprise is None


def test_after_a_surprise_the_next_has_to_wait() -> None:
    """So many epochs are urgent, and as many as the pause take no notice."""
    pace = calm()
    for _ in range(RATE_EPOCHS):
        pace.saw(epoch(4_000))
    assert pace.surprise is not None
    pace.hurry()
    quiet = 0
    while pace.surprise is None:
        pace.saw(epoch(40_000))
        quiet += 1
    assert quiet == SETTLED


def test_profiling_is_unlimited_while_it_is_urgent_and_budgeted_afterwards() -> None:
    pace = Pace(timed=True)
    for _ in range(URGENT_EPOCHS):
        assert pace.can_afford
        pace.saw(epoch(1_000, seconds=1.0, profiling=0.9))
    pace.saw(epoch(1_000, seconds=1.0, profiling=0.2))
    assert not pace.can_afford
    waited = 0
    while not pace.can_afford:
        pace.saw(epoch(1_000))
        waited += 1
    assert 10 < waited < 40, "0.2 s are a hundredth of 20 s"
    pace.saw(epoch(1_000, seconds=1.0, profiling=0.9))
    assert not pace.can_afford
    pace.hurry()
    assert pace.can_afford


def test_operations_that_are_counted_cost_no_time() -> None:
    pace = calm(timed=False)
    pace.saw(epoch(1_000, seconds=1.0, profiling=1.0))
    assert pace.can_afford
