"""`Engine.batch`: a SELECT for Spark, its inner joins in the order that bounds say is best.

The text is bound by our binder, the free part of its joins (`written_join`) is ordered by sizes of
sub-joins, and the whole goes to Spark as SQL. The order changes only where predicted intermediate
rows are at most half of those of the order Spark has chosen; what our language does not know is
handed to Spark as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from thalweg.errors import BindError, ThalwegError
from thalweg.estimate.batch.partitioned_order import (
    PartitionedOrder,
    Rows,
    Tree,
    intermediate_rows,
    same_joins,
)
from thalweg.estimate.batch.rewritten import rewritten
from thalweg.estimate.batch.sizes import MOST_SETS, RowSizes, Sizes, trusted
from thalweg.estimate.batch.written_join import WrittenJoin, written_join
from thalweg.estimate.hypergraph import connected_sets
from thalweg.estimate.join_query import JoinInput, JoinQuery
from thalweg.estimate.join_rows import JoinRows
from thalweg.estimate.keys.keyed_table import KeyedTable
from thalweg.lang.binding.binder import bind_relation
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.parser import parse_query
from thalweg.runtime.session.core import EngineCore
from thalweg.spark.batch.frames import BatchFrames, TableFrames
from thalweg.spark.batch.join_tree import optimized_tree
from thalweg.spark.batch.key_rows import KeyInput, KeyRows
from thalweg.spark.batch.log import BatchLog, BatchRun, shape_of

ENOUGH_BETTER = 0.5
"""The share of Spark's intermediate rows that a new order may predict at most."""
FEW_ROWS = 1_000_000
"""Intermediate rows that Spark makes in the time that planning takes."""
_REORDER = "spark.sql.cbo.joinReorder.enabled"
_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


class Batch:
    """Runs SELECTs over the tables and kept rows of one engine: `engine.batch(sql)`. `log` has what
    was chosen for each, and how long planning and execution took."""

    def __init__(self, spark: SparkSession, core: EngineCore, given: TableFrames) -> None:
        self._spark = spark
        self._core = core
        self._frames = BatchFrames(spark, core, given)
        self.keys = KeyRows(spark)
        self.log = BatchLog(spark)

    def __call__(self, sql: str, *, reorder: bool = True) -> DataFrame:
        """One SELECT over tables, and over what is kept of streams (RETAIN), as a DataFrame.

        It is ordinary SQL, run by Spark. Inner joins at the beginning of FROM are joined in another
        order where guaranteed sizes predict at most half of the intermediate rows of Spark's own
        order; with `reorder` false never. `log` says what was chosen, and why.
        """
        begun, jobs = time.perf_counter(), self.keys.jobs
        run = BatchRun(_shape(sql), sql)
        found = self._planned(sql, run, reorder)
        run.planning = time.perf_counter() - begun - run.preparing
        run.planning_jobs = self.keys.jobs - jobs
        self.log.add(run)
        return found

    def close(self) -> None:
        self._frames.close()

    def _planned(self, sql: str, run: BatchRun, reorder: bool) -> DataFrame:
        text = sql.strip().removesuffix(";")
        try:
            query = parse_query(text)
            bind_relation(query, self._core.catalog, text)
        except ThalwegError as error:
            run.notes += (f"handed to Spark as it is: {error.message}",)
            return self._unread(text, error)
        text = self._frames.inlined(query, text)
        asis = self._analyzed(text)
        run.marks = _marks(asis)
        if not reorder or self.log.is_lost(run.shape):
            run.notes += ("as written: " + ("asked for" if not reorder else "reordering lost"),)
            return asis
        return self._ordered(text, asis, run)

    def _unread(self, text: str, refusal: ThalwegError) -> DataFrame:
        """A text that is not in our language; what Spark does not know either is refused in our
        words."""
        try:
            return self._spark.sql(self._frames.with_names(text))
        except (AnalysisException, ParseException) as error:
            raise refusal from error

    def _analyzed(self, text: str) -> DataFrame:
        """A text that we have bound."""
        try:
            return self._spark.sql(text)
        except (AnalysisException, ParseException) as error:
            said = str(error).splitlines()[0]
            raise BindError(
                f"Spark cannot run this: {said}",
                remedy="batch runs ordinary SQL: leave out windows and what is of streams alone",
            ) from error

    def _ordered(self, text: str, asis: DataFrame, run: BatchRun) -> DataFrame:
        query = parse_query(text)
        if not isinstance(query, ast.Select):
            run.notes += ("as written: UNION and the like are not taken apart",)
            return asis
        written = written_join(query, self._frames.catalog(), text)
        if written is None:
            run.notes += ("as written: no three inputs whose order is free",)
            return asis
        theirs = optimized_tree(asis, [s.alias for s in written.sources])
        if theirs is None:
            run.notes += ("as written: Spark's plan joins other inputs than the text",)
            return asis
        return self._better(written, theirs, asis, run)

    def _better(
        self, written: WrittenJoin, theirs: Tree, asis: DataFrame, run: BatchRun
    ) -> DataFrame:
        names = [s.alias for s in written.sources]
        run.written = run.order = theirs.text(names)
        inputs = self._inputs(written)
        whole_inputs = [i.unfiltered for i in inputs]
        if not self._prepared(whole_inputs, run):
            run.notes += ("as written: an input is larger than planning reads",)
            return asis
        if _is_cheap(self._sizes(written, whole_inputs), theirs):
            run.notes += ("as written: no intermediate result is large, whatever the filters",)
            return asis
        sizes = self._sizes(written, inputs)
        ours, rows = _best(sizes, self._small(written, sizes))
        whole = sizes.graph.whole
        run.bound, run.estimate = sizes.figure(whole), sizes.estimate(whole)
        run.rows, run.written_rows = (intermediate_rows(t, rows) for t in (ours, theirs))
        if same_joins(ours, theirs) or run.rows > ENOUGH_BETTER * run.written_rows:
            return asis
        return self._emitted(written, ours, sizes, asis, run)

    def _emitted(
        self, written: WrittenJoin, ours: Tree, sizes: Sizes, asis: DataFrame, run: BatchRun
    ) -> DataFrame:
        names = [s.alias for s in written.sources]
        text = rewritten(written, ours, self._small(written, sizes))
        with _set(self._spark, _REORDER, "false"):
            found = self._spark.sql(text)
            confirmed = optimized_tree(found, names)
        if found.schema != asis.schema:
            run.notes += ("as written: the columns of the new order differ",)
            return asis
        run.reordered, run.order, run.marks = True, ours.text(names), _marks(found)
        if confirmed is None or not same_joins(ours, confirmed):
            shown = "another one" if confirmed is None else confirmed.text(names)
            run.notes += (f"Spark's plan has not this order, but {shown}",)
        return found

    def _prepared(self, inputs: Sequence[KeyInput], run: BatchRun) -> bool:
        """Whether all relations are small enough for their keys to be here, as they are then: once
        for each version of a relation, whatever the queries."""
        begun = time.perf_counter()
        fits = max(self.keys.sizes(inputs)) <= self.keys.most
        if fits:
            self.keys.of(inputs)
        run.preparing = time.perf_counter() - begun
        return fits

    # -- what the order is made of -----------------------------------------------------------

    def _inputs(self, written: WrittenJoin) -> list[KeyInput]:
        found = []
        for one, source in zip(written.query.inputs, written.sources, strict=True):
            columns = tuple(dict.fromkeys(c for _, c in one.columns))
            version = None if source.relation is None else self._frames.version(source.relation)
            filters = written.filters[one.alias]
            found.append(KeyInput(source.text, one.alias, columns, filters, version))
        return found

    def _sizes(self, written: WrittenJoin, inputs: Sequence[KeyInput]) -> RowSizes:
        tables = dict(
            zip((r.alias for r in written.query.inputs), self.keys.of(inputs), strict=True)
        )

        def rows_of(one: JoinInput) -> KeyedTable:
            return tables[one.alias]

        return RowSizes(JoinRows.of(_unfiltered(written), rows_of))

    def _small(self, written: WrittenJoin, sizes: Sizes) -> int:
        """The inputs that may be sent to every machine: bound times width below Spark's limit."""
        limit = _bytes(str(self._spark.conf.get(_BROADCAST, "10485760")))
        found = 0
        for i, source in enumerate(written.sources):
            own = [c for n, c in written.columns.items() if n.startswith(f"{source.alias}.")]
            rows = sizes.figure(1 << i).rows
            width = 8 + sum(_width(c.type.name) for c in own)
            if rows is not None and 0 <= rows * width <= limit:
                found |= 1 << i
        return found


