"""INVOKE waits for the epochs of an engine that runs, and makes them itself only if none does."""

from __future__ import annotations

from types import SimpleNamespace

from summing import SUMS, epoch, rows, runner


def test_waiting_for_an_engine_that_stops_runs_no_epoch() -> None:
    """Whoever waits in INVOKE must not go on by itself: others may use the engine by then."""
    made = runner(slice_rows=5)
    made.query("SELECT ISTREAM k FROM s", "live")
    made.feed({"s": rows(0, 100)})
    made.query(SUMS, "late")
    made.core.coordinator.save(0)
    assert made.core.readiness.is_behind("late")
    changes, before = made.core.changes, epoch(made)
    asked: list[bool] = []

    def stops_after_three() -> bool:
        asked.append(True)
        if len(asked) == 3:
            changes.driver = None
        return changes.is_running

    changes.driver = SimpleNamespace(between_epochs=lambda action: action())  # type: ignore[assignment]
    changes.wait = stops_after_three  # type: ignore[method-assign]
    made.core.readiness.catch_up("late")
    assert len(asked) == 3
    assert epoch(made) == before
    made.core.readiness.catch_up("late")
    assert not made.core.readiness.is_behind("late")
