"""`engine.batch`: the same rows in any order of joins, sizes by Spark's own sketches, and tables
that stay DataFrames."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg import Engine
from thalweg.errors import BindError, ThalwegError, UnknownName
from thalweg.estimate.batch import sizes
from thalweg.estimate.sketch.bound_sketch import BoundSketch
from thalweg.spark.batch import batch
from thalweg.spark.batch.sketches import SketchInput, SparkSketches

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: Any, tmp_path: Path) -> Iterator[Engine]:
    with Engine(spark, tmp_path / "engine", parallelism=2) as made:
        yield made


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reorder whatever is predicted to be better at all, however small."""
    monkeypatch.setattr(batch, "FEW_ROWS", 0)
    monkeypatch.setattr(batch, "ENOUGH_BETTER", 0.999)


def rows(frame: Any) -> list[str]:
    return sorted(repr(tuple(r)) for r in frame.collect())


def skewed(seed: int, count: int, hub: int, share: float = 0.3) -> pa.Table:
    rng = np.random.default_rng(seed)
    x, y = (np.where(rng.random(count) < share, hub, rng.integers(0, count, count)) for _ in "ab")
    return pa.table({"x": x, "y": y, "v": rng.integers(0, 100, count)})


def many_to_many(engine: Engine) -> str:
    """A chain whose first join, as written, explodes."""
    for name, share in (("a", 0.4), ("b", 0.4), ("c", 0.0)):
        engine.table(name, skewed(ord(name), 2000, 7, share))
    engine.table("d", pa.table({"x": [1, 2, 3], "y": [1, 2, 3], "v": [1, 2, 3]}))
    return (
        "SELECT count(*) AS n, sum(a.v) AS s FROM a, b, c, d "
        "WHERE a.y = b.x AND b.y = c.x AND c.y = d.x"
    )


# -- orders ----------------------------------------------------------------------------------------


def made_rows(engine: Engine, tree: str, text: str) -> int:
    """The rows that the joins of an order make in Spark, all but the last."""
    total = 0
    for part in _parts(tree)[:-1]:
        named = {n: n for n in part}
        where = [c for c in text.split(" AND ") if {p[0] for p in c.split(" = ")} <= set(part)]
        sql = f"SELECT count(*) AS n FROM {', '.join(named)} WHERE {' AND '.join(where)}"
        total += engine.batch(sql, reorder=False).collect()[0][0]
    return total


def _parts(tree: str) -> list[str]:
    """The inputs of each pair of parentheses, inner ones first."""
    stack: list[str] = []
    found = []
    for sign in tree:
        if sign == "(":
            stack.append("")
        elif sign.isalpha():
            stack = [s + sign for s in stack]
        elif sign == ")":
            found.append(stack.pop())
    return found


def test_a_skewed_join_runs_in_a_better_order(engine: Engine, eager: None) -> None:
    """bounds #18: fewer intermediate rows in fact, identical results, times apart."""
    sql = many_to_many(engine)
    ours, theirs = engine.batch(sql), engine.batch(sql, reorder=False)
    assert rows(ours) == rows(theirs)
    first, second = list(engine.batch.log)
    assert first.reordered, first
    assert not second.reordered
    assert first.notes == (), "Spark's own plan has the order"
    where = "a.y = b.x AND b.y = c.x AND c.y = d.x"
    assert made_rows(engine, first.order, where) * 2 < made_rows(engine, first.written, where)
    assert made_rows(engine, first.order, where) == first.rows
    assert first.planning > 0
    assert first.execution is not None
    assert second.execution is not None
    assert str(first.bound).startswith("exactly ")
    assert f"{first.planning:.3f}" in str(first)


def test_only_much_better_orders_are_taken(engine: Engine) -> None:
    """At least half of the rows, and some twenty million of them: these joins are small."""
    sql = many_to_many(engine)
    engine.batch(sql)
    (run,) = engine.batch.log
    assert not run.reordered
    assert "no intermediate result is large" in str(run)


