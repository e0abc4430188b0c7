"""Every rewrite does what its fixture says and keeps the answer, rejects included.

Fixtures are `tests/golden/rewrites/<rule>.sql`; `all_rules.sql` holds queries after all of them. A
fixture is a block: comments, the query up to a semicolon, the expected logical plan, a blank line.
Add a block and run the test; the failure prints the plan to review and paste. The streams are those
of `inputs()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ThalwegError
from thalweg.exec.expressions.constant_value import constant_value
from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.expr import AggregateCall, Column, Expr, Literal, Predicate
from thalweg.plan.logical import (
    Aggregate,
    Emit,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Window,
    walk,
)
from thalweg.plan.rewrites import optimize
from thalweg.plan.rewrites.fold_constants import fold_constants
from thalweg.plan.rewrites.prune_columns import prune_columns
from thalweg.plan.rewrites.push_filters import push_filters
from thalweg.plan.rewrites.split_conjunctions import split_conjunctions
from thalweg.runtime.lifecycle.query_catalog import Registered
from thalweg.runtime.session.session import Query
from thalweg.runtime.state.query_state import Definition
from thalweg.testing.compare import (
    canonical,
    column_values,
    difference,
    from_table,
    python_rows,
)
from thalweg.testing.generators import random_case
from thalweg.testing.grid import load
from thalweg.testing.reference import ReferenceResult, ReferenceStream, evaluate_query
from thalweg.testing.runner import Runner

GOLDEN = Path(__file__).parent.parent / "golden" / "rewrites"
RULES: dict[str, Callable[[Node], Node]] = {
    "fold_constants": partial(fold_constants, evaluate=constant_value),
    "split_conjunctions": split_conjunctions,
    "push_filters": push_filters,
    "prune_columns": prune_columns,
}


COMPANIES = pa.table({"sym": ["a", "b", None], "sector": ["tech", "food", "tech"]})


# --- fixtures


@dataclass(frozen=True)
class Fixture:
    file: str
    title: str
    sql: str
    plan: str


def fixtures() -> Iterator[Fixture]:
    for path in sorted(GOLDEN.glob("*.sql")):
        for block in path.read_text().strip().split("\n\n"):
            lines = block.splitlines()
            title = " ".join(line[2:].strip() for line in lines if line.startswith("--"))
            sql, _, plan = "\n".join(x for x in lines if not x.startswith("--")).partition(";")
            yield Fixture(path.stem, title, sql.strip(), plan.strip("\n"))


FIXTURES = list(fixtures())


def named(fixture: Fixture) -> str:
    return f"{fixture.file}: {fixture.title}"


def rewritten(query: BoundQuery, rule: str) -> BoundQuery:
    if rule == "all_rules":
        return optimize(query, constant_value)
    root = RULES[rule](query.root)
    assert isinstance(root, Emit)
    return replace(query, root=root)


# --- plans in words


def drawn(node: Node, depth: int = 0) -> str:
    """The logical plan, one node a line, inputs indented below."""
    lines = ["  " * depth + _node(node), *(drawn(child, depth + 1) for child in node.inputs)]
    return "\n".join(lines)


def _node(node: Node) -> str:
    if isinstance(node, Emit):
        return node.kind.value.lower()
    if isinstance(node, Project):
        return "project " + ", ".join(f"{expr(c.expr)} as {c.name}" for c in node.columns)
    if isinstance(node, Aggregate):
        keys = ", ".join(expr(k.expr) for k in node.keys) or "everything"
        return f"group by {keys}: " + ", ".join(expr(a.call) for a in node.aggregates)
    if isinstance(node, Filter):
        return f"filter {_predicates(node.predicates)}"
    if isinstance(node, Join):
        return f"join on {_predicates(node.predicates)}" if node.predicates else "join"
    if isinstance(node, Window):
        return f"window {node.window}"
    assert isinstance(node, Scan)
    columns = ", ".join(f.name.removeprefix(f"{node.alias}.") for f in node.fields)
    return f"scan {node.relation} as {node.alias} ({columns})"


def _predicates(predicates: tuple[Predicate, ...]) -> str:
    return " AND ".join(f"{{{expr(p.expr)}}}" for p in predicates)


def expr(node: Expr) -> str:
    """Prefix notation: what is folded and what is not must be plain to see."""
    if isinstance(node, Column):
        return node.name
    if isinstance(node, Literal):
        return repr(node.value)
    if isinstance(node, AggregateCall):
        return f"{node.kind.name}({', '.join(expr(a) for a in node.arguments) or '*'})"
    return f"{node.function}({', '.join(expr(a) for a in node.args)})"  # type: ignore[attr-defined]


# --- input for execution


def inputs() -> dict[str, pa.Table]:
    """Small streams with collisions, NULLs and zeros to divide by."""
    rng = Random("rewrites")
    rows = 60

    def some(*values: Any) -> list[Any]:
        return [rng.choice(values) for _ in range(rows)]

    def stamps() -> pa.Array:
        return pa.array(sorted(rng.randint(0, 40) * 1_000_000 for _ in range(rows)),
                        pa.timestamp("us", "UTC"))  # fmt: skip

    return {
        "trades": pa.table({
            "sym": some("a", "b", "c", None), "price": some(0.5, 1.0, 2.0, 3.5, None),
            "qty": pa.array(some(0, 1, 2, 3, 10, None), pa.int64()), "ts": stamps(),
        }),
        "quotes": pa.table({
            "sym": some("a", "b", "c", None), "bid": some(0.5, 1.0, 2.5, None),
            "size": pa.array(some(0, 1, 5, None), pa.int64()), "ts": stamps(),
        }),
    }  # fmt: skip


def runner() -> Runner:
    made = Runner(epochs=4, buckets=2)
    for name, table in inputs().items():
        made.stream(name, table, "ts")
    made.table("companies", COMPANIES)
    return made


def executed(made: Runner, bound: BoundQuery) -> tuple[Counter[Any], Counter[Any]]:
    """What the plan of a bound query emits, and what it rejects under which name."""
    core, plan = made.core, made.core.planner.physical(bound)
    core.registry.add("q", Definition(bound.text), plan, bound.options)
    core.queries.add(Registered("q", bound.text, bound=bound), [])
    made.run()
    query = made.queries["q"]
    return canonical(from_table(query.results())), rejections(query)


def rejections(query: Query) -> Counter[Any]:
    table = query.rejects()
    if not table.num_rows:
        return Counter()
    columns = [column_values(table[n]) for n in ("__ts", "expression", "reason")]
    return Counter(zip(*columns, strict=True))


def defined(bound: BoundQuery) -> ReferenceResult:
    """What a logical plan, rewritten or not, means by definition."""
    streams = {name: ReferenceStream.from_table(t) for name, t in inputs().items()}
    return evaluate_query(bound.root, streams, {"companies": python_rows(COMPANIES)})


def as_bound(made: Runner, sql: str) -> BoundQuery:
    return bind(parse_query(sql), made.session.catalog, sql)


# --- the tests


@pytest.mark.parametrize("fixture", FIXTURES, ids=named)
def test_the_plan_is_as_the_fixture_says(fixture: Fixture) -> None:
    plan = drawn(rewritten(as_bound(runner(), fixture.sql), fixture.file).root)
    assert plan == fixture.plan, f"{fixture.sql}\nis now\n{plan}"


@pytest.mark.parametrize("fixture", FIXTURES, ids=named)
def test_the_rewrite_keeps_the_answer_by_definition(fixture: Fixture) -> None:
    bound = as_bound(runner(), fixture.sql)
    before, after = defined(bound), defined(rewritten(bound, fixture.file))
    assert before.emitted, "the input gives this query nothing to say"
    assert difference(before.emitted, after.emitted) is None
    assert before.rejected == after.rejected


@pytest.mark.parametrize("fixture", FIXTURES, ids=named)
def test_the_engine_answers_the_same_with_and_without_the_rewrite(fixture: Fixture) -> None:
    """All rules, and all but the fixture's own (filters must sink before a plan can be made)."""
    made = runner()
    bound = as_bound(made, fixture.sql)
    emitted, rejected = executed(made, optimize(bound, constant_value))
    expected = defined(bound)
    assert difference(expected.emitted, emitted) is None
    assert rejected.total() == expected.rejected.total()
    rest = [r for r in RULES if r != fixture.file or r == "push_filters"]
    without = bound
    for rule in rest:
        without = rewritten(without, rule)
    now, now_rejected = executed(runner(), without)
    assert difference(emitted, now) is None
    assert rejected == now_rejected