def _best(sizes: Sizes, small: int) -> tuple[Tree, Rows]:
    graph = sizes.graph
    sets = connected_sets(graph, MOST_SETS)
    proper = [s for s in sets if s & (s - 1) and s != graph.whole]
    rows = trusted(sizes, proper).rows
    order = PartitionedOrder(graph, sets, _but_the_whole(rows, graph.whole), small)
    several = sum(n * (n + 1) // 2 for n in (p.bit_count() for p in graph.components(graph.whole)))
    return (order.greedy() if len(sets) < several else order.best()), rows


def _but_the_whole(rows: Rows, whole: int) -> Rows:
    """Sizes without that of the whole, which all orders have in common."""

    def size(inputs: int) -> float:
        return 0.0 if inputs == whole else rows(inputs)

    return size


def _is_cheap(sizes: Sizes, tree: Tree) -> bool:
    def rows(inputs: int) -> float:
        found = sizes.figure(inputs).rows
        return float("inf") if found is None else float(found)

    return intermediate_rows(tree, rows) <= FEW_ROWS


def _unfiltered(written: WrittenJoin) -> JoinQuery:
    """The join over rows that have passed their filters already."""
    inputs = tuple(replace(r, predicates=(), conditions=()) for r in written.query.inputs)
    return replace(written.query, inputs=inputs)


def _marks(frame: DataFrame) -> tuple[int, ...]:
    """Attributes of a plan by which its executions are known again."""
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    found = []
    for i in range(min(leaves.size(), 8)):
        output = leaves.apply(i).output()
        if output.size():
            found.append(int(output.apply(0).exprId().id()))
    return tuple(found)


def _shape(sql: str) -> str:
    try:
        return shape_of(sql)
    except Exception:  # what cannot be read has no shape but itself
        return sql


def _width(name: str) -> int:
    return {"STRING": 40, "BINARY": 40, "DECIMAL": 16}.get(name, 8)


def _bytes(text: str) -> int:
    units = {"k": 10, "m": 20, "g": 30, "t": 40}
    word = text.strip().lower().rstrip("b")
    if word and word[-1] in units:
        return int(word[:-1]) << units[word[-1]]
    return int(word or 0)


@contextmanager
def _set(spark: SparkSession, key: str, value: str) -> Iterator[None]:
    """A setting of the session for a while."""
    before = spark.conf.get(key, None)
    spark.conf.set(key, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, before)