def test_an_order_that_lost_is_taken_back(engine: Engine, eager: None) -> None:
    sql = many_to_many(engine)
    engine.batch(sql).collect()
    engine.batch(sql, reorder=False).collect()
    engine.batch.log.measure()
    ours, theirs = engine.batch.log.runs
    ours.execution, theirs.execution = 9.0, 1.0
    engine.batch(sql.replace("a.v", "a.v"))
    assert engine.batch.log[-1].notes == ("as written: reordering lost",)
    theirs.execution = 99.0
    engine.batch(sql)
    assert engine.batch.log[-1].reordered
    engine.batch(sql + " AND a.v < 50")
    assert engine.batch.log[-1].shape != ours.shape
    engine.batch(sql + " AND a.v < 70")
    assert engine.batch.log[-1].shape == engine.batch.log[-2].shape


QUERIES = (
    "SELECT a.k AS one, c.w FROM a, b, c WHERE a.k = b.k AND b.j = c.j",
    "SELECT * FROM a JOIN b ON a.k = b.k JOIN c ON c.j = b.j AND c.w > a.v",
    "SELECT count(*) AS n, sum(a.v) AS s FROM a, b, c WHERE a.k <=> b.k AND b.j <=> c.j",
    "SELECT a.v, count(*) AS n FROM a, b, c WHERE a.k = b.k AND b.k = c.k GROUP BY a.v",
    "SELECT DISTINCT a.v FROM a, b, c WHERE a.k = b.k AND b.k <=> c.k",
    "SELECT a.k, b.k AS o, c.k AS p FROM a, b, c WHERE a.k = b.k AND c.k = b.k AND a.j = b.k",
    "SELECT a.v, d.v AS u FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j LEFT JOIN d ON d.k = a.k",
    "SELECT a.v FROM a JOIN b ON a.k = b.k JOIN c ON b.j = c.j ANTI JOIN d ON d.k = a.k",
    "SELECT a.v FROM a, b, c WHERE a.k = b.k AND b.j = c.j AND a.k IN (SELECT k FROM d)",
    "SELECT count(*) AS n FROM a, b, c, d WHERE a.k = b.k AND c.j = d.j",
    "SELECT count(*) AS n FROM a, b, c WHERE a.k = b.k AND b.j < c.j",
    "SELECT x.v FROM (SELECT k, v FROM a WHERE v > 2) AS x, b, c WHERE x.k = b.k AND b.j = c.j",
    "SELECT a.v FROM a, b, c, e WHERE a.k = b.k AND b.j = c.j AND e.k = a.k",
)  # fmt: skip


def with_nulls(seed: int, key: pa.DataType, count: int = 40) -> pa.Table:
    rng = Random(seed)

    def value() -> Any:
        found: Any = rng.randrange(6)
        if pa.types.is_floating(key):
            found = rng.choice([float(found), -0.0, math.nan])
        return None if rng.random() < 0.15 else found

    return pa.table(
        {
            "k": pa.array([value() for _ in range(count)], key),
            "j": pa.array([rng.choice([None, 0, 1, 2, 3]) for _ in range(count)], pa.int64()),
            "v": pa.array([rng.randrange(9) for _ in range(count)], pa.int64()),
            "w": pa.array([rng.randrange(9) for _ in range(count)], pa.int32()),
        }
    )


