"""INTO, callbacks and the current answer: what leaves the engine, and when."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest

from thalweg.errors import BindError, ConfigError
from thalweg.store.leases import Lease, release, renew
from thalweg.testing import Runner

UTC = pa.timestamp("us", "UTC")
STREAM = pa.table(
    {
        "k": pa.array([1, 2, 1, 3, 2, 1, None, 3], pa.int64()),
        "x": pa.array([0.5, 1.5, None, 2.5, 3.5, 4.5, 5.5, 6.5]),
        "ts": pa.array([1, 2, 3, 4, 6, 8, 9, 12], UTC),
    }
)
RELATION = "SELECT k, count(*) AS n FROM s [RANGE 3 MICROSECONDS] GROUP BY k"


def runner_over(epochs: int = 4, **options: Any) -> Runner:
    runner = Runner(epochs=epochs, **options)
    runner.stream("s", STREAM)
    return runner


def bag(table: pa.Table) -> Counter[str]:
    return Counter(repr(r) for r in table.to_pylist())


def summed(table: pa.Table, last: int | None = None) -> Counter[tuple[Any, ...]]:
    """A relation's changes added up by hand."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table.to_pylist():
        if last is None or row["__ts"].microsecond <= last:
            found[row["k"], row["n"]] += row["__sign"]
    return Counter({k: n for k, n in found.items() if n})


@pytest.mark.parametrize("form", ["parquet", "csv", "json", "arrow"])
def test_files_hold_every_row_once(tmp_path: Path, form: str) -> None:
    runner = runner_over()
    query = runner.query(f"SELECT k, x FROM s WHERE k > 0 INTO FILES '{tmp_path}' FORMAT {form}")
    runner.run()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 5  # four epochs and the close
    assert all(f.name.endswith(form) for f in files)
    read = {
        "parquet": pq.read_table,
        "csv": pyarrow.csv.read_csv,
        "json": pyarrow.json.read_json,
        "arrow": lambda f: pa.ipc.open_file(pa.memory_map(str(f))).read_all(),
    }[form]
    rows = pa.concat_tables([read(f).select(["k", "x"]) for f in files])
    assert bag(rows) == bag(query.results().select(["k", "x"]))


def test_a_crash_between_writing_and_marking_writes_the_same_file(tmp_path: Path) -> None:
    runner = runner_over(epochs=3, restarts=(1, 2))
    query = runner.query(f"SELECT k FROM s INTO FILES '{tmp_path}'", name="q")
    marks = []
    for i in range(3):
        runner.feed({"s": STREAM.slice(i * 3, 3)})
        marks.append(runner.core.state.queries["q"].progress.delivered)
        runner.core.state.queries["q"].progress.delivered = 0  # as if never marked
        runner.core.delivery.deliver(insist=True)
    runner.close()
    rows = pa.concat_tables([pq.read_table(f) for f in sorted(tmp_path.iterdir())])
    assert bag(rows.select(["k"])) == bag(query.results().select(["k"]))


def test_two_engines_may_write_to_one_folder(tmp_path: Path) -> None:
    for _ in range(2):
        runner = runner_over(epochs=1)
        runner.query(f"SELECT k FROM s INTO FILES '{tmp_path}'", name="q")
        runner.run()
    names = [f.name for f in tmp_path.iterdir()]
    assert len({n.split("-")[1] for n in names}) == 2
    assert len(names) == 4


def test_a_changelog_has_signs_and_a_table_the_answer(tmp_path: Path) -> None:
    runner = runner_over()
    runner.query(f"{RELATION} INTO CHANGELOG '{tmp_path / 'log'}'", name="log")
    query = runner.query(f"{RELATION} INTO TABLE '{tmp_path / 'now'}' FORMAT parquet", name="now")
    seen = []
    for i in range(4):
        runner.feed({"s": STREAM.slice(i * 2, 2)})
        (only,) = (tmp_path / "now").iterdir()
        now = Counter((r["k"], r["n"]) for r in pq.read_table(only).to_pylist())
        assert now == summed(query.results())
        seen.append(now)
        if i == 1:
            runner.restart()
    assert len({repr(sorted(s.items(), key=repr)) for s in seen}) > 2
    log = pa.concat_tables([pq.read_table(f) for f in sorted((tmp_path / "log").iterdir())])
    assert bag(log) == bag(query.results())


def test_the_console_prints_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    runner = runner_over(epochs=1)
    runner.query(f"{RELATION} INTO CONSOLE", name="c")
    runner.run()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("c  1970-01-01 00:00:00.000001+00:00  + k=1  n=1")
    assert any("  - k=" in line for line in lines)


