"""Packs have numbers only where rows are kept by reference."""

from __future__ import annotations

from typing import Any

from summing import SUMS, rows, runner


def test_packs_are_numbered_only_for_references() -> None:
    """Numbers are kept for ever: an engine that runs for long must not number every pack."""
    made = runner()
    made.query(SUMS, "q")
    for step in range(5):
        made.feed({"s": rows(10 * step, 10 * step + 10)})
    executor: Any = made.core.runner.executor
    assert executor.cache._names == []
