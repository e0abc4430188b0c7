"""A path that tests of `state` and `vacuum` look at."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_path import DAY, SECOND, Driver


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three days of results, none of them recent, and the engine gone."""
    driver = Driver(tmp_path / "path")
    for day in range(3):
        driver.batch(10 * day, clock=day * DAY + SECOND)
    driver.end()
    return tmp_path / "path"
