"""Our run against Flink's: what is left without reading against run minus read, and whole runs."""

from __future__ import annotations

import pytest

from common.peer_process import PeerResult
from joins.thalweg_join import net_s, whole_runs


def ran(warm_ms: float) -> PeerResult:
    return PeerResult("any", batch_ms=[900.0, 900.0, warm_ms, warm_ms])


def test_reading_is_taken_off_every_batch() -> None:
    assert net_s(ran(500), ran(200)) == pytest.approx(4 * 0.3)


def test_a_floor_slower_than_we_are_is_no_measurement() -> None:
    assert net_s(ran(200), ran(200)) is None
    assert net_s(ran(200), PeerResult("cold", batch_ms=[100.0])) is None


def test_whole_runs_are_compared_only_if_both_ended() -> None:
    ours, flink = PeerResult("any", total_s=20.0), PeerResult("flink", total_s=70.0)
    assert whole_runs(ours, flink) == 3.5
    assert whole_runs(ours, PeerResult("flink", total_s=70.0, partial=True)) is None
    assert whole_runs(ours, PeerResult("flink", skipped="not here")) is None
