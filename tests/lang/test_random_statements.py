"""Every grammatical statement is answered as the reference does, or refused with place and remedy.

`THALWEG_FUZZ=100000` judges so many statements, `THALWEG_FUZZ_FROM=50000` from that seed on.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from thalweg.plan.functions import function_names
from thalweg.runtime.session.session import Query
from thalweg.testing.compare import ResultRow
from thalweg.testing.random_statements import Statement, random_statement
from thalweg.testing.random_statements import judge as judging
from thalweg.testing.random_statements.expressions import FUNCTIONS
from thalweg.testing.random_statements.judge import Outcome, judge

FIRST = int(os.environ.get("THALWEG_FUZZ_FROM", "0"))
COUNT = int(os.environ.get("THALWEG_FUZZ", "2400"))
AT_ONCE = 200


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, AT_ONCE))
def test_every_statement_is_answered_or_refused(
    first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # sinks write to folders with relative names
    faults = []
    outcomes: Counter[Outcome] = Counter()
    for seed in range(first, min(first + AT_ONCE, FIRST + COUNT)):
        statement = random_statement(seed)
        verdict = judge(statement)
        outcomes[verdict.outcome] += 1
        if verdict.outcome is Outcome.FAULT:
            faults.append(f"seed {seed}\n  {statement.text}\n  {verdict.detail}")
    assert not faults, f"{len(faults)} at fault, such as\n" + "\n".join(faults[:3])
    answered = outcomes[Outcome.EQUAL] + outcomes[Outcome.UNCHECKED]
    assert answered > 0.3 * outcomes.total()
    assert outcomes[Outcome.REFUSED] > 0.2 * outcomes.total()


def features() -> set[str]:
    return {f for seed in range(12_000) for f in random_statement(seed).features}


def test_the_statements_cover_the_language() -> None:
    assert set(FUNCTIONS) == set(function_names())
    found = features()
    assert {f"function:{name}" for name in FUNCTIONS} <= found
    joins = "inner LEFT RIGHT FULL ASOF".split()
    wanted = {
        "statement": "create_stream create_table create_query create_view alter manage show invoke "
        "explain others".split(),
        "window": "NOW RANGE ROWS PARTITION SESSION UNBOUNDED LANDMARK FROM".split(),
        "emit": ["none", "ISTREAM", "DSTREAM", "RSTREAM"],
        "join": [*joins, "LEFT SEMI", "LEFT ANTI", "LEFT ASOF"],
        "set": [o + a for o in ("UNION", "EXCEPT", "INTERSECT") for a in ("", " ALL")],
        "operator": "= <> != < <= > >= <=> + - * / % div like".split(),
        "aggregate": "count sum avg min max median mode first last string_agg percentile".split(),
    }
    missing = [f"{k}:{v}" for k, values in wanted.items() for v in values]
    assert [f for f in missing if f not in found] == []
    assert sum(f.startswith("foreign:") for f in found) > 450


def test_a_seed_is_a_statement() -> None:
    assert random_statement(7) == random_statement(7)


@pytest.mark.parametrize(
    ("text", "plain", "wrong"),
    [
        ("SELECT n FROM s", None, "accepted, though"),
        ("SELECT n FROM s", "SELECT big AS n FROM s", "another meaning"),
        ("SELECT n FROM s", "SELECT nosuch FROM s", "not so in plain words"),
    ],
)
def test_what_has_no_meaning_or_another_is_a_fault(text: str, plain: str, wrong: str) -> None:
    verdict = judge(Statement(0, text, plain, True, frozenset()))
    assert verdict.outcome is Outcome.FAULT
    assert wrong in verdict.detail


MANY = """SELECT CAST(a.txt AS BOOLEAN) AS c FROM s [UNBOUNDED] a
  LEFT JOIN q [RANGE 2 SECONDS] b ON TRUE WITH (unbounded = true)"""
"""Rows of s beside those of q that come and go, of which the query shows nothing."""


@pytest.mark.parametrize(("taken", "added"), [(0, 0), (1, 0), (0, 100)])
def test_beside_an_outer_join_rejects_lie_between_two_numbers(
    taken: int, added: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that look the same to the query may be rejected once; no fewer, and no more than by the
    reference."""
    bounds = []

    def given(query: Query) -> tuple[list[ResultRow], Counter[str]]:
        rows, rejects = real(query)
        return rows, Counter({"c": rejects["c"] - taken + added})

    def check(rows: Any, rejects: Any, wanted: Any, unwanted: Any, fewest: Any) -> None:
        bounds.append((fewest["c"], rejects["c"], unwanted["c"]))
        compare(rows, rejects, wanted, unwanted, fewest)

    real, compare = judging._given, judging._check
    monkeypatch.setattr(judging, "_given", given)
    monkeypatch.setattr(judging, "_check", check)
    verdict = judge(Statement(0, MANY, MANY, True, frozenset()))
    ((least, found, most),) = bounds
    assert least < most
    assert (verdict.outcome is Outcome.FAULT) == (taken + added > 0), (least, found, most)
