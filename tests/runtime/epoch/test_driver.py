"""When the loop makes an epoch, and how long it waits for rows."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from epoch_loops import looping

from thalweg.runtime.epoch.listeners import Listeners


def ticks(seconds: Sequence[float], tick: float) -> int:
    """How often time is asked to pass, at these readings of a monotonic clock."""
    loop, _ = looping(Listeners(), poll_seconds=0.0, tick_seconds=tick)
    asked = []
    loop._coordinator.epoch = lambda entries, **how: asked.append(1)  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        readings = iter(seconds)
        patch.setattr("thalweg.runtime.epoch.driver.time.monotonic", lambda: next(readings))
        for _ in seconds:
            loop._once()
    return len(asked)


def test_ticks_come_as_set() -> None:
    readings = [100 + i / 4 for i in range(9)]  # two seconds
    assert ticks(readings, tick=0.5) == 5
    assert ticks(readings, tick=2.0) == 2


def test_the_loop_waits_as_set(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, log = looping(Listeners(), poll_seconds=0.007)
    waited: list[float] = []
    monkeypatch.setattr(log, "take", lambda timeout: waited.append(timeout) or [])
    loop._last_tick = time.monotonic()
    loop._once()
    assert waited == [0.007]
