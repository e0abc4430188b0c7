"""Paths that an earlier version wrote are opened, and their queries go on with identical rows."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from earlier_path import STOP_AFTER, end, now, opened, part

from thalweg.testing import Runner

PATHS = sorted(Path(__file__).parent.glob("paths/*.zip"))


def _resumed(path: str) -> Runner:
    runner = opened(path)
    runner.resume()
    return runner


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture(params=PATHS, ids=lambda p: p.stem)
def earlier(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with zipfile.ZipFile(request.param) as archive:
        archive.extractall(tmp_path)
    return tmp_path


def _expected(earlier: Path) -> dict[str, pa.Table]:
    files = Path(earlier, "expected").glob("*.arrow")
    return {f.stem: pa.ipc.open_file(io.BytesIO(f.read_bytes())).read_all() for f in files}


def _check(found: dict[str, pa.Table], earlier: Path) -> None:
    expected = _expected(earlier)
    for name in found:
        table = expected[name]
        assert found[name].schema == table.schema, name
        assert _rows(found[name]) == _rows(table), name
        assert table.num_rows, name


def test_queries_of_an_earlier_version_go_on_with_identical_rows(earlier: Path) -> None:
    _check(end(_resumed(str(earlier / "path"))), earlier)


def test_what_this_version_adds_to_an_earlier_path_is_read_again(earlier: Path) -> None:
    path = str(earlier / "path")
    runner = _resumed(path)
    for epoch in (STOP_AFTER, STOP_AFTER + 1):
        runner.feed(part(epoch))
    _check(end(_resumed(path), STOP_AFTER + 2), earlier)


def test_queries_of_an_earlier_version_answer_at_once(earlier: Path) -> None:
    _check(now(_resumed(str(earlier / "path"))), earlier)
