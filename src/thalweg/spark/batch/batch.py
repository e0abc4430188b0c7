"""`Engine.batch`: a SELECT for Spark, its inner joins in the order that bounds say is best.

The text is bound by our binder, the free part of its joins (`written_join`) is ordered by sizes of
sub-joins, and the whole goes to Spark as SQL. The order changes only where predicted intermediate
rows are at most half of those of the order Spark has chosen; what our language does not know is
handed to Spark as it is.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from math import prod

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from thalweg.errors import BindError, ThalwegError
from thalweg.estimate.allocation import allocations
from thalweg.estimate.batch.implied_filters import with_implied_filters
from thalweg.estimate.batch.partitioned_order import (
    PartitionedOrder,
    Rows,
    Tree,
    intermediate_rows,
    same_joins,
)
from thalweg.estimate.batch.rewritten import rewritten
from thalweg.estimate.batch.sizes import MOST_SETS, RowSizes, Sizes, SketchSizes, trusted
from thalweg.estimate.batch.written_join import WrittenJoin, written_join
from thalweg.estimate.hypergraph import Hypergraph, connected_sets, members
from thalweg.estimate.join_query import JoinInput
from thalweg.estimate.join_rows import JoinRows
from thalweg.estimate.keys.key_type import key_type
from thalweg.lang.binding.binder import bind_relation
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.expr import columns_of
from thalweg.plan.types import DataType
from thalweg.runtime.session.core import EngineCore
from thalweg.spark.batch.frames import BatchFrames, TableFrames
from thalweg.spark.batch.join_tree import PlannedTree, optimized_tree
from thalweg.spark.batch.key_rows import KeptColumns, KeyRows
from thalweg.spark.batch.log import BatchLog, BatchRun, shape_of
from thalweg.spark.batch.sketches import SketchInput, SparkSketches, distinct_keys

ENOUGH_BETTER = 0.5
"""The share of Spark's intermediate rows that a new order may predict at most."""
FEW_ROWS = 20_000_000
"""Intermediate rows that Spark makes in the time in which it analyzes another text."""
MANY_ROWS = 200_000
"""Rows whose shuffle takes as long as the analysis of another text."""
SKETCH_CELLS = 4096
MOST_SHAPES = 4
_REORDER = "spark.sql.cbo.joinReorder.enabled"
_BROADCAST = "spark.sql.autoBroadcastJoinThreshold"