@pytest.mark.parametrize("fixture", FIXTURES, ids=named)
def test_a_second_pass_changes_nothing(fixture: Fixture) -> None:
    once = rewritten(as_bound(runner(), fixture.sql), fixture.file)
    assert rewritten(once, fixture.file).root == once.root


@pytest.mark.parametrize("rule", [*RULES, "all_rules"])
def test_every_rule_has_fixtures(rule: str) -> None:
    assert sum(f.file == rule for f in FIXTURES) >= 3


def filters_below_row_windows(root: Node) -> list[Node]:
    return [
        n
        for n in walk(root)
        if isinstance(n, Window) and "ROWS" in str(n.window) and isinstance(n.input, Filter)
    ]


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_no_filter_ever_sinks_below_rows(first: int) -> None:
    """streamon #5: a filter is pushed below [RANGE], never below [ROWS]."""
    for seed in range(first, first + 50):
        case = random_case(seed)
        made = load(Runner(), case)
        optimised = made.core.planner.bind(case.sql)
        assert not filters_below_row_windows(optimised.root), case.sql


def test_pushing_below_rows_would_change_the_answer() -> None:
    """streamon #5: the trap is real, the last two rows over 1 are not the last two if over 1."""
    made = runner()
    bound = as_bound(made, "SELECT RSTREAM price FROM trades [ROWS 2] WHERE price > 1")
    project = bound.root.input
    assert isinstance(project, Project)
    above = project.input
    assert isinstance(above, Filter)
    window = above.input
    assert isinstance(window, Window)
    wrong = replace(window, input=Filter(window.input, above.predicates))
    pushed = replace(bound, root=replace(bound.root, input=replace(project, input=wrong)))
    right = defined(bound).emitted
    assert difference(right, defined(pushed).emitted) is not None
    emitted, _ = executed(made, optimize(bound, constant_value))
    assert difference(right, emitted) is None


