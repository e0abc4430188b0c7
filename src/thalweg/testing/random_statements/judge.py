"""What becomes of a random statement: answered as the reference does, or refused as it must be."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from dataclasses import dataclass
from enum import Enum

from thalweg.errors import ThalwegError
from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.functions import function_names
from thalweg.runtime.session.session import Query
from thalweg.testing.compare import ResultRow, difference, from_table, python_rows
from thalweg.testing.random_statements import Statement
from thalweg.testing.random_statements.rows import QUERY, STREAMS, TABLES, loaded
from thalweg.testing.reference import ReferenceResult, ReferenceStream, evaluate_query
from thalweg.testing.runner import Runner


class Outcome(Enum):
    EQUAL = "answered as the reference does"
    UNCHECKED = "answered where the reference has no answer"
    DONE = "done, and no query"
    REFUSED = "refused"
    FAULT = "at fault"


@dataclass(frozen=True)
class Verdict:
    """The outcome for a statement; `detail` is the refusal, or what is wrong."""

    outcome: Outcome
    detail: str = ""


def judge(statement: Statement) -> Verdict:
    """Run the statement, by itself, and look at all that it gives."""
    try:
        return _query(statement) if statement.is_query else _definition(statement)
    except _Fault as fault:
        return Verdict(Outcome.FAULT, str(fault))
    except Exception:  # whatever is not a refusal is what is looked for
        return Verdict(Outcome.FAULT, "a foreign exception:\n" + traceback.format_exc())


_OUTER = re.compile(r"\b(LEFT|RIGHT|FULL)\b")


class _Fault(Exception):
    pass


def _definition(statement: Statement) -> Verdict:
    runner = loaded(Runner())
    runner.sql(QUERY)
    runner.run()
    try:
        runner.sql(statement.text)
    except ThalwegError as error:
        return _refused(error, statement.text)
    if statement.plain is None:
        raise _Fault("accepted, though a part of it has no meaning")
    return Verdict(Outcome.DONE)


def _query(statement: Statement) -> Verdict:
    runner = loaded(Runner())
    try:
        query = runner.query(statement.text, name="x")
    except ThalwegError as error:
        return _refused(error, statement.text)
    if statement.plain is None:
        raise _Fault("accepted, though a part of it has no meaning")
    runner.run()
    rows, rejects = _given(query)
    if statement.plain != statement.text:
        _check_plain(statement, rows, rejects)
    expected = _expected(runner, statement.text)
    if expected is None:
        return Verdict(Outcome.UNCHECKED)
    _check(
        rows,
        rejects,
        expected.emitted,
        Counter(n for n, _ in expected.rejected.elements()),
        _OUTER.search(statement.text) is not None,
    )
    return Verdict(Outcome.EQUAL)


def _given(query: Query) -> tuple[list[ResultRow], Counter[str]]:
    rows = from_table(query.results())
    found = query.rejects()
    labels = found["expression"].to_pylist() if "expression" in found.column_names else []
    return rows, Counter(map(str, labels))


def _check(
    rows: list[ResultRow],
    rejects: Counter[str],
    wanted: list[ResultRow],
    unwanted: Counter[str],
    outer: bool,
) -> None:
    found = difference(wanted, rows)
    if found is not None:
        raise _Fault(f"other rows: {found}")
    if rejects != unwanted and sorted(rejects.values()) != sorted(unwanted.values()):
        if outer and rejects.keys() == unwanted.keys() and rejects <= unwanted:
            return  # a row without a partner counts once for all times that it looks the same
        raise _Fault(f"other rejects: expected {unwanted}, got {rejects}")


def _check_plain(statement: Statement, rows: list[ResultRow], rejects: Counter[str]) -> None:
    """What others write must mean what it is taken for."""
    runner = loaded(Runner())
    try:
        query = runner.query(statement.plain or "", name="x")
    except ThalwegError as error:
        raise _Fault(f"accepted, but not so in plain words: {error}\n{statement.plain}") from None
    runner.run()
    wanted, unwanted = _given(query)
    found = difference(wanted, rows)
    if found is not None or rejects.total() != unwanted.total():
        raise _Fault(f"another meaning than {statement.plain}: {found} {rejects} {unwanted}")


_STREAMS = {name: ReferenceStream.from_table(table) for name, table in STREAMS.items()}
_TABLES = {name: python_rows(table) for name, table in TABLES.items()}


def _expected(runner: Runner, text: str) -> ReferenceResult | None:
    """By definition, or None where the reference does not know a function."""
    bound = bind(parse_query(text), runner.session.catalog, text)
    try:
        return evaluate_query(bound.root, _STREAMS, _TABLES)
    except TypeError as error:
        if "the reference does not know" in str(error):
            return None
        raise


# -- refusals

_LEAK = re.compile(
    r"<class|sqlglot|\bexp\.|\bExpression\b|Traceback|object at 0x|DataType|\bNone\b|NoneType|"
    r"TokenType|KeyError|ValueError|TypeError|AttributeError|Required keyword|\barg(ument)? 'this'|"
    r"pyarrow|numpy|\bpa\.|int64|float64|timestamp\[|Anonymous|\bself\b|\bTrue\b|\bFalse\b|Decimal\(|"
    r"\b[a-z]+_[a-z]+_[a-z_]+\b\(|Invalid expression|Failed to parse|dialect"
)
_NAMED = re.compile(r"(\w+)\(|^(\w+) does not take")
_FUNCTIONS = {*function_names(), "neg", "is_null", "is_not_null", "between", "case", "in"}


def _refused(error: ThalwegError, text: str) -> Verdict:
    """A refusal, if it has a place in the text, a remedy, and words that a user knows."""
    shown = str(error)
    lines = text.splitlines() or [""]
    if error.line is None or error.column is None:
        raise _Fault(f"a refusal without a place: {shown}")
    if not 1 <= error.line <= len(lines) or not 1 <= error.column <= len(lines[error.line - 1]) + 1:
        raise _Fault(f"a place outside the text: {shown}")
    if not error.remedy or "→" not in shown:
        raise _Fault(f"a refusal without a remedy: {shown}")
    said = f"{error.message}\n{error.remedy}"
    leak = _LEAK.search(_without(said, text))
    if leak is not None:
        raise _Fault(f"{leak[0]!r} says nothing to a user: {shown}")
    for found in _NAMED.finditer(error.message):
        name = (found[1] or found[2]).lower()
        if name in _FUNCTIONS and name not in text.lower():
            raise _Fault(f"{name} is not what the user wrote: {shown}")
    return Verdict(Outcome.REFUSED, shown)


def _without(said: str, text: str) -> str:
    """The words of a message without those that the user wrote."""
    written = set(re.findall(r"\w+", text))
    return re.sub(r"\w+", lambda w: "" if w[0] in written else w[0], said)