class Batch:
    """Runs SELECTs over the tables and kept rows of one engine: `engine.batch(sql)`. `log` has what
    was chosen for each, and how long planning and execution took."""

    def __init__(self, spark: SparkSession, core: EngineCore, given: TableFrames) -> None:
        self._spark = spark
        self._core = core
        self.keys = KeyRows(spark)
        self.sketches = SparkSketches(spark)
        self._frames = BatchFrames(spark, core, given, self._forget)
        self.log = BatchLog(spark)

    def __call__(self, sql: str, *, reorder: bool = True) -> DataFrame:
        """One SELECT over tables, and over what is kept of streams (RETAIN), as a DataFrame.

        It is ordinary SQL, run by Spark. Inner joins at the beginning of FROM are joined in another
        order where guaranteed sizes predict at most half of the intermediate rows of Spark's own
        order; with `reorder` false never. `log` says what was chosen, and why.
        """
        begun, jobs = time.perf_counter(), self._jobs
        run = BatchRun(_shape(sql), sql, begun=time.time() * 1000)
        found = self._planned(sql, run, reorder)
        run.planning = time.perf_counter() - begun - run.preparing
        run.planning_jobs = self._jobs - jobs
        run.planned = time.time() * 1000
        self.log.add(run)
        return found

    @property
    def _jobs(self) -> int:
        return self.keys.jobs + self.sketches.jobs

    def _forget(self, view: str) -> None:
        self.keys.forget(view)
        self.sketches.forget(view)

    def close(self) -> None:
        """Take back the names that Spark was given."""
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
        _mark(run, asis)
        if not reorder or self.log.is_lost(run.shape):
            run.notes += ("as written: " + ("asked for" if not reorder else "reordering lost"),)
            return asis
        try:
            return self._ordered(text, asis, run)
        except (ThalwegError, AnalysisException, ParseException) as error:
            # what cannot be sized, or put in another way, can still be run
            said = error.message if isinstance(error, ThalwegError) else str(error).splitlines()[0]
            run.notes += (f"as written: {said}",)
            run.reordered, run.order, run.broadcast = False, run.written, ()
            return asis

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
        theirs = optimized_tree(asis, [s.alias for s in written.sources], self._limit)
        if theirs is None:
            run.notes += ("as written: Spark's plan joins other inputs than the text",)
            return asis
        return self._better(written, theirs, asis, run)

    def _better(
        self, written: WrittenJoin, theirs: PlannedTree, asis: DataFrame, run: BatchRun
    ) -> DataFrame:
        names = [s.alias for s in written.sources]
        run.written = run.order = theirs.tree.text(names)
        sizes = self._sizes(written, run)
        if sizes is None:
            run.notes += ("as written: subqueries and products are not sized",)
            return asis
        whole = sizes.graph.whole
        run.asked, run.estimate = partial(sizes.figure, whole), sizes.estimate(whole)
        small = self._small(written, sizes)
        chosen = self._chosen(sizes, theirs.tree, small, run)
        if chosen is None and not _saves_shuffles(sizes, small & theirs.large):
            return asis
        return self._emitted(written, chosen or theirs.tree, small, asis, run)

    def _chosen(self, sizes: Sizes, theirs: Tree, small: int, run: BatchRun) -> Tree | None:
        """Another order, if it is much better."""
        if intermediate_rows(theirs, _bounds(sizes)) < FEW_ROWS:
            run.notes += ("in Spark's order: no intermediate result is large",)
            return None
        ours, rows = _best(sizes, small)
        run.rows, run.written_rows = (intermediate_rows(t, rows) for t in (ours, theirs))
        is_better = run.rows <= ENOUGH_BETTER * run.written_rows
        if same_joins(ours, theirs) or not is_better or run.written_rows - run.rows < FEW_ROWS:
            run.notes += ("in Spark's order: none is much better",)
            return None
        run.reordered = True
        return ours

    def _emitted(
        self, written: WrittenJoin, tree: Tree, small: int, asis: DataFrame, run: BatchRun
    ) -> DataFrame:
        names = [s.alias for s in written.sources]
        text = rewritten(written, tree, small)
        with _set(self._spark, _REORDER, "false"):
            found = self._spark.sql(text)
            confirmed = optimized_tree(found, names)
        if found.schema != asis.schema:
            run.reordered = False
            run.notes += ("as written: the columns of the new text differ",)
            return asis
        run.order, run.broadcast = tree.text(names), tuple(names[i] for i in members(small))
        _mark(run, found)
        if confirmed is None or not same_joins(tree, confirmed.tree):
            shown = "another one" if confirmed is None else confirmed.tree.text(names)
            run.notes += (f"Spark's plan has not this order, but {shown}",)
        return found

    # -- what the order is made of -----------------------------------------------------------

    def _sizes(self, written: WrittenJoin, run: BatchRun) -> Sizes | None:
        """Sizes of sub-joins; None where there is no way to know them cheaply."""
        begun = time.perf_counter()
        views = [self._frames.view(s.relation) for s in written.sources]
        known = [v for v in views if v is not None]
        if len(known) < len(views):
            return None
        fits = self.keys.fits(known)
        run.preparing = time.perf_counter() - begun
        return self._of_rows(written, known, run) if fits else self._of_sketches(written)

    def _of_rows(self, written: WrittenJoin, views: list[str], run: BatchRun) -> Sizes:
        """From the columns of all tables, filtered here."""
        begun = time.perf_counter()
        query = with_implied_filters(written.query, written.columns)
        wanted = [
            KeptColumns(v, _columns(written, r)) for v, r in zip(views, query.inputs, strict=True)
        ]
        found = self.keys.of(wanted)
        run.preparing += time.perf_counter() - begun
        tables = dict(zip((r.alias for r in query.inputs), found, strict=True))
        return RowSizes(JoinRows.of(query, lambda one: tables[one.alias]))

    def _of_sketches(self, written: WrittenJoin) -> Sizes | None:
        """From sketches that Spark makes: tables are larger than a driver should hold."""
        graph = Hypergraph.of(written.query)
        if any(not edge for edge in graph.edges):
            return None
        shapes = _shapes(graph)
        safe = frozenset(a.name for a in written.query.attributes if a.null_safe)
        types = {a: str(_key_type(written, a)) for a in graph.attributes}
        inputs = [
            SketchInput(
                s.text, r.alias, tuple((a, r.column(a), types[a]) for a in edge), shapes[i],
                written.filters[r.alias], safe & set(edge),
            )
            for i, (s, r, edge) in enumerate(
                zip(written.sources, written.query.inputs, graph.edges, strict=True)
            )
        ]  # fmt: skip
        found = self.sketches.of(inputs)
        return SketchSizes(graph, found, [distinct_keys(s) for s in found])

    @property
    def _limit(self) -> int:
        """The bytes that Spark sends to every machine rather than move both sides of a join."""
        return _bytes(str(self._spark.conf.get(_BROADCAST, "10485760")))

    def _small(self, written: WrittenJoin, sizes: Sizes) -> int:
        """The inputs that may be sent to every machine: bound times width below Spark's limit."""
        found = 0
        for i, source in enumerate(written.sources):
            own = [c for n, c in written.columns.items() if n.startswith(f"{source.alias}.")]
            rows = sizes.figure(1 << i).rows
            width = 8 + sum(_width(c.type.name) for c in own)
            if rows is not None and rows * width <= self._limit:
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


