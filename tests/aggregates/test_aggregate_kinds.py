"""What every aggregate must keep to, over the examples it gives of itself."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from thalweg.aggregates import AGGREGATE_KINDS, kind_named
from thalweg.aggregates.holdings import HELD
from thalweg.aggregates.kind import AggregateKind, DistinctRule, is_stem, kind_of
from thalweg.exec.aggregate.group_state import CLOSES, HASH, ROWS, SECOND
from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.expr import AggregateCall
from thalweg.plan.logical import Aggregate, walk
from thalweg.store.packs import TIME
from thalweg.testing.generators import case_of
from thalweg.testing.grid import check_case, load
from thalweg.testing.runner import Runner

EXAMPLES = [(kind, text) for kind in AGGREGATE_KINDS for text in kind.examples]
IDS = [text for _, text in EXAMPLES]
QUERIES = (
    "SELECT k, {call} AS a FROM s1 [RANGE 5 SECONDS] GROUP BY k",
    "SELECT {call} AS a FROM s1 [PARTITION BY g ROWS 2]",
    "SELECT g, {call} AS a FROM s1 GROUP BY g WITH (unbounded = true)",
)


def query(text: str, template: str = QUERIES[0]) -> str:
    return template.format(call=text)


def called(text: str) -> AggregateCall:
    given = case_of(query(text), 0)
    runner = load(Runner(), given)
    root = bind(parse_query(given.sql), runner.session.catalog, given.sql).root
    node = next(n for n in walk(root) if isinstance(n, Aggregate))
    return node.aggregates[0].call


def test_all_but_a_few_give_examples_and_no_name_is_taken_twice() -> None:
    of_models = ["integral", "coverage"]
    assert [k.name for k in AGGREGATE_KINDS if not k.examples] == ["grouping", *of_models]
    names = [n for k in AGGREGATE_KINDS for n in k.names]
    assert len(names) == len(set(names))
    assert all(k.ordered_set <= set(k.names) for k in AGGREGATE_KINDS)


@pytest.mark.parametrize(("kind", "text"), EXAMPLES, ids=IDS)
def test_a_call_carries_its_kind(kind: AggregateKind, text: str) -> None:
    call = called(text)
    assert kind_of(call) is kind
    assert kind_named(next(iter(kind.names))) is kind
    assert pickle.loads(pickle.dumps(call)) == call


def test_a_fresh_process_knows_the_aggregates_of_a_plan() -> None:
    calls = [called(text) for _, text in EXAMPLES]
    code = "import pickle, sys; print(*pickle.load(sys.stdin.buffer), sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(calls), capture_output=True, check=True
    )
    assert found.stdout.decode().splitlines() == [str(c) for c in calls]


@pytest.mark.parametrize(("kind", "text"), EXAMPLES, ids=IDS)
def test_state_has_the_columns_and_types_that_are_declared(kind: AggregateKind, text: str) -> None:
    given = case_of(query(text), 1)
    runner = load(Runner(epochs=3), given)
    runner.query(given.sql, "q")
    declared = dict(kind.state)
    if called(text).distinct and kind.distinct is DistinctRule.WRAPPED:
        declared |= HELD
    seen = {}

    def look(number: int) -> None:
        for packs in runner.core.state.queries["q"].operators.slots.values():
            for pack in packs:
                schema = runner.storage.read_table(pack.meta.name).schema
                seen.update({f.name: str(f.type) for f in schema})

    runner.run(look)
    own = {n: t for n, t in seen.items() if n not in (HASH, SECOND, ROWS, CLOSES, TIME)}
    assert own
    for column, dtype in own.items():
        stem = column.removeprefix("a0")
        assert stem in HELD or is_stem(kind, stem), f"{kind} does not declare {column}"
        wanted = declared[stem if stem in declared else stem.rstrip("0123456789")]
        assert {"double": "float64"}.get(dtype, dtype) == wanted


@pytest.mark.parametrize(("kind", "text"), EXAMPLES, ids=IDS)
@pytest.mark.parametrize("template", QUERIES)
def test_the_engine_does_what_it_means(kind: AggregateKind, text: str, template: str) -> None:
    check_case(case_of(query(text, template), IDS.index(text)), None)
