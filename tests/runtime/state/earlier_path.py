"""A small path as an earlier version left it, and how its queries go on.

`python tests/runtime/state/earlier_path.py OUT.zip` writes one with the version that is installed:
half of the input is taken in, everything is committed, and the results of a run that never stopped
are put beside it. `test_earlier_paths.py` opens it with the version of today.
"""

from __future__ import annotations

import datetime as dt
import sys
import tempfile
import zipfile
from pathlib import Path

import pyarrow as pa

from thalweg.store.storage import open_storage
from thalweg.testing import Runner

EPOCHS, STOP_AFTER = 14, 7
ROWS = 12
SCRIPT = """
CREATE VIEW large AS SELECT ISTREAM k, v, ts FROM s WHERE v > 20;
CREATE VIEW kept RETAIN 1 HOUR AS SELECT ISTREAM k, v * 2 AS w FROM s WHERE v > 10;
CREATE QUERY time_window AS SELECT k, avg(v) AS mean, count(*) AS n FROM s [RANGE 10 SECONDS]
  GROUP BY k;
CREATE QUERY slides AS SELECT RSTREAM k, sum(v) AS t FROM s [RANGE 8 SECONDS SLIDE 4 SECONDS]
  GROUP BY k;
CREATE QUERY rows_5 AS SELECT sum(v) AS t FROM s [ROWS 5];
CREATE QUERY rows_7 AS SELECT k, v FROM s [ROWS 7] WHERE v > 5;
CREATE QUERY rows_by_key AS SELECT k, max(v) AS m FROM s [PARTITION BY k ROWS 3] GROUP BY k;
CREATE QUERY sessions AS SELECT k, count(*) AS n FROM s [PARTITION BY k SESSION GAP 4 SECONDS]
  GROUP BY k;
CREATE QUERY joined AS SELECT a.k, a.v, b.u FROM s [RANGE 6 SECONDS] a, r [RANGE 6 SECONDS] b
  WHERE a.k = b.k AND a.v > b.u;
CREATE QUERY with_table AS SELECT s.v, t.word FROM s [RANGE 5 SECONDS], t WHERE s.k = t.k;
CREATE QUERY everything AS SELECT DISTINCT k FROM s WITH (unbounded = true);
CREATE QUERY bad_rows AS SELECT k, 10 / n AS q FROM s WHERE 10 / n > 1;
CREATE QUERY over_view AS SELECT ISTREAM k, v FROM large WHERE k <> 'b';
CREATE QUERY over_kept AS SELECT k, sum(w) AS t FROM kept [RANGE 10 SECONDS] GROUP BY k;
CREATE QUERY paused AS SELECT k, count(*) AS n FROM s [RANGE 7 SECONDS] GROUP BY k;
CREATE QUERY altered AS SELECT k, v FROM s [RANGE 3 SECONDS] WHERE v > 1;
CREATE QUERY member_1 AS SELECT k, v FROM s WHERE v > 30 WITH (share = 'on');
CREATE QUERY member_2 AS SELECT k, v FROM s WHERE v < 12 AND k = 'a' WITH (share = 'on');
CREATE QUERY member_3 AS SELECT v FROM s WHERE k LIKE 'b%' WITH (share = 'on');
CREATE QUERY member_4 AS SELECT k, v FROM s WHERE v > 3 WITH (share = 'on');
CREATE QUERY invoked_p AS SELECT k, sum(v) AS t FROM s [RANGE 10 SECONDS] WHERE v > 8 GROUP BY k
  WITH (materialize = 'p');
CREATE QUERY invoked_p2 AS SELECT k, count(*) AS t FROM s [RANGE 10 SECONDS] WHERE v > 9 GROUP BY k
  WITH (materialize = 'p');
CREATE QUERY invoked_c AS SELECT k, max(v) AS t FROM s [RANGE 9 SECONDS] GROUP BY k
  WITH (materialize = 'c');
CREATE QUERY invoked_none AS SELECT k, v FROM s [RANGE 10 SECONDS] WHERE v > 4
  WITH (materialize = 'none');
CREATE QUERY invoked_auto AS SELECT k, v FROM s [RANGE 6 SECONDS] WHERE v > 6
  WITH (materialize = 'auto');
"""
MIDDLE = """
PAUSE QUERY paused;
PAUSE QUERY member_4;
ALTER QUERY altered AS SELECT k, v FROM s [RANGE 5 SECONDS] WHERE v > 2;
ALTER QUERY joined SET (filters = 'fixed', state_limit = 1000000);
ALTER QUERY invoked_none SET (materialize = 'p');
"""
LATE = """
RESUME QUERY member_4;
CREATE QUERY late_comer AS SELECT k, sum(v) AS t FROM s [RANGE 10 SECONDS] GROUP BY k;
CREATE QUERY late_seed AS SELECT k, v FROM s [RANGE 12 SECONDS] WITH (history = 'seed');
ALTER QUERY time_window SET WINDOW s [RANGE 12 SECONDS];
"""
INVOKED = ("invoked_p", "invoked_p2", "invoked_c", "invoked_none", "invoked_auto")
EMITTING = (
    "time_window", "slides", "rows_5", "rows_7", "rows_by_key", "sessions", "joined", "with_table",
    "everything", "bad_rows", "over_view", "over_kept", "paused", "altered", "member_1", "member_2",
    "member_3", "member_4", "late_comer", "late_seed",
)  # fmt: skip
_BEGIN = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
_TIME = pa.timestamp("us", "UTC")


