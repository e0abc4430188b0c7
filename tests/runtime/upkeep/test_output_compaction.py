"""Output of many epochs in few packs: the same rows, in the same order, to whoever asks."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError, FileMissing
from thalweg.exec.upkeep.gather_output import EPOCH
from thalweg.runtime.results.followers import Results
from thalweg.runtime.state.output_keys import epochs_of, key_of, keys_of, owner_of
from thalweg.runtime.upkeep.inspection import inspect
from thalweg.runtime.upkeep.output_compaction import SHARE_OF_RETAINED
from thalweg.runtime.upkeep.vacuum import carry_out, plan_vacuum
from thalweg.store.leases import Lease, renew
from thalweg.store.losses import missing
from thalweg.store.manifest import load
from thalweg.store.storage import open_storage
from thalweg.testing.runner import Runner

NEVER = 1 << 30
QUERIES = {
    "each": "SELECT ISTREAM k, v FROM s WHERE v > 2",
    "counts": "SELECT k, count(*) AS n, max(v) AS most FROM s [RANGE 9 MICROSECONDS] GROUP BY k",
    "latest": "SELECT RSTREAM v FROM s [ROWS 2]",
}


def rows(epoch: int) -> pa.Table:
    times = [epoch * 3 + i for i in (2, 0, 1, 1)]
    return pa.table(
        {
            "k": pa.array([t % 3 for t in times], pa.int64()),
            "v": pa.array([(t * 7 + i) % 11 for i, t in enumerate(times)], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def made(gather_from: int, **options: Any) -> Runner:
    runner = Runner(gather_from=gather_from, buckets=2, **options)
    runner.stream("s", rows(0).slice(0, 0), lateness=0)
    return runner


def fed(runner: Runner, epochs: range) -> None:
    for epoch in epochs:
        runner.clock = 1_000 * epoch
        runner.feed({"s": rows(epoch)})


def outputs_of(runner: Runner) -> dict[str, Any]:
    return runner.core.state.outputs


@pytest.mark.parametrize("gather_from", [4, 16])
def test_results_are_the_same_row_for_row(gather_from: int) -> None:
    """With a restart on the way, and packs that are gathered once more."""
    runners = [made(NEVER), made(gather_from)]
    for runner in runners:
        for name, sql in QUERIES.items():
            runner.query(sql, name)
        fed(runner, range(70))
        runner.restart()
        fed(runner, range(70, 150))
        runner.close()
    apart, gathered = runners
    for name in QUERIES:
        expected = apart.queries[name].results()
        assert expected.num_rows > 150
        assert gathered.queries[name].results().equals(expected)
        assert len(keys_of(outputs_of(apart), name)) >= 140
        assert len(keys_of(outputs_of(gathered), name)) <= 4 * gather_from
    at = 150
    counts = [r.queries["counts"] for r in runners]
    assert counts[1].invoke(at).to_pylist() == counts[0].invoke(at).to_pylist()
    assert len(gathered.core.state.clocks) <= 8 * gather_from


def test_what_members_share_is_gathered_too() -> None:
    """Also of one that leaves the others later."""
    runners = [made(NEVER, share_from=0), made(4, share_from=0)]
    for runner in runners:
        for bound in range(6):
            runner.query(f"SELECT ISTREAM k, v FROM s WHERE v > {bound}", f"q{bound}")
        fed(runner, range(60))
        runner.sql("ALTER QUERY q3 SET (share = 'off')")
        fed(runner, range(60, 100))
    apart, gathered = runners
    shared = {owner_of(key) for key in outputs_of(gathered)} - {"q3"}
    assert len(shared) == 1
    assert len(keys_of(outputs_of(apart), *shared)) >= 99
    assert len(keys_of(outputs_of(gathered), *shared)) <= 16
    for bound in range(6):
        expected = apart.queries[f"q{bound}"].results()
        assert expected.num_rows > 100
        assert gathered.queries[f"q{bound}"].results().equals(expected)


def test_followers_get_any_epochs_they_ask_for() -> None:
    runners = [made(NEVER), made(4)]
    for runner in runners:
        runner.query(QUERIES["each"], "each")
        fed(runner, range(40))
    apart, gathered = (Results(r.storage, "each") for r in runners)
    spans = gathered.spans(0, gathered.last_epoch())
    assert len(spans) < len(apart.spans(0, apart.last_epoch()))
    assert any(first < last for first, last in spans)
    last = apart.last_epoch()
    for first, until in [(1, last), (3, 3), (2, 17), (16, 33), (last, last)]:
        expected = apart.rows(first, until)
        assert gathered.rows(first, until).equals(expected)
        told = gathered.spans(first - 1, until)
        parts = [gathered.rows(*span) for span in told]
        assert pa.concat_tables(parts).equals(expected)
        assert all(first <= a <= b <= until for a, b in told)


def test_epochs_that_went_meanwhile_are_refused_not_empty() -> None:
    """Between planning a batch and reading it."""
    runner = made(4)
    runner.query(QUERIES["each"], "each")
    fed(runner, range(20))
    results = Results(runner.storage, "each")
    planned = results.spans(0, 10)
    runner.core.settings.results_retain = 5_000
    fed(runner, range(20, 40))
    assert results.forgotten() > 10
    for first, last in planned:
        with pytest.raises(ConfigError, match="kept no longer"):
            results.rows(first, last)


@pytest.mark.parametrize("per_epoch", [1, 3_000])
def test_what_is_gathered_is_gathered_again(per_epoch: int) -> None:
    """Also where the output of few epochs makes a large pack."""
    runner = made(4)
    query = runner.query("SELECT ISTREAM k, v FROM s", "all")
    few = rows(0).slice(0, 1)
    for epoch in range(200):
        times = pa.array([epoch] * per_epoch, pa.timestamp("us", "UTC"))
        whole = pa.concat_tables([few] * per_epoch).set_column(2, "ts", times)
        runner.feed({"s": whole})
    assert query.results().num_rows == 199 * per_epoch
    assert len(keys_of(outputs_of(runner), "all")) <= 16


def test_queries_that_are_gone_are_not_counted() -> None:
    runner = made(16)
    for number in range(20):
        query = runner.query(QUERIES["each"], f"q{number}")
        fed(runner, range(3 * number, 3 * number + 3))
        query.drop()
    assert not runner.core.outputs.fresh


def test_a_new_run_knows_what_is_to_be_gathered() -> None:
    """Runs of few epochs each."""
    runner = made(16)
    query = runner.query(QUERIES["each"], "each")
    for number in range(20):
        fed(runner, range(5 * number, 5 * number + 5))
        runner.restart()
    assert len(keys_of(outputs_of(runner), "each")) <= 32
    assert query.results().num_rows > 100


def test_a_file_that_is_missing_is_told_at_once() -> None:
    """Only a newer commit is a reason to look again."""
    runner = made(NEVER)
    query = runner.query(QUERIES["each"], "each")
    fed(runner, range(3))
    looked = []

    def gone(name: str) -> pa.Table:
        looked.append(name)
        raise missing("path", name)

    runner.core.results._storage = SimpleNamespace(read_table=gone)
    with pytest.raises(FileMissing):
        query.results()
    assert len(looked) == 1


class Broken:
    """A sink that refuses everything until it is mended."""

    def __init__(self) -> None:
        self.is_broken = True
        self.epochs: list[int] = []
        self.rows: list[pa.Table] = []

    def write(self, epoch: int, output: pa.Table) -> None:
        if self.is_broken:
            raise OSError("no route to host")
        self.epochs.append(epoch)
        self.rows.append(output)


def test_what_sinks_wait_for_stays_apart() -> None:
    runner = made(4)
    query, sink = runner.query(QUERIES["each"], "each"), Broken()
    query.sinks.append(sink)
    fed(runner, range(30))
    kept = keys_of(outputs_of(runner), "each")
    assert len(kept) == 30
    sink.is_broken = False
    fed(runner, range(30, 60))
    assert pa.concat_tables(sink.rows).equals(query.results())
    assert sink.epochs == sorted(set(sink.epochs))
    assert len(keys_of(outputs_of(runner), "each")) < 16


def test_what_is_gathered_is_a_part_of_what_is_kept() -> None:
    """So that forgetting keeps to its time, within that part."""
    runner = made(4)
    runner.core.settings.results_retain = 160_000
    query = runner.query(QUERIES["each"], "each")
    fed(runner, range(320))
    spans = [epochs_of(k) for k in keys_of(outputs_of(runner), "each")]
    longest = max(last - first + 1 for first, last in spans)
    assert 4 <= longest <= 160 // SHARE_OF_RETAINED + 1
    assert 160 - longest <= spans[0][0] <= 165
    alone = made(NEVER)
    expected = alone.query(QUERIES["each"], "each")
    fed(alone, range(320))
    kept = query.results()
    assert kept.equals(expected.results().slice(expected.results().num_rows - kept.num_rows))


def test_results_are_read_while_they_are_gathered(tmp_path: Path) -> None:
    """From another thread, and as another process would: files go, answers do not."""
    storage = open_storage(str(tmp_path), durable=False)
    runner = made(4, storage=storage)
    query, relation = (runner.query(QUERIES[n], n) for n in ("each", "counts"))
    fed(runner, range(8))
    done, wrong = threading.Event(), []

    def read() -> None:
        outside = Results(storage, "each")
        seen = [0, 0]
        while not done.is_set():
            try:
                counted = [query.results().num_rows, outside.rows(1, NEVER).num_rows]
                assert all(a <= b for a, b in zip(seen, counted, strict=True))
                assert sum(relation.invoke().column("n").to_pylist()) in range(1, 21)
                seen = counted
            except BaseException as error:
                wrong.append(error)
                return

    reader = threading.Thread(target=read)
    reader.start()
    fed(runner, range(8, 150))
    done.set()
    reader.join()
    assert not wrong


def test_the_state_shows_and_vacuum_forgets_what_is_gathered(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), durable=False)
    runner = made(4, storage=storage)
    runner.core.settings.results_retain = 160_000
    query = runner.query(QUERIES["each"], "each")
    fed(runner, range(40))
    seen = inspect(storage)
    (shown,) = [q for q in seen.queries if q.name == "each"]
    assert shown.result_epochs == (1, 40)
    assert shown.results.rows == query.results().num_rows
    assert not seen.totals.missing
    plan = plan_vacuum(storage, results_before=1_000 * 20, clock=10**6)
    assert 10 <= plan.result_epochs <= 20
    carry_out(storage, plan)
    left = load(storage)[1]["outputs"]
    assert min(epochs_of(k)[0] for k in left) == plan.result_epochs + 1
    assert not inspect(storage).totals.missing


def test_a_vacuum_leaves_answers_as_they_are(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path), durable=False)
    runner = made(NEVER, storage=storage)
    query = runner.query("SELECT k, count(*) AS n FROM s [UNBOUNDED] GROUP BY k "
                         "WITH (unbounded = true)", "counts")  # fmt: skip
    fed(runner, range(40))
    before = sorted(query.invoke().to_pylist(), key=repr)
    renew(storage, Lease("somebody", "counts", 25, 4e9))
    for limit, forgotten in ((1_000 * 20, 20), (1_000 * 35, 25)):
        plan = plan_vacuum(storage, results_before=limit, clock=10**6)
        carry_out(storage, plan)
        runner.restart()
        assert sorted(query.invoke().to_pylist(), key=repr) == before
        assert Results(storage, "counts").forgotten() == forgotten
        assert not inspect(storage).totals.missing
        assert not inspect(storage).totals.unreferenced.files
    assert plan.undelivered == 10


def test_rejects_are_gathered(tmp_path: Path) -> None:
    """Of a stream, whose late rows come with every epoch, and of a query that cannot divide."""
    runner = Runner(storage=open_storage(str(tmp_path), durable=False))
    runner.stream("s", rows(0).slice(0, 0), lateness=0)
    query = runner.query("SELECT ISTREAM k, 10 / k AS share FROM s", "share")
    for epoch in range(3, 120):
        runner.feed({"s": pa.concat_tables([rows(epoch), rows(epoch - 3).slice(0, 1)])})
    state = runner.core.state
    late, undivided = runner.session.rejects("s"), query.rejects()
    assert 100 < state.streams["s"].late == late.num_rows
    assert 50 < query.stats()["rejected"] == undivided.num_rows
    for packs in (state.streams["s"].rejects, state.queries["share"].output.rejects):
        assert len(packs) <= 24
    assert late.column("ts").to_pylist() == sorted(late.column("ts").to_pylist())
    assert undivided.column("__ts").to_pylist() == sorted(undivided.column("__ts").to_pylist())
    assert not inspect(runner.storage).totals.missing
    assert not inspect(runner.storage).totals.unreferenced.files
    runner.restart()
    assert runner.session.rejects("s").equals(late)


def test_conditions_alone_leave_no_clocks() -> None:
    runner = made(16)
    runner.query("SELECT k, v FROM s [RANGE 9 MICROSECONDS] WHERE v > 2 "
                 "WITH (materialize = 'p')", "q")  # fmt: skip
    fed(runner, range(100))
    assert len(runner.core.state.clocks) < 60


def test_keys_of_output() -> None:
    assert key_of("a/b", 3, 3) == "a/b/3"
    assert key_of("a/b", 3, 9) == "a/b/3-9"
    assert owner_of("a/b/3-9") == "a/b"
    assert epochs_of("a/b/3-9") == (3, 9)
    assert keys_of({"q/10": 0, "q/2-9": 0, "q/1": 0, "p/1": 0}, "q") == ["q/1", "q/2-9", "q/10"]


def test_the_epoch_is_for_those_who_gather_only() -> None:
    runner = made(4)
    query = runner.query(QUERIES["counts"], "counts")
    fed(runner, range(40))
    assert EPOCH not in query.results().column_names
    assert EPOCH not in query.invoke().column_names
    assert EPOCH not in Results(runner.storage, "counts").rows(1, 40).column_names


def test_one_that_cannot_be_gathered_does_not_hinder_others() -> None:
    """Whoever has been tried is tried again after the others."""
    runner = made(4)
    for name in ("a", "b"):
        runner.query("SELECT ISTREAM k, v FROM s", name)
    real = runner.core.upkeep.background.take
    runner.core.upkeep.background.take = lambda jobs: [  # type: ignore[method-assign]
        j for j in real(jobs) if getattr(j, "name", None) != "a"
    ]
    fed(runner, range(60))
    assert len(keys_of(outputs_of(runner), "a")) >= 59
    assert len(keys_of(outputs_of(runner), "b")) < 20


def test_a_function_of_another_type_does_not_stop_it() -> None:
    storage = made(4).storage
    for returns, epochs in (("BIGINT", range(6)), ("DOUBLE", range(6, 40))):
        runner = made(4, storage=storage)
        runner.function("f", lambda v: v * 2, returns)
        query = runner.query("SELECT ISTREAM k, f(v) AS w FROM s", "q")
        fed(runner, epochs)
        runner.core.coordinator.save(10**6)
    assert len(keys_of(outputs_of(runner), "q")) < 12
    whole = made(NEVER)
    expected = whole.query("SELECT ISTREAM k, v * 2.0 AS w FROM s", "q")
    fed(whole, range(40))
    found = [query.results().select(["k", "w", "__ts"]), expected.results()]
    kept = [
        t.sort_by([("__ts", "ascending"), ("k", "ascending"), ("w", "ascending")]) for t in found
    ]
    assert kept[0].to_pylist() == kept[1].to_pylist()


def test_a_file_that_stays_missing_is_told_while_epochs_go_on() -> None:
    """A newer commit that names it, too, is no reason to look for it again and again."""
    runner = made(NEVER)
    query = runner.query(QUERIES["each"], "each")
    fed(runner, range(4))
    lost = next(iter(outputs_of(runner).values()))[0][0]
    real, tried = runner.storage.read_table, []

    def read_table(name: str) -> pa.Table:
        if name == lost:
            tried.append(name)
            fed(runner, range(3 + len(tried), 4 + len(tried)))  # and something is committed
            raise missing("path", name)
        return real(name)

    runner.core.results._storage = SimpleNamespace(read_table=read_table)
    with pytest.raises(FileMissing):
        query.results()
    assert len(tried) == 2
