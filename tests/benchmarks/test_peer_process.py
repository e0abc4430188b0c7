"""Runs of peers that end early: what they finished counts, or the run is refused."""

from __future__ import annotations

import sys

import pytest

from common.peer_process import PeerError, PeerResult, run_child

FAILING = """
import json, sys
for rows in (3, 4)[: json.loads(sys.argv[1])["batches"]]:
    print(json.dumps({"batch_ms": 10, "rows_out": rows, "detail": {"state_bytes": 100 * rows}}))
raise MemoryError("no room")
"""


def child(batches: int, tolerant: bool) -> PeerResult:
    command = [sys.executable, "-c", FAILING]
    return run_child(
        PeerResult("peer"), command, {"batches": batches}, budget_s=20, batch_budget_s=20,
        tolerant=tolerant,
    )  # fmt: skip


def test_batches_before_a_failure_count_if_that_is_wanted() -> None:
    result = child(batches=2, tolerant=True)
    assert (result.label, result.rows_out, len(result.batch_ms)) == ("peer (partial)", 7, 2)
    assert result.detail["state_bytes"] == 400
    assert "no room" in result.detail["failed"]


@pytest.mark.parametrize(("batches", "tolerant"), [(2, False), (0, True)])
def test_other_failures_are_raised(batches: int, tolerant: bool) -> None:
    with pytest.raises(PeerError, match="no room"):
        child(batches, tolerant)
