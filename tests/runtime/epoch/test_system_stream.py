"""SysStream: the engine's own properties, queried like any stream; options set while it runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from thalweg.errors import BindError, ConfigError, DuplicateName, UnknownName
from thalweg.testing import Runner

ROWS, EPOCHS = 4_000, 5


def numbers() -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "a": rng.integers(0, 100, ROWS),
            "b": rng.integers(0, 100, ROWS),
            "ts": pa.array(np.arange(ROWS) * 1000, pa.timestamp("us", "UTC")),
        }
    )


def runner(**options: object) -> Runner:
    made = Runner(epochs=EPOCHS, **options)
    made.stream("s", numbers())
    return made


def stamps(values: object) -> pa.Array:
    return pa.array(values, pa.timestamp("us", "UTC"))


def test_a_windowed_average_of_published_selectivity_is_the_true_one() -> None:
    """streamon #8: a windowed aggregate over SysStream equals what the data say."""
    made = runner()
    made.query("SELECT a FROM s WHERE a < 30", name="few")
    watch = made.query(
        "SELECT RSTREAM avg(value) AS mean, count(*) AS n FROM SysStream [RANGE 1 HOUR] "
        "WHERE entity = 'few: a < 30' AND property = 'selectivity'"
    )
    made.run()
    # an epoch judges what it took in but the newest instant, which waits for the next
    cuts = [0, *(ROWS * (i + 1) // EPOCHS - 1 for i in range(EPOCHS))]
    values = numbers()["a"].to_numpy()
    shares = [(values[low:high] < 30).mean() for low, high in pairwise(cuts)]
    last = watch.results().to_pylist()[-1]
    assert last["n"] == EPOCHS
    assert last["mean"] == pytest.approx(np.mean(shares), abs=1e-12)


def test_streams_queries_and_predicates_publish_what_each_epoch_added() -> None:
    made = runner()
    query = made.query("SELECT a FROM s WHERE a < 50 AND b < 50", name="q")
    watch = made.query(
        "SELECT ISTREAM entity, kind, property, value, epoch FROM SysStream [NOW] WHERE value >= 0"
    )
    made.run()
    rows = watch.results().to_pylist()
    of = {
        (kind, name): [r["value"] for r in rows if (r["kind"], r["property"]) == (kind, name)]
        for kind, name in {(r["kind"], r["property"]) for r in rows}
    }
    assert of["stream", "rows"] == [ROWS / EPOCHS] * EPOCHS
    assert len(of["engine", "seconds"]) == EPOCHS
    counts = query.stats()["counts"]
    for text in ("a < 50", "b < 50"):
        mine = [r for r in rows if r["entity"] == f"q: {text}" and r["property"] == "evaluations"]
        published = sum(r["value"] for r in mine)
        # the very last row is judged when the run closes, after the last publication
        assert 0 <= counts[f"evaluations:{text}"] - published <= 1
        assert published > 0
    assert all(v > 0 for v in of["predicate", "cost"])


def test_reading_sysstream_does_not_keep_the_engine_busy() -> None:
    """An epoch that only reads SysStream publishes nothing that the next would have to read."""
    made = runner()
    made.query("SELECT count(*) AS n FROM SysStream [RANGE 1 HOUR]")
    made.run()
    published = made.core.state.streams["SysStream"].rows
    for clock in range(10**9, 10**9 + 5 * 10**6, 10**6):
        made.tick(clock)
    assert published > 0
    assert made.core.state.streams["SysStream"].rows == published


def test_nothing_is_published_when_nobody_reads() -> None:
    made = runner()
    made.query("SELECT a FROM s WHERE a < 30")
    made.run()
    assert "SysStream" not in made.core.state.streams


def test_the_name_is_taken() -> None:
    with pytest.raises(DuplicateName):
        runner().stream("sysstream", numbers())


def test_options_are_altered_while_a_query_runs_and_stay_after_a_restart() -> None:
    made = runner(restarts=(4,))
    query = made.query("SELECT a FROM s WHERE a < 50 AND b < 50 WITH (filters = 'fixed')", "q")
    pieces = made.pieces("s")
    made.feed({"s": pieces[0]})
    assert query.stats()["adapt"]["filters"][0]["ordering"] == "fixed"
    made.sql("ALTER QUERY q SET (filters = 'a-greedy', profile = 0.5)")
    for piece in pieces[1:]:
        made.feed({"s": piece})
    found = query.stats()["adapt"]["filters"][0]
    assert found["ordering"] == "a-greedy"
    assert found["profile_rate"] == 0.5
    made.close()
    assert query.results().num_rows == sum(
        a < 50 and b < 50 for a, b in zip(*(numbers()[c].to_pylist() for c in "ab"), strict=True)
    )


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("ALTER QUERY nobody SET (filters = 'auto')", UnknownName),
        ("ALTER QUERY q SET (fliters = 'auto')", UnknownName),
        ("ALTER QUERY q SET (filters = 'best')", BindError),
        ("ALTER QUERY q SET (profile = 2)", BindError),
        ("ALTER QUERY q SET (history = 'none')", ConfigError),
    ],
)
def test_impossible_changes_are_refused(sql: str, error: type[Exception]) -> None:
    made = runner()
    made.query("SELECT a FROM s WHERE a < 50", name="q")
    with pytest.raises(error):
        made.sql(sql)


def test_rates_are_rows_a_second_by_the_recorded_clock() -> None:
    made = runner()
    watch = made.query(
        "SELECT ISTREAM value FROM SysStream [NOW] WHERE entity = 's' AND property = 'rate'"
    )
    made.query("SELECT a FROM s", name="q")
    for number, piece in enumerate(made.pieces("s"), 1):
        made.clock = number * 2_000_000
        made.feed({"s": piece})
    made.close()
    assert watch.results()["value"].to_pylist() == [ROWS / EPOCHS / 2] * (EPOCHS - 1)


def test_no_query_may_take_the_name_of_the_system_stream() -> None:
    made = Runner()
    made.stream("s", pa.table({"x": [1], "ts": stamps([1])}))
    with pytest.raises(DuplicateName):
        made.query("SELECT x FROM s", name="sysstream")
