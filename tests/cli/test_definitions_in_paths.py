"""Definitions that live in a path: streams and tables with a source resume, streams are dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_path import DAY, Driver

from thalweg.store import control


@pytest.fixture
def path(tmp_path: Path) -> Path:
    driver = Driver(tmp_path / "path")
    driver.batch(0, clock=DAY)
    driver.end()
    return tmp_path / "path"


def test_streams_and_tables_with_a_source_resume_by_themselves(tmp_path: Path) -> None:
    first = Driver(tmp_path / "path")
    first.session.sql(
        f"CREATE STREAM b (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts LATENESS 1 SECOND "
        f"FROM FILES '{tmp_path}/b' FORMAT parquet OPTIONS (max_files_per_trigger = 3);"
        "CREATE QUERY of_b AS SELECT k FROM b"
    )
    first.batch(0, clock=DAY)
    made = first.session.catalog.streams["b"]
    first.end()
    second = Driver(tmp_path / "path")
    try:
        assert second.session.catalog.streams["b"] == made
        second.session.resume()
        assert "of_b" in second.session.queries
    finally:
        second.end()


def test_a_stream_is_dropped_for_another_process(path: Path) -> None:
    driver = Driver(path)
    try:
        driver.session.sql(
            "CREATE STREAM b (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts FROM FILES 'b'"
        )
        driver.core.changes.driver = driver.loop  # as while it runs
        request = control.submit(driver.storage, "DROP STREAM b")
        driver.loop._control.look(now=True)
        driver.core.coordinator.epoch([], clock=2 * DAY)
        driver.loop._control.look(now=True)
        assert control.answered(driver.storage, request.name) == {}
        assert "b" not in driver.session.catalog.streams
    finally:
        driver.end()