def test_random_queries_keep_their_rejects_under_every_rule() -> None:
    for seed in range(120):
        case = random_case(seed)
        bound = as_bound(load(Runner(), case), case.sql)
        streams = {
            n: ReferenceStream.from_table(s.table, s.timestamp) for n, s in case.streams.items()
        }
        tables = {n: python_rows(t) for n, t in case.tables.items()}
        before = evaluate_query(bound.root, streams, tables)
        for rule in (*RULES, "all_rules"):
            after = evaluate_query(rewritten(bound, rule).root, streams, tables)
            assert difference(before.emitted, after.emitted) is None, (rule, case.sql)
            assert before.rejected.total() == after.rejected.total(), (rule, case.sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sym FROM trades [RANGE 5 SECONDS] WHERE price > 1",
        "SELECT sym FROM trades [NOW] WHERE 10 / qty > 1",
        "SELECT t.sym FROM trades [NOW] t, quotes [NOW] q WHERE t.sym = q.sym",
    ],
)
def test_a_plan_that_was_not_rewritten_is_planned_right_or_refused(sql: str) -> None:
    """A planner may ask for rewritten plans; it may not lose a filter in silence."""
    made = runner()
    bound = as_bound(made, sql)
    try:
        emitted, _ = executed(made, bound)
    except (ThalwegError, AssertionError):
        return
    assert difference(defined(bound).emitted, emitted) is None