def _saves_shuffles(sizes: Sizes, small: int) -> bool:
    """Whether Spark would move a large input to meet one that is small."""
    sides = [sizes.figure(1 << i).rows or 0 for i in range(len(sizes.graph.edges))]
    return bool(small) and max(sides) >= MANY_ROWS


def _bounds(sizes: Sizes) -> Rows:
    def rows(inputs: int) -> float:
        found = sizes.figure(inputs).rows
        return float("inf") if found is None else float(found)

    return rows


def _shapes(graph: Hypergraph) -> list[tuple[tuple[int, ...], ...]]:
    """Per input the shapes of its sketches: those of the finest allocations, coarser ones are made
    of them."""
    chosen = [
        a
        for a in allocations(graph, connected_sets(graph, MOST_SETS), SKETCH_CELLS)
        if any(prod(a[x] for x in e) == SKETCH_CELLS for e in graph.edges)
    ]
    return [
        tuple(dict.fromkeys(tuple(one[a] for a in edge) for one in chosen[-MOST_SHAPES:]))
        for edge in graph.edges
    ]


def _key_type(written: WrittenJoin, attribute: str) -> DataType:
    inputs = (r for r in written.query.inputs if attribute in r.attributes)
    return key_type([written.columns[f"{r.alias}.{r.column(attribute)}"].type for r in inputs])


def _but_the_whole(rows: Rows, whole: int) -> Rows:
    """Sizes without that of the whole, which all orders have in common."""

    def size(inputs: int) -> float:
        return 0.0 if inputs == whole else rows(inputs)

    return size


def _columns(written: WrittenJoin, one: JoinInput) -> tuple[tuple[str, DataType], ...]:
    """The columns that keys and filters of an input read, with their types."""
    names = [f"{one.alias}.{c}" for _, c in one.columns]
    names += [n for p in one.predicates for n in sorted(columns_of(p.expr))]
    chosen = (written.columns[n] for n in dict.fromkeys(names))
    return tuple((c.name.split(".", 1)[1], c.type) for c in chosen)


def _mark(run: BatchRun, frame: DataFrame) -> None:
    """Note the attributes of a plan by which its executions are known again."""
    execution = frame._jdf.queryExecution()
    leaves, output = execution.optimizedPlan().collectLeaves(), execution.analyzed().output()
    first = [leaves.apply(i).output() for i in range(min(leaves.size(), 8))]
    run.marks = tuple(int(o.apply(0).exprId().id()) for o in first if o.size())
    run.outputs = tuple(int(output.apply(i).exprId().id()) for i in range(min(output.size(), 8)))


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
