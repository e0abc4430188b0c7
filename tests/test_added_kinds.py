"""A window kind, a relation kind with its own clause, an aggregate and a watch, added from this
file alone, and run through the invariance grid: time passes, plans switch, drivers restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from thalweg.adapt.filters.ordering import Fork, Order, Ordering, Settings
from thalweg.adapt.filters.watch import FILTERS
from thalweg.adapt.kinds import WATCH_KINDS
from thalweg.adapt.planlog import Reason
from thalweg.adapt.profiler import Key
from thalweg.adapt.trial import Trial
from thalweg.adapt.watch import Candidate, Known, Watch, WatchKind, WatchProfiler
from thalweg.aggregates.accumulator import (
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    running_counts,
    used_weights,
)
from thalweg.aggregates.kind import FLOAT, AggregateKind, BindCall
from thalweg.columns.frame import Changes, Frame
from thalweg.columns.runs import sort_into_runs
from thalweg.columns.vector import Vector
from thalweg.errors import ParseError, UnboundedState
from thalweg.exec.aggregate.group_by import normalized, shifted
from thalweg.exec.aggregate.group_state import look_up, state_table
from thalweg.exec.relations.protocol import RUNS, RelationStep, runs
from thalweg.exec.tactics import Observation
from thalweg.features import Feature
from thalweg.fluent.text import query_text
from thalweg.instants import Ints, format_duration
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.parser import parse_query
from thalweg.lang.parsing.select_clauses import ClauseBinder, ClauseKind
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.expr import AggregateCall
from thalweg.plan.logical import Node, Schema
from thalweg.plan.physical import QueryPlan
from thalweg.plan.planner import LOWERS, Drafts, lowers
from thalweg.plan.predicate_order import Ordered, orderable, reordered
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.plan.types import DOUBLE, DataType
from thalweg.plan.values import normal_row
from thalweg.testing.generators import case_of
from thalweg.testing.grid import check_case, load
from thalweg.testing.runner import Runner
from thalweg.windows.protocol import (
    OrderedWindow,
    R,
    WindowBinder,
    WindowCursor,
    WindowKind,
    WindowWriter,
    named_partition,
    partition_text,
)

# -- [PARTITION BY c FRESH d]: the newest row of a partition, for at most d ------------------------


@dataclass(frozen=True, slots=True)
class FreshWindow(OrderedWindow):
    name = "fresh"
    age: int
    partition_by: tuple[str, ...] = ()

    @property
    def expires(self) -> bool:
        return True

    def lifetimes(self, partition: Ints, ts: Ints, until: int) -> tuple[Ints, Ints]:
        ends = ts + self.age + 1
        same = partition[1:] == partition[:-1]
        ends[:-1][same] = np.minimum(ends[:-1][same], ts[1:][same])
        return ts, ends

    @property
    def reach(self) -> int:
        return self.age

    def reaching(self, reach: int) -> FreshWindow:
        return replace(self, age=reach)

    def content(self, rows: Sequence[R], instant: int) -> list[R]:
        return [r for r in rows[-1:] if instant - r.ts <= self.age]

    def changes(self, ts: int) -> Iterator[int]:
        yield ts
        yield ts + self.age + 1

    def __str__(self) -> str:
        return f"[{named_partition(self.partition_by)}FRESH {format_duration(self.age)}]"


@dataclass(frozen=True, slots=True)
class FreshClause:
    age: int
    partition_by: tuple[Any, ...] = ()

    def bind(self, binder: WindowBinder) -> FreshWindow:
        return FreshWindow(self.age, binder.columns(self.partition_by))

    def text(self, writer: WindowWriter) -> str:
        return f"{partition_text(writer, self.partition_by)}FRESH {writer.duration(self.age)}"


def _fresh(c: WindowCursor, by: tuple[Any, ...]) -> FreshClause | None:
    return FreshClause(c.duration(), by) if c.word("FRESH") else None


FRESH = WindowKind("FRESH d", _fresh, ("[PARTITION BY k FRESH 3 SECONDS]",), takes_partition=True)

# -- SELECT ... OFTEN n: rows that are there at least n times --------------------------------------

OFTEN_COUNTS = SlotKind("often", SlotRule.NEWEST, "how often rows are there")


@dataclass(frozen=True, slots=True)
class Often(Node):
    input: Node
    least: int

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def by_definition(self, evaluator: Any, instant: int) -> Any:
        rows = evaluator.relation(self.input, instant)
        counts = Counter(normal_row(row.values.values()) for row in rows)
        return [r for r in rows if counts[normal_row(r.values.values())] >= self.least]

    def keeps_for_ever(self, endless: str) -> list[str]:
        return [f"OFTEN over all of {endless} keeps every row"]


@dataclass(frozen=True, slots=True)
class OftenRelation(Relation):
    slots = (OFTEN_COUNTS,)
    least: int
    inputs: tuple[int, ...] = field()
    schema: Schema = field()

    @property
    def only_grows(self) -> bool:
        return True

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def explained(self, show: Describer) -> list[str]:
        return [f"  rows of {show.inputs(self.inputs)} that are there {self.least} times or more"]


def _lower(drafts: Drafts, node: Often) -> int:
    return drafts.append(OftenRelation(node.least, (drafts.relation(node.input),), node.schema))


def _run(step: RelationStep, relation: OftenRelation) -> Changes:
    (changes,) = step.inputs()
    columns = [normalized(v) for v in changes.frame.columns.values()]
    runs = sort_into_runs(columns, changes.ts)
    if not runs.groups:
        return changes
    loaded = look_up(step.ctx, step.stored(OFTEN_COUNTS), runs, {})
    counts = running_counts(changes.signs[runs.order], runs, loaded.ints("c0"))
    last = counts[runs.last_versions]
    step.keep(OFTEN_COUNTS, state_table(runs, last, {"c0": last}))
    there = np.where(counts >= relation.least, counts, 0)
    grown = there[runs.groups :] - shifted(there, runs.heads, runs.groups)
    example = runs.example[runs.group_of_run]
    rows = np.repeat(np.arange(runs.runs), np.abs(grown))
    frame: Frame = changes.frame.take(example[rows])
    return Changes(frame, runs.instants[rows], np.sign(grown[rows]).astype(np.int8))


@dataclass(frozen=True, slots=True)
class OftenClause:
    least: int

    def bind(self, binder: ClauseBinder, node: Node) -> Node:
        return Often(node, self.least)

    def text(self, writer: WindowWriter) -> str:
        return f"OFTEN {self.least}"


def _often(c: Cursor) -> OftenClause:
    return OftenClause(c.integer("how often"))


OFTEN = ClauseKind("OFTEN", _often, ("OFTEN 2",))

# -- half_count(x): half the number of values, as a float that is state ----------------------------


@dataclass(slots=True)
class HalfCount:
    prefix: str
    side_types: tuple[DataType, ...] = ()
    _halves: Any = None

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        before = loaded.floats(f"{self.prefix}h")
        used = used_weights(arguments, signed)
        counts = running_counts(used, signed.runs, np.zeros(signed.runs.groups, np.int64))
        whole = np.concatenate([before, before[signed.runs.group_of_run]])
        self._halves = whole + counts / 2

    def values(self) -> Vector:
        return Vector(DOUBLE, self._halves)

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        return {f"{self.prefix}h": self._halves[last]}, None


def _bound(call: BindCall) -> AggregateCall:
    return AggregateCall(DOUBLE, False, HALF_COUNT, (call.one(),))


def _accumulator(call: AggregateCall, prefix: str) -> HalfCount:
    return HalfCount(prefix)


HALF_COUNT = AggregateKind(
    name="half_count",
    names={"half_count": _bound},
    state={"h": FLOAT},
    accumulate=_accumulator,
    reference=lambda call, rows: len(rows) / 2,
    examples=("half_count(x)",),
)
KINDS = (HALF_COUNT,)

# -- a watch that asks the predicates of a conjunction in turns ------------------------------------

ROWS = ("rows",)


@dataclass
class RowsSeen:
    """A statistic: how many rows came."""

    total: int = 0

    def observe(self, rows: int) -> None:
        self.total += rows


class TurnsWatch(Watch[Order]):
    """After every epoch with rows the first predicate becomes the last."""

    def __init__(self, conjunction: Ordered) -> None:
        super().__init__(conjunction.predicates, "turns", Trial())
        self._rows = RowsSeen()
        self._judged = 0
        self._order = tuple(range(len(conjunction.predicates)))
        self._labels = [p.label for p in conjunction.predicates]
        self._predicates = conjunction.predicates

    def statistics(self) -> dict[Key, Any]:
        return {ROWS: self._rows}

    def tactic(self, seed: int, part: int, parts: int) -> Fork:
        return Fork(Ordering(Settings(len(self._order)), self._order), seed)

    def observe(self, portion: Sequence[Observation], profiler: WatchProfiler) -> Sequence[Any]:
        profiler.record(ROWS, sum(one.rows for one in portion))
        return ()

    @property
    def choice(self) -> Order:
        return self._order

    def candidates(self, compare: bool) -> Sequence[Candidate[Order]]:
        found = [Candidate(self._order)]
        if self._rows.total > self._judged:
            self._judged = self._rows.total
            first, second = (self._labels[i] for i in self._order[:2])
            why = Reason("a turn is over", first, second, 0, 0, self._rows.total)
            found.append(Candidate((*self._order[1:], self._order[0]), why))
        return found

    def cost(self, choice: Order) -> float:
        return 1.0 + choice[0]

    def take(self, choice: Order) -> None:
        self._order = choice

    def applied(self, plan: QueryPlan) -> QueryPlan:
        return reordered(plan, self._predicates, self._order)

    def shown(self, choice: Order) -> tuple[str, ...]:
        return tuple(self._labels[i] for i in choice)

    def kept(self) -> list[int]:
        return list(self._order)

    def resume(self, kept: Any) -> None:
        self._order = tuple(kept)

    def lines(self, profiler: WatchProfiler) -> list[str]:
        return [f"turns after {self._rows.total} rows"]


def _turns(plan: QueryPlan, options: QueryOptions, known: Known) -> list[TurnsWatch]:
    return [TurnsWatch(conjunction) for conjunction in orderable(plan)]


TURNS = WatchKind("turns", _turns)

# -- what holds of them ----------------------------------------------------------------------------

ADDED = Feature(
    "added in a test",
    windows=(FRESH,),
    aggregates=(HALF_COUNT,),
    clauses=(OFTEN,),
    slots=(OFTEN_COUNTS,),
    watches=(TURNS,),
)


@pytest.fixture(autouse=True)
def added() -> Iterator[None]:
    """The kinds are in the tables while a test runs; turns are taken instead of learned orders."""
    WATCH_KINDS.remove(FILTERS)
    ADDED.add()
    lowers(Often)(_lower)
    runs(OftenRelation)(_run)
    yield
    del LOWERS[Often], RUNS[OftenRelation]
    ADDED.remove()
    WATCH_KINDS.insert(0, FILTERS)


CASES = {
    "window": "SELECT k, x FROM s1 [PARTITION BY k FRESH 3 SECONDS]",
    "window that joins": "SELECT DSTREAM a.k, b.x FROM s1 [PARTITION BY k FRESH 4 SECONDS] a, "
    "s1 [RANGE 2 SECONDS] b WHERE a.k = b.k",
    "window of the whole stream": "SELECT count(*) AS n FROM s1 [FRESH 2 SECONDS]",
    "window that repeats": "SELECT RSTREAM k FROM s1 [PARTITION BY g FRESH 2 SECONDS]",
    "relation": "SELECT k, g FROM s1 [RANGE 6 SECONDS] OFTEN 2",
    "relation over groups": "SELECT count(*) AS n FROM s1 [RANGE 5 SECONDS] GROUP BY k OFTEN 2",
    "relation below": "SELECT sum(k) AS s FROM (SELECT k FROM s1 [RANGE 6 SECONDS] OFTEN 3) "
    "GROUP BY k",
    "aggregate": "SELECT k, half_count(x) AS h FROM s1 [RANGE 5 SECONDS] GROUP BY k",
    "aggregate without end": "SELECT half_count(x) AS h FROM s1",
    "distinct aggregate": "SELECT half_count(DISTINCT g) AS h FROM s1 [ROWS 4]",
    "watch": "SELECT k FROM s1 [RANGE 3 SECONDS] WHERE k > 0 AND g > 0 AND x IS NOT NULL",
    "all of them": "SELECT half_count(x) AS h FROM s1 [PARTITION BY k FRESH 3 SECONDS] "
    "WHERE k >= 0 AND g >= 0 GROUP BY g OFTEN 1",
}


@pytest.mark.parametrize("sql", CASES.values(), ids=CASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_grid_holds(sql: str, seed: int) -> None:
    check_case(case_of(sql, seed, rows=30))


def test_text_is_read_back() -> None:
    for sql in CASES.values():
        text = query_text(parse_query(sql))
        assert "FRESH" in text or "FRESH" not in sql
        assert "OFTEN" in text or "OFTEN" not in sql
        assert query_text(parse_query(text)) == text


def test_words_of_clauses_are_no_aliases() -> None:
    query = parse_query("SELECT k FROM s1 OFTEN 2")
    assert query.sources[0].alias is None  # type: ignore[union-attr]


def test_messages_and_explain_know_them() -> None:
    runner = load(Runner(), case_of("", 0))
    with pytest.raises(ParseError, match="FRESH d"):
        runner.query("SELECT k FROM s1 [NOTHING]", "q")
    text = runner.explain("SELECT k FROM s1 [RANGE 6 SECONDS] OFTEN 2")
    assert "rows of relation 0 that are there 2 times or more" in text
    assert "routing: by s1.k, in 256 shares" in text
    with pytest.raises(UnboundedState, match="OFTEN over all of s1 keeps every row"):
        runner.query("SELECT k FROM s1 OFTEN 2", "endless")
    assert "s1: [PARTITION BY s1.k FRESH 3 s]" in runner.explain(CASES["window"])


def test_rows_expire_while_time_passes() -> None:
    runner = load(Runner(), case_of("", 0), idle="1 second")
    query = runner.query("SELECT DSTREAM k FROM s1 [FRESH 3 SECONDS]", "q")
    rows = case_of("", 0).streams["s1"].table
    runner.feed({"s1": rows})
    runner.tick(1_500_000)
    before = query.results().num_rows
    runner.tick(60_000_000)
    assert query.results().num_rows == before + 1


def test_an_added_watch_takes_turns_and_goes_on_after_a_restart() -> None:
    case = case_of(CASES["watch"], 0, rows=30)
    runner = load(Runner(epochs=6, restarts=(3,)), case)
    query = runner.query(case.sql, "q")
    runner.run()
    first = [s.new[0] for s in query.plan_log]
    assert first == ["g > 0", "NOT x IS NULL", "k > 0", "g > 0", "NOT x IS NULL", "k > 0"]
    assert {s.statistic for s in query.plan_log} == {"a turn is over"}
    assert [p.label for p in query.plan.leaves[0].filters] == ["k > 0", "g > 0", "NOT x IS NULL"]
    text = query.explain(adapt=True)
    assert "turns after " in text
    assert "considered:" in text
    assert query.stats()["adapt"]["turns"] == []