def test_results_are_the_same_in_all_orders(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NULL, NaN, -0.0, `<=>`, INT = BIGINT = DOUBLE, outer joins, subqueries, products and empty
    tables; orders are forced, whatever they cost."""
    keys = (pa.int32(), pa.int64(), pa.float64(), pa.int32())
    for number, (name, key) in enumerate(zip("abcd", keys, strict=True)):
        engine.table(name, with_nulls(number, key))
    engine.table("e", with_nulls(9, pa.int64()).slice(0, 0))
    wrong_way = _Backwards()
    monkeypatch.setattr(batch, "FEW_ROWS", -math.inf)
    monkeypatch.setattr(batch, "ENOUGH_BETTER", math.inf)
    monkeypatch.setattr(batch, "_best", wrong_way)
    changed = 0
    for sql in QUERIES:
        theirs = engine.batch(sql, reorder=False)
        for turn in range(3):
            wrong_way.turn = turn
            engine.batch.log.runs.clear()
            ours = engine.batch(sql)
            assert ours.columns == theirs.columns
            assert rows(ours) == rows(theirs), sql
            changed += engine.batch.log.runs[-1].reordered
    assert changed > 15, "or nothing was tried"


class _Backwards:
    """Some order of the inputs, instead of the best one."""

    turn = 0

    def __call__(self, sizes: Any, small: int) -> Any:
        whole = sizes.graph.whole.bit_count()
        order = list(range(whole))
        Random(self.turn).shuffle(order)
        found = batch.Tree(1 << order[0])
        for i in order[1:]:
            found = batch.Tree(found.inputs | 1 << i, found, batch.Tree(1 << i))
        return found, lambda inputs: 1.0


def test_fourteen_tables(engine: Engine, eager: None) -> None:
    rng = np.random.default_rng(1)
    for i in range(14):
        keys = rng.integers(0, 30, 40)
        engine.table(f"t{i}", pa.table({"x": keys, "y": rng.integers(0, 30, 40)}))
    froms = ", ".join(f"t{i}" for i in (6, 0, 13, 3, 9, 1, 12, 2, 7, 5, 11, 4, 10, 8))
    where = " AND ".join(f"t{i}.y = t{i + 1}.x" for i in range(13))
    sql = f"SELECT count(*) AS n FROM {froms} WHERE {where} AND t0.x < 3 AND t13.y < 3"
    assert rows(engine.batch(sql)) == rows(engine.batch(sql, reorder=False))
    assert engine.batch.log[0].rows is not None


def test_small_inputs_are_sent_by_their_bounds(
    engine: Engine, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark knows of a filter only that it may pass everything: it would move the large input. The
    order stays Spark's."""
    monkeypatch.setattr(batch, "MANY_ROWS", 1_000)
    for name in "abc":
        pq.write_table(skewed(ord(name), 3000, 7, 0.001), tmp_path / f"{name}.parquet")
        engine.table(name, spark.read.parquet(str(tmp_path / f"{name}.parquet")))
    sql = "SELECT count(*) AS n FROM a, b, c WHERE a.y = b.x AND b.y = c.x AND a.v = 3 AND c.v = 4"
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "4000")
    try:
        hinted, plain = engine.batch(sql), engine.batch(sql, reorder=False)
        (run, _) = engine.batch.log.runs
        assert run.broadcast == ("a", "c")
        assert not run.reordered
        assert run.order == run.written
        plans = [f._jdf.queryExecution().sparkPlan().toString() for f in (hinted, plain)]
        assert [p.count("BroadcastHashJoin") for p in plans] == [2, 0]
        assert rows(hinted) == rows(plain)
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
        engine.batch(sql)
        assert engine.batch.log.runs[-1].broadcast == ()
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)