def test_a_sink_that_fails_is_tried_again_and_harms_nobody(caplog: Any) -> None:
    runner = runner_over()
    got: list[int] = []
    broken = [True]

    def flaky(output: pa.Table) -> None:
        if broken[0]:
            raise RuntimeError("the other side is down")
        got.extend(output.column("x").to_pylist())

    flaky_query = runner.query("SELECT x FROM s", name="flaky", callback=flaky)
    steady: list[int] = []
    runner.query("SELECT k FROM s", callback=lambda t: steady.extend(t.column("k").to_pylist()))
    for i in range(4):
        broken[0] = i < 2
        runner.feed({"s": STREAM.slice(i * 2, 2)})
    runner.close()
    assert got == flaky_query.results().column("x").to_pylist()
    assert len(steady) == 8
    assert sum("the other side is down" in r.message for r in caplog.records) == 1


@pytest.mark.parametrize("epochs", [1, 4, 8])
def test_invoke_is_the_sum_of_all_changes(epochs: int) -> None:
    """priorart Q2: the answer after every batch, and at every instant before."""
    runner = runner_over(epochs)
    query = runner.query(RELATION)
    runner.run()
    now = Counter((r["k"], r["n"]) for r in query.invoke().to_pylist())
    assert now == summed(query.results())
    for at in range(13):
        then = Counter((r["k"], r["n"]) for r in query.invoke(at).to_pylist())
        alive = [r for r in STREAM.to_pylist() if at - 3 <= r["ts"].microsecond <= at]
        assert then == Counter(Counter(r["k"] for r in alive).items())
    shown = runner.sql(f"INVOKE {query.name} AT TIMESTAMP '1970-01-01 00:00:00.000004'")
    assert sorted(shown.to_pylist(), key=repr) == sorted(query.invoke(4).to_pylist(), key=repr)


def test_old_results_are_folded_into_the_answer() -> None:
    runner = runner_over()
    query = runner.query(RELATION, name="q")
    core = runner.core
    core.settings.results_retain = 5
    for i in range(40):
        runner._clock = i
        rows = pa.table({"k": [i % 3], "x": [1.0], "ts": pa.array([i], UTC)}, STREAM.schema)
        runner.feed({"s": rows})
    assert len(core.state.outputs) < 30
    assert core.state.queries["q"].output.base
    runner.restart()
    now = Counter((r["k"], r["n"]) for r in query.invoke().to_pylist())
    assert now == Counter(Counter(i % 3 for i in range(35, 39)).items())
    with pytest.raises(ConfigError, match="no longer known"):
        query.invoke(3)


def test_followers_hold_results_back() -> None:
    runner = runner_over()
    runner.query("SELECT k FROM s", name="q")
    core = runner.core
    core.settings.results_retain = 2
    renew(runner.storage, Lease("f", "q", 3, 4e9))
    for i in range(12):
        runner._clock = i
        rows = pa.table({"k": [i], "x": [1.0], "ts": pa.array([i], UTC)}, STREAM.schema)
        runner.feed({"s": rows})
    kept = sorted(int(k.split("/")[1]) for k in core.state.outputs)
    assert kept[0] == 4
    release(runner.storage, "f")
    runner.feed({"s": pa.table({"k": [1], "x": [1.0], "ts": pa.array([99], UTC)}, STREAM.schema)})
    assert min(int(k.split("/")[1]) for k in core.state.outputs) > 6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT ISTREAM k FROM s [NOW] INTO TABLE 'x'", "takes a relation"),
        ("SELECT k FROM s INTO FILES 'x' FORMAT xml", "cannot write xml"),
        ("SELECT k FROM s INTO SPARK 'delta'", "needs an Engine"),
        ("SELECT a.k FROM (SELECT k FROM s INTO CONSOLE) a", "about a whole query"),
    ],
)
def test_what_cannot_be_written_is_refused_first(text: str, message: str) -> None:
    with pytest.raises(BindError, match=message):
        runner_over().query(text)


def test_an_istream_has_no_current_answer() -> None:
    runner = runner_over()
    query = runner.query("SELECT k FROM s")
    runner.run()
    with pytest.raises(ConfigError, match="no current answer"):
        query.invoke()


def test_explain_says_what_a_sink_guarantees(tmp_path: Path) -> None:
    runner = runner_over()
    query = runner.query(f"SELECT k FROM s INTO FILES '{tmp_path}'")
    assert "exactly once" in query.explain()