def part(epoch: int) -> dict[str, pa.Table]:
    """The rows that arrive in an epoch."""
    numbers = range(epoch * ROWS, (epoch + 1) * ROWS)
    times = [_BEGIN + dt.timedelta(milliseconds=700 * i) for i in numbers]
    left = {
        "k": ["abc"[i * 7 % 3] for i in numbers],
        "v": [float(i * 37 % 41) for i in numbers],
        "n": [i * 5 % 4 for i in numbers],
        "ts": pa.array(times, _TIME),
    }
    right = {
        "k": ["abcd"[i * 3 % 4] for i in numbers],
        "u": [float(i * 23 % 29) for i in numbers],
        "ts": pa.array(times, _TIME),
    }
    return {"s": pa.table(left), "r": pa.table(right)}


def opened(path: str) -> Runner:
    """A runner on the path that knows its streams, its table and nothing else."""
    runner = Runner(buckets=2, slice_rows=40, storage=open_storage(path))
    first = part(0)
    runner.stream("s", first["s"], "ts", retain="1 hour")
    runner.stream("r", first["r"], "ts", lateness="1 second")
    runner.table("t", pa.table({"k": ["a", "b"], "word": ["one", "two"]}))
    runner._tables.clear()
    return runner


def begin(runner: Runner) -> None:
    """The first half, up to where the path of the fixture stops."""
    runner.sql(SCRIPT)
    for epoch in range(STOP_AFTER):
        if epoch == STOP_AFTER // 2:
            runner.sql(MIDDLE)
        runner.feed(part(epoch))
    runner.sql(LATE)


def end(runner: Runner, first: int = STOP_AFTER) -> dict[str, pa.Table]:
    """The rest, and what all queries have given by then."""
    for epoch in range(first, EPOCHS):
        if epoch == EPOCHS - 2:
            runner.sql("RESUME QUERY paused")
        runner.feed(part(epoch))
    runner.close()
    found = {name: runner.queries[name].results() for name in EMITTING}
    found |= {name: runner.queries[name].invoke() for name in INVOKED}
    found["bad_rows rejects"] = runner.queries["bad_rows"].rejects()
    return {name: table.replace_schema_metadata(None) for name, table in found.items()}


def now(runner: Runner) -> dict[str, pa.Table]:
    """The answers where the path stops."""
    found = {f"now {name}": runner.queries[name].invoke() for name in (*INVOKED, "everything")}
    return {name: table.replace_schema_metadata(None) for name, table in found.items()}


def write(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        stopped = Path(folder, "path")
        begin(opened(str(stopped)))
        asked, whole = opened(f"{folder}/asked"), opened(f"{folder}/whole")
        for runner in (asked, whole):
            begin(runner)
        expected = {**now(asked), **end(whole)}
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(stopped.rglob("*")):
                if file.is_file():
                    archive.write(file, f"path/{file.relative_to(stopped).as_posix()}")
            for name, table in expected.items():
                sink = pa.BufferOutputStream()
                with pa.ipc.new_file(sink, table.schema) as writer:
                    writer.write_table(table)
                archive.writestr(f"expected/{name}.arrow", sink.getvalue().to_pybytes())


if __name__ == "__main__":
    write(sys.argv[1])
