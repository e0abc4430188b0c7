"""Aggregates over arguments of every type: refused when bound, or as the reference has it."""

from __future__ import annotations

from collections import Counter

import pytest

from thalweg.aggregates import aggregate_names
from thalweg.errors import ThalwegError, TypeMismatch
from thalweg.testing.random_statements import Statement
from thalweg.testing.random_statements.judge import Outcome, judge
from thalweg.testing.random_statements.rows import COLUMNS, loaded
from thalweg.testing.runner import Runner

ORDERED = ("percentile_disc(0.5)", "mode()", "percentile_cont(0.5)", "listagg()")


def calls(column: str) -> list[str]:
    names = sorted({*aggregate_names()} - {"grouping"})
    bare = [f"{name}({column})" for name in names]
    once = [f"{name}(DISTINCT {column})" for name in names]
    by = [f"{name}({column}, {other})" for name in ("min_by", "max_by") for other in ("n", column)]
    by += [f"{name}(n, {column})" for name in ("min_by", "max_by")]
    return bare + once + by + [f"{o} WITHIN GROUP (ORDER BY {column})" for o in ORDERED]


@pytest.mark.parametrize("column", COLUMNS)
def test_every_aggregate_takes_or_refuses_the_type(column: str) -> None:
    outcomes: Counter[Outcome] = Counter()
    for call in calls(column):
        text = f"SELECT txt, {call} AS a FROM s [RANGE 3 SECONDS] GROUP BY txt"
        verdict = judge(Statement(0, text, text, True, frozenset()))
        assert verdict.outcome is not Outcome.FAULT, f"{text}\n{verdict.detail}"
        outcomes[verdict.outcome] += 1
    assert outcomes[Outcome.EQUAL]


@pytest.mark.parametrize("call", ["max(xs)", "mode(words)", "first(xs)", "count(DISTINCT xs)"])
def test_arrays_are_not_compared(call: str) -> None:
    with pytest.raises(TypeMismatch, match="has no order"):
        loaded(Runner()).query(f"SELECT {call} AS a FROM s [NOW]")


def test_over_stands_beside_no_subquery_in_any_condition() -> None:
    text = "SELECT lag(n) OVER (ORDER BY ts) AS a FROM s WHERE txt IN (SELECT txt FROM t) AND n > 0"
    with pytest.raises(ThalwegError, match="beside OVER is not available yet"):
        loaded(Runner()).query(text)
