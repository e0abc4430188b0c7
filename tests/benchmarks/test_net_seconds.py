"""What is left of our run without reading, which is compared with Flink's run minus read."""

from __future__ import annotations

import pytest

from common.peer_process import PeerResult
from joins.thalweg_join import net_s


def ran(warm_ms: float) -> PeerResult:
    return PeerResult("any", batch_ms=[900.0, 900.0, warm_ms, warm_ms])


def test_reading_is_taken_off_every_batch() -> None:
    assert net_s(ran(500), ran(200)) == pytest.approx(4 * 0.3)


def test_a_floor_slower_than_we_are_is_no_measurement() -> None:
    assert net_s(ran(200), ran(200)) is None
    assert net_s(ran(200), PeerResult("cold", batch_ms=[100.0])) is None
