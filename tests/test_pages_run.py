"""The guide and the language page run as they are printed, top to bottom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thalweg as tw
from run_page import LEFT_OUT, Block, PageRun, blocks_of, compare, left_out, shell
from thalweg.statements import parse

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
NOON = 1_767_268_800  # 2026-01-01 12:00
SYMS = ["AAA", "BBB", "CCC", "AAA", "BBB", "AAA", "AAA"]


@pytest.mark.spark
@pytest.mark.skipif(os.name == "nt", reason="the shell of the page is Unix's")
def test_the_guide_runs_as_printed(tmp_path: Path) -> None:
    """In an empty folder and a process of its own, as its reader does."""
    settings = {k: v for k, v in os.environ.items() if not k.startswith("THALWEG_")}
    done = subprocess.run(
        [sys.executable, str(TESTS / "run_page.py"), str(DOCS / "guide.md")],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "blocks of" in done.stdout


def test_the_page_of_bounds_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = PageRun({"__name__": "__main__"})
    run.run((DOCS / "bounds.md").read_text("utf-8"))
    assert run.count > 10


@pytest.mark.parametrize("page", ["models.md"])
def test_pages_without_spark_run_as_printed(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an empty folder; all that they need is installed with Thalweg."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRACKS", raising=False)
    run = PageRun({"__name__": "__main__"})
    run.run((DOCS / page).read_text("utf-8"))
    assert run.count > 40
    pictures = sorted(DOCS.glob("images/models_*.svg"))
    assert len(pictures) == len(sorted(tmp_path.glob("*.svg")))
    for picture in pictures:  # docs/make_models_pictures.py
        made = tmp_path / picture.name.removeprefix("models_")
        compare(picture.read_text("utf-8"), made.read_text("utf-8"), like=True)


def _write_files(folder: Path) -> None:
    """The files that the language page reads; half of the rows lie before noon."""
    seconds = [NOON + 4 * (i - 3) for i in range(len(SYMS))]
    ts = pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us", "UTC"))
    prices = [120.0, 90.0, 11.25, 101.5, 99.0, 300.0, 310.0]
    trades = {"sym": SYMS, "price": prices, "qty": [90, 5, 0, 40, 7, 3, 2], "ts": ts}
    cars = {"id": ["AAA", "BBB"], "x": [0.0, 90.0], "y": [0.0, 1.0], "v": [9.0, 2.0], "ts": ts[:2]}
    for name in ("trades", "quotes", "regions", "cars"):
        (folder / name).mkdir(parents=True)
    pq.write_table(pa.table(trades), folder / "trades" / "1.parquet")
    pq.write_table(pa.table(cars), folder / "cars" / "1.parquet")
    pq.write_table(pa.table({"region": ["north"]}), folder / "regions" / "1.parquet")
    (folder / "companies.csv").write_text("sym,sector\nAAA,tech\nBBB,food\n")
    stamps = [f"2026-01-01T{s // 3600 % 24:02}:{s // 60 % 60:02}:{s % 60:02}Z" for s in seconds]
    quotes = [
        {"sym": s, "bid": i, "ts": t} for i, (s, t) in enumerate(zip(SYMS, stamps, strict=True))
    ]
    (folder / "quotes" / "1.json").write_text("\n".join(map(json.dumps, quotes)))


@pytest.mark.spark
def test_the_language_page_runs_as_printed(spark: Any, tmp_path: Path) -> None:
    """All statements in one engine; its streams are read before an answer is asked for."""
    _write_files(tmp_path / "data")
    with tw.Engine(spark, tmp_path / "path", parallelism=2) as engine:

        def prepare(statement: str) -> str:
            if statement.startswith("INVOKE") and "AT" not in statement:
                engine.run()
            return statement.replace("'data/", f"'{tmp_path}/data/")

        run = PageRun({"engine": engine}, prepare)
        for block in blocks_of((DOCS / "language.md").read_text("utf-8")):
            if block.kind == "sql":
                run.block(block)
        engine.run()
        assert run.count > 15
        assert {q.status for q in engine.queries.values()} == {"running"}
        assert {"active", "q1"} <= engine.queries.keys()
        assert engine.queries["active"].invoke().num_rows == 2  # AAA and BBB


def test_what_is_not_run_is_on_a_page() -> None:
    """The table of exceptions has no entry that nothing needs, and each has its reason."""
    blocks = [b for page in ("guide.md", "language.md", "models.md") for b in _blocks(page)]
    for what, why in LEFT_OUT.items():
        assert why
        assert any(what in b.text for b in blocks), f"{what} is on no page"
    for block in blocks:
        if block.kind == "sql":
            assert parse(block.text)


def _blocks(page: str) -> list[Block]:
    return list(blocks_of((DOCS / page).read_text("utf-8")))


# -- the runner itself can fail ----------------------------------------------------------------


def test_output_is_compared() -> None:
    run = PageRun()
    run.run("```python\nprint('12 rows in 3 ms')\n```\n\n```output\n12 rows in 3 ms\n```\n")
    run.run(
        "```python\nprint('a\\n5 rows in 7 µs')\n```\n```output like\n...\n12 rows in 3 ms\n```\n"
    )
    with pytest.raises(AssertionError):
        run.run("```python\nprint('12 rows')\n```\n\n```output\n13 rows\n```\n")
    with pytest.raises(AssertionError, match="like any line"):
        compare("12 lines", "12 rows", like=True)


def test_blocks_share_names_and_say_where_they_fail() -> None:
    run = PageRun()
    with pytest.raises(NameError) as caught:
        run.run("# Page\n\n```python\nx = 1\n```\n\n```python\nprint(x, y)\n```\n")
    assert "line 7" in caught.value.__notes__[0]


def test_commands_must_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = PageRun()
    run.run("```sql\n-- here.sql\nSELECT 1\n```\n\n```sh\ncat here.sql   # as it is\n```\n")
    assert run.printed == "-- here.sql\nSELECT 1\n"
    with pytest.raises(AssertionError, match="No such file"):
        shell("cat there.sql")
    assert left_out("make demo")
    assert shell("make demo") == ""