def test_what_cannot_be_put_in_another_way_is_run_as_it_is(
    engine: Engine, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = many_to_many(engine)
    monkeypatch.setattr(batch, "rewritten", lambda *given: "SELECT nonsense FROM nowhere")
    frame = engine.batch(sql)
    (run,) = engine.batch.log.runs
    assert not run.reordered
    assert run.order == run.written
    assert run.notes[-1].startswith("as written: ")
    assert rows(frame) == rows(engine.batch(sql, reorder=False))


def test_old_versions_leave_nothing_behind(engine: Engine, spark: Any, eager: None) -> None:
    sql = many_to_many(engine)
    engine.batch(sql)
    kept = len(engine.batch.keys._kept)
    views = len(spark.catalog.listTables())
    engine.table("a", skewed(5, 100, 7))
    engine.batch(sql)
    assert len(engine.batch.keys._kept) == kept
    assert len(spark.catalog.listTables()) == views


# -- sizes by Spark --------------------------------------------------------------------------------


def sketched(
    spark: Any, table: pa.Table, shape: tuple[int, ...], wanted: str = "BIGINT"
) -> BoundSketch:
    spark.createDataFrame(table).createOrReplaceTempView("sketched")
    columns = tuple((c, c, wanted) for c in table.column_names)
    one = SketchInput("sketched", "s", columns, (shape,))
    (found,) = SparkSketches(spark).of([one])
    return found[shape].full()


def hashed(spark: Any, table: pa.Table) -> list[np.ndarray]:
    """The hashes that Spark gives the keys of all rows without NULL."""
    spark.createDataFrame(table).createOrReplaceTempView("hashed")
    columns = ", ".join(f"xxhash64({c}) AS {c}" for c in table.column_names)
    present = " AND ".join(f"{c} IS NOT NULL" for c in table.column_names)
    found = spark.sql(f"SELECT {columns} FROM hashed WHERE {present}").toArrow()
    return [found.column(c).to_numpy().astype(np.uint64) for c in table.column_names]


def test_spark_sketches_equal_those_of_rows(spark: Any) -> None:
    """bounds #1 and #2, the Spark builder: counts and degrees cell by cell, on random relations of
    arity one to three with duplicates and NULLs."""
    from thalweg.estimate.sketch.row_groups import RowGroups

    rng = Random(5)
    for number in range(12):
        arity = 1 + number % 3
        names = tuple("xyz"[:arity])
        columns = {
            n: pa.array([rng.choice([None, *range(8)]) for _ in range(60)], pa.int64())
            for n in names
        }
        table, shape = pa.table(columns), tuple(rng.choice([1, 2, 4]) for _ in names)
        found = sketched(spark, table, shape)
        exact = RowGroups.of_hashes(names, hashed(spark, table)).sketch(shape).full()
        assert found.counts.tolist() == exact.counts.tolist()
        for mine, theirs in zip(found.degrees, exact.degrees, strict=True):
            assert mine.tolist() == theirs.tolist()


def test_the_example_by_spark(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """bounds #1: the tensors of the example, which takes values modulo 2 for hashes."""
    from thalweg.spark.batch import sketches

    monkeypatch.setattr(sketches, "spark_bucket", lambda types: lambda c, n: f"pmod({c}, {n})")
    table = pa.table({"x": [4, 4, 7, 8, 8, 9], "y": [0, 3, 3, 0, 2, 3]})
    found = sketched(spark, table, (2, 2))
    assert found.dense(found.counts).tolist() == [[3, 1], [0, 2]]
    assert found.dense(found.degrees[0]).tolist() == [[2, 1], [0, 1]]
    assert found.dense(found.degrees[1]).tolist() == [[2, 1], [0, 2]]


def test_int_and_bigint_share_buckets(spark: Any) -> None:
    """bounds #17, in Spark."""
    numbers = [1, 2, 2, 3, 2_000_000_000, -5]
    small = sketched(spark, pa.table({"x": pa.array(numbers, pa.int32())}), (16,))
    large = sketched(spark, pa.table({"x": pa.array(numbers, pa.int64())}), (16,))
    assert small.counts.tolist() == large.counts.tolist()
    double = pa.table({"x": pa.array([float(n) for n in numbers] + [-0.0, 0.0])})
    both = pa.table({"x": pa.array([*numbers, 0, 0], pa.int32())})
    assert sketched(spark, double, (16,), "DOUBLE").counts.tolist() == (
        sketched(spark, both, (16,), "DOUBLE").counts.tolist()
    )


def jobs_of(spark: Any, action: Any) -> tuple[Any, int]:
    """What an action gives, and how many Spark jobs it ran."""
    context = spark.sparkContext
    tag = f"counted-{Random().random()}"
    context.addJobTag(tag)
    try:
        found = action()
    finally:
        context.removeJobTag(tag)
    context._jsc.sc().listenerBus().waitUntilEmpty(5000)
    return found, len(list(context._jsc.sc().statusTracker().getJobIdsForTag(tag)))


def test_sketches_of_unfiltered_tables_are_made_once(
    engine: Engine, spark: Any, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """bounds #15: tables too large for the driver are sketched in one job for a query; unfiltered
    ones once, filtered ones for each query; a new version of a table is sketched anew."""
    engine.batch.keys.most = 10
    many_to_many(engine)
    text = "SELECT count(*) AS n FROM a, b, c WHERE a.y = b.x AND b.y = c.x AND c.v < {}"

    def scanned(sql: str) -> list[str]:
        before = len(engine.batch.sketches.scanned)
        engine.batch(sql)
        return sorted(one.alias for one in engine.batch.sketches.scanned[before:])

    first = scanned(text.format(50))
    assert first == ["a", "b", "c"]
    assert engine.batch.log[-1].planning_jobs == 2, "rows of tables, and sketches"
    assert scanned(text.format(60)) == ["c"]
    assert engine.batch.log[-1].planning_jobs == 1
    _, jobs = jobs_of(spark, lambda: scanned(text.format(70)))
    _, none = jobs_of(spark, lambda: scanned(text.replace(" AND c.v < {}", "")))
    _, again = jobs_of(spark, lambda: scanned(text.replace(" AND c.v < {}", "")))
    assert jobs > 0
    assert none > 0, "c without its filter is a sketch of its own"
    assert again == 0
    engine.table("a", skewed(99, 2000, 7))
    assert scanned(text.format(80)) == ["a", "c"]


def test_sizes_from_sketches_are_bounds(engine: Engine, eager: None) -> None:
    sql = many_to_many(engine)
    exact = engine.batch(sql, reorder=False).collect()[0][0]
    engine.batch.keys.most = 2
    frame = engine.batch(sql)
    run = engine.batch.log[-1]
    assert run.bound is not None
    assert run.bound.kind.value == "bound"
    assert run.bound.rows is not None
    assert run.bound.rows >= exact
    assert run.reordered, run
    assert rows(frame) == rows(engine.batch(sql, reorder=False))


def test_columns_of_tables_are_read_once(engine: Engine, spark: Any, eager: None) -> None:
    """bounds #15, where tables are small: filters are evaluated here, no job but the first."""
    sql = many_to_many(engine)
    engine.batch(sql)
    assert engine.batch.log[-1].planning_jobs == 2
    _, jobs = jobs_of(spark, lambda: engine.batch(sql))
    assert jobs == 0
    engine.batch(sql + " AND a.v < 50")
    assert engine.batch.log[-1].planning_jobs == 1, "the column of the filter"
    engine.batch(sql + " AND a.v < 60")
    assert engine.batch.log[-1].planning_jobs == 0


def test_the_disaster_indicator_is_a_ratio() -> None:
    assert sizes.DISASTER > 1


# -- tables and texts ------------------------------------------------------------------------------


def test_a_dataframe_stays_one_until_a_query_reads_it(engine: Engine, spark: Any) -> None:
    read = spark.sparkContext.accumulator(0)

    def noted(parts: Any) -> Any:
        for part in parts:
            read.add(part.num_rows)
            yield part

    frame = spark.createDataFrame([(1, "A"), (2, "B")], "k BIGINT, n STRING")
    engine.table("t", frame.mapInArrow(noted, "k BIGINT, n STRING"))
    assert engine.sql("SHOW TABLES").to_pylist() == [{"name": "t", "rows": None}]
    assert read.value == 0
    assert rows(engine.batch("SELECT n FROM t WHERE k = 2")) == ["('B',)"]
    assert "t" not in engine.core.state.tables
    engine.feed("s", [{"k": 2, "ts": 0}], "k BIGINT, ts TIMESTAMP", "ts")
    query = engine.query("SELECT ISTREAM n FROM s [RANGE 1 HOUR], t WHERE s.k = t.k")
    engine.run()
    assert query.results().column("n").to_pylist() == ["B"]
    assert engine.sql("SHOW TABLES").to_pylist() == [{"name": "t", "rows": 2}]
    assert rows(engine.batch("SELECT n FROM t WHERE k = 1")) == ["('A',)"]


def test_tables_nothing_has_read_are_replaced_and_dropped(engine: Engine, spark: Any) -> None:
    for value in (1, 2):
        engine.table("t", spark.range(value, value + 1).withColumnRenamed("id", "k"))
    assert rows(engine.batch("SELECT k FROM t")) == ["(2,)"]
    with pytest.raises(ThalwegError, match="already defined differently"):
        engine.table("t", spark.range(1))
    engine.sql("DROP TABLE t")
    with pytest.raises(UnknownName):
        engine.batch("SELECT k FROM t")
    engine.table("t", spark.range(1))
    assert rows(engine.batch("SELECT id FROM t")) == ["(0,)"]


def test_the_newest_version_is_read(engine: Engine, spark: Any) -> None:
    engine.table("t", spark.range(1))
    engine.feed("s", [{"k": 0, "ts": 0}], "k BIGINT, ts TIMESTAMP", "ts")
    engine.query("SELECT ISTREAM k FROM s [RANGE 1 HOUR], t WHERE s.k = t.id")
    engine.run()
    engine.table("t", pa.table({"id": pa.array([7, 8], pa.int64())}), at=10**15)
    assert rows(engine.batch("SELECT id FROM t")) == ["(7,)", "(8,)"]
    engine.table("t", pa.table({"id": pa.array([8], pa.int64())}), at=2 * 10**15)
    assert rows(engine.batch("SELECT id FROM t")) == ["(8,)"]


def test_the_kept_rows_of_streams(engine: Engine) -> None:
    items = [{"k": i, "ts": i * 1_000_000} for i in range(5)]
    engine.feed("s", items, "k BIGINT, ts TIMESTAMP", "ts", retain="1 hour")
    engine.table("t", pa.table({"k": [1, 2]}))
    assert rows(engine.batch("SELECT k FROM s")) == []
    engine.run()
    assert rows(engine.batch("SELECT s.k FROM s, t WHERE s.k = t.k")) == ["(1,)", "(2,)"]
    with pytest.raises(BindError, match="windows"):
        engine.batch("SELECT k FROM s [RANGE 1 HOUR]")


def test_texts_of_other_languages(engine: Engine, spark: Any) -> None:
    """What only Spark knows is run by Spark, with a note; what nobody knows is refused by us."""
    engine.table("t", pa.table({"k": [1, 2, 2]}))
    assert rows(engine.batch("WITH u AS (SELECT k FROM t) SELECT stack(2, k, k) AS v FROM u")) != []
    assert "handed to Spark as it is" in str(engine.batch.log[-1])
    spark.range(3).createOrReplaceTempView("only_spark_knows")
    assert len(rows(engine.batch("SELECT id FROM only_spark_knows, t WHERE id = k"))) == 3
    with pytest.raises(UnknownName, match="nowhere"):
        engine.batch("SELECT * FROM nowhere")
    with pytest.raises(UnknownName, match="unknown column z"):
        engine.batch("SELECT z FROM t")
    engine.sql("CREATE VIEW two AS SELECT k FROM t WHERE k = 2")
    assert rows(engine.batch("SELECT two.k FROM two")) == ["(2,)", "(2,)"]
    assert rows(engine.batch("SELECT k FROM t UNION ALL SELECT k FROM two")).__len__() == 5
    assert rows(engine.batch("SELECT 'from t' AS k FROM t LIMIT 1;")) == ["('from t',)"]
