"""Without an engine, requests are checked before they are written down."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_path import DAY, Driver

import thalweg as tw
from thalweg.errors import ThalwegError, UnknownName
from thalweg.store import control


@pytest.fixture
def path(tmp_path: Path) -> Path:
    driver = Driver(tmp_path / "path")
    driver.batch(0, clock=DAY)
    driver.end()
    return tmp_path / "path"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT nope FROM nowhere",
        "CREATE QUERY z AS SELECT k FROM b",
        "CREATE QUERY z AS SELECT j FROM a",
        "CREATE QUERY each AS SELECT x FROM a",
        "PAUSE nosuch",
        "DROP QUERY nosuch",
        "DROP TABLE nosuch",
        "DROP VIEW nosuch",
        "ALTER QUERY each SET (filters = 'nonsense')",
        "ALTER QUERY nosuch SET (filters = 'auto')",
        "CREATE STREAM w (x INT) TIMESTAMP BY ARRIVAL FROM FILES '/nowhere' FORMAT csv",
        "CREATE TABLE t FROM FILES '/nowhere' FORMAT csv",
    ],
)
def test_without_an_engine_a_statement_is_checked_before_it_is_written_down(
    path: Path, statement: str
) -> None:
    client = tw.connect(path)
    with pytest.raises(ThalwegError):
        client.sql(statement)
    assert list(control.waiting(client.storage)) == []


def test_what_waits_is_known_to_what_is_checked_after_it(path: Path) -> None:
    client = tw.connect(path)
    client.sql("CREATE QUERY more AS SELECT k FROM a WHERE x > 1")
    client.sql("PAUSE more")
    with pytest.raises(UnknownName):
        client.sql("PAUSE moore")
    assert [r.script for r in control.waiting(client.storage)][1:] == ["PAUSE more"]
