"""What every kind of relation must keep to."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from thalweg.exec.relations import RUNS
from thalweg.plan import logical
from thalweg.plan.logical import Node
from thalweg.plan.physical import QueryPlan
from thalweg.plan.planner import LOWERS
from thalweg.plan.relations.protocol import Relation, Together
from thalweg.plan.state_slots import SLOT_KINDS
from thalweg.testing import Runner

EXAMPLES = {
    "Block": "SELECT a.k, count(*) AS n FROM s [RANGE 9 SECONDS] a, s [ROWS 4] b WHERE a.k = b.k "
    "AND a.v > 1 AND a.v < 9 GROUP BY a.k",
    "Counted": "SELECT DISTINCT k FROM s [RANGE 9 SECONDS]",
    "UnionAll": "SELECT k FROM s [RANGE 9 SECONDS] UNION ALL SELECT v FROM s [NOW]",
    "Sequenced": "SELECT k, lag(v) OVER (PARTITION BY k) AS before FROM s",
    "ModeledRelation": "SELECT k, x FROM s MODEL (x = v) FOR 9 SECONDS",
    "Fitted": "SELECT k, v FROM s MODEL (FIT v DEGREE 1 WITHIN 0.5)",
    "Predicted": "SELECT k, x FROM s MODEL (x = v * t) WHERE x > 4 WITH (release = 'eager')",
    "Solved": "SELECT k, x FROM s MODEL (x = v * t) WHERE x > 4",
    "Mapped": "SELECT k, x * x AS square FROM s MODEL (x = v * t)",
    "Shown": "SELECT k, x FROM s MODEL (x = v * t)",
    "Sampled": "SELECT k, x FROM s MODEL (x = v * t) SAMPLE EVERY 2 SECONDS",
    "Evaluated": "SELECT k, exp(x) AS e FROM s MODEL (x = v * t) SAMPLE EVERY 2 SECONDS",
    "Summed": "SELECT k, avg(x) AS a, coverage(x) AS c FROM s [RANGE 9 SECONDS] MODEL (x = v) "
    "GROUP BY k",
    "Enveloped": "SELECT max(x) AS most FROM s MODEL (x = v * t)",
    "WindowedExtremes": "SELECT k, min(x) AS least FROM s [RANGE 9 SECONDS] MODEL (x = v * t) "
    "GROUP BY k",
    "Delayed": "SELECT RSTREAM max(x) AS most FROM s [RANGE 9 SECONDS SLIDE 3 SECONDS] "
    "MODEL (x = v * t)",
    "Restored": "SELECT k, x FROM kept WHERE x > 4",
    "Combined": "SELECT k, max(x) - min(x) AS spread FROM s MODEL (x = v * t) GROUP BY k",
    "Thinned": "SELECT RSTREAM a.k FROM (SELECT k, avg(x) AS m FROM s "
    "[RANGE 9 SECONDS SLIDE 3 SECONDS] MODEL (x = v * t) GROUP BY k) a WHERE a.m > 1",
    "SummedRoots": "SELECT RSTREAM k, avg(sqrt(x * x + 1)) AS m FROM s "
    "[RANGE 9 SECONDS SLIDE 3 SECONDS] MODEL (x = v * t) GROUP BY k",
}
IN_BLOCKS = {"Scan", "Window", "Filter", "Join", "Project", "Aggregate", "Emit"}
"""Nodes that become parts of blocks, not relations of their own."""


def made() -> Runner:
    runner = Runner()
    stamps = pa.array(np.arange(40) * 1_000_000, pa.timestamp("us", "UTC"))
    runner.stream(
        "s", pa.table({"k": [i % 3 for i in range(40)], "v": range(40), "ts": stamps}), key=["k"]
    )
    runner.sql("CREATE VIEW kept RETAIN 1 DAY AS SELECT k, x FROM s MODEL (x = v * t)")
    return runner


def plan_of(sql: str) -> QueryPlan:
    return made().query(sql, "q").plan


def relation_of(name: str) -> Relation:
    return next(r for r in plan_of(EXAMPLES[name]).relations if type(r).__name__ == name)


def test_every_kind_runs_and_has_an_example() -> None:
    assert {kind.__name__ for kind in RUNS} == EXAMPLES.keys()


def test_every_node_is_lowered_or_a_part_of_a_block() -> None:
    kinds = {k for k in vars(logical).values() if isinstance(k, type) and issubclass(k, Node)}
    lowered = {k.__name__ for k in LOWERS if k in kinds}
    assert lowered | IN_BLOCKS == {k.__name__ for k in kinds} - {"Node"}
    assert not lowered & IN_BLOCKS


@pytest.mark.parametrize("name", EXAMPLES)
def test_needs_are_declared_per_leaf_or_input(name: str) -> None:
    relation = relation_of(name)
    needs = relation.needs()
    assert len(needs) == len(relation.leaves or relation.inputs)
    assert all(bool(n.keys) <= (n.together is Together.KEYS) for n in needs)


@pytest.mark.parametrize("name", EXAMPLES)
def test_slots_are_known_and_explained(name: str) -> None:
    relation = relation_of(name)
    assert set(relation.slots) <= set(SLOT_KINDS)
    assert all(kind.words for kind in relation.slots)


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_is_told_in_words_and_shows_only_columns_it_has(name: str) -> None:
    relation = relation_of(name)
    assert made().explain(EXAMPLES[name]).count("\n") > 2
    own = {f.name for f in relation.schema}
    inputs = [leaf.fields for leaf in relation.leaves] or [relation.schema]
    shown = [relation.shows(i, f.name) for i, schema in enumerate(inputs) for f in schema]
    assert all(columns <= own for columns in shown)


@pytest.mark.parametrize("name", EXAMPLES)
def test_conjunctions_in_their_own_order_change_nothing(name: str) -> None:
    relation = relation_of(name)
    assert relation.reordered(lambda predicates: predicates) == relation


def test_plans_can_be_unpickled_and_run_in_a_fresh_process() -> None:
    """A worker imports what the plan names, and so knows how its relations run."""
    plans = pickle.dumps([plan_of(sql) for sql in EXAMPLES.values()])
    code = (
        "import pickle, sys\n"
        "plans = pickle.load(sys.stdin.buffer)\n"
        "from thalweg.exec.step import step\n"
        "from thalweg.exec.relations.protocol import RUNS\n"
        "assert all(type(r) in RUNS for p in plans for r in p.relations)\n"
        "print(sum(len(p.relations) for p in plans))"
    )
    found = subprocess.run([sys.executable, "-c", code], input=plans, capture_output=True)
    assert found.returncode == 0, found.stderr.decode()
    assert int(found.stdout) >= len(EXAMPLES)
