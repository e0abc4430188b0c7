"""`thalweg sql`: what comes back is shown whole, and nothing is shown as nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.cli import main, rows
from thalweg.store.storage import open_storage
from thalweg.testing.runner import Runner

SQL = "SELECT a, b FROM s WHERE a > 0 AND b > 0 AND a + b < 1000000"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A path whose engine is gone."""
    runner = Runner(storage=open_storage(str(tmp_path / "path")))
    ts = pa.array(range(9), pa.timestamp("us", "UTC"))
    runner.stream("s", pa.table({"a": list(range(9)), "b": list(range(9)), "ts": ts}))
    runner.query(SQL, "q")
    runner.run()
    runner.close()
    return str(tmp_path / "path")


def test_a_plan_is_shown_whole(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", path, "SHOW PLANS q"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "ISTREAM (a BIGINT, b BIGINT)"
    assert any(line.startswith("state: bounded") for line in shown)


def test_nothing_is_shown_as_none(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sql", path, "SHOW VIEWS"]) == 0
    assert capsys.readouterr().out == "none\n"


def test_what_was_learned_elsewhere_is_not_denied(
    path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The query has three predicates that adapt: it would be wrong to say that nothing does."""
    assert main(["sql", path, "EXPLAIN ADAPT q"]) == 0
    shown = capsys.readouterr().out
    assert "adaptive: not known here" in shown


@pytest.mark.parametrize(("count", "told"), [(1, "q (1 row)"), (2, "q (2 rows)")])
def test_rows_are_counted_in_words(count: int, told: str) -> None:
    assert rows.result_table("q", pa.table({"a": [0] * count}), 9).title == told
