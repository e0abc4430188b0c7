"""Random model queries against the oracle, under the invariances of D7: "all five invariances as
identity, at least 500 generated model queries; adding a query changes no other query's rows".

`THALWEG_MODEL_QUERIES=500` runs that many; by default some of every family.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from random import Random
from typing import Any

import oracle
import pyarrow as pa
import pytest
from model_runs import Relation, S, bag, loaded, rows_of
from oracle import Case

QUERIES = int(os.environ.get("THALWEG_MODEL_QUERIES", "60"))
RANDOM_INSTANTS = 120
BESIDE = (
    "SELECT id, x FROM s MODEL (x = c1 + c0*t) FOR 3 SECONDS WHERE x > 0",
    "SELECT id, c0 FROM s WHERE c0 > 0",
)


@dataclass(frozen=True)
class Variant:
    """A way to run a case that must not matter: the Runner's arguments, other queries beside
    (`{}` is the case's own), options of streams, the epoch before which it is registered."""

    name: str
    how: Mapping[str, Any]
    beside: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    comes: int = 0
    reshuffled: bool = False


def variants(case: Case) -> Iterator[Variant]:
    yield Variant("one epoch", {})
    yield Variant("seven epochs, four buckets", {"epochs": 7, "buckets": 4})
    restless = {"epochs": 11, "buckets": 2, "switches": case.seed, "restarts": (2, 5)}
    yield Variant("forced switches, restarts", restless)
    yield Variant("a row an epoch, beside others", {"epochs": 25, "buckets": 4}, BESIDE)
    more = [
        Variant("another order of arrival", {"epochs": 5, "buckets": 4},
                options={"lateness": "3 seconds"}, reshuffled=True),
        Variant("registered later, over the past", {"epochs": 6, "slice_rows": 5},
                options={"retain": "3650 days"}, comes=3),
        Variant("beside a twin", {"epochs": 3, "buckets": 2, "restarts": (2,)}, ("{}",)),
    ]  # fmt: skip
    yield more[case.seed % len(more)]


def outputs(case: Case, variant: Variant) -> list[Any]:
    """What the case's query emits; of the form `changes`, ISTREAM and DSTREAM of it."""
    streams = case.stream_tables()
    if variant.reshuffled:
        streams = {n: reshuffled(t, case.seed) for n, t in streams.items()}
    tables = case.table_tables()
    runner = loaded(streams, tables, options=variant.options, **variant.how)
    texts = [case.sql]
    if case.form == "changes":
        texts = [case.sql.replace("SELECT", f"SELECT {w}", 1) for w in ("ISTREAM", "DSTREAM")]
    for i, sql in enumerate(variant.beside):
        runner.query(sql.format(case.sql), name=f"beside{i}")

    def before_epoch(number: int) -> None:
        if number == min(variant.comes, runner.feedings):
            for i, sql in enumerate(texts):
                runner.query(sql, name=f"q{i}")

    runner.run(before_epoch)
    return [runner.queries[f"q{i}"].results() for i in range(len(texts))]


def reshuffled(rows: pa.Table, seed: int) -> pa.Table:
    """Another order of arrival, no row more than 3 s behind one before."""
    rng, stamps = Random(seed), rows["ts"].cast(pa.int64()).to_pylist()
    waiting, order = sorted(range(len(stamps)), key=lambda i: stamps[i]), []
    while waiting:
        near = [i for i in waiting if stamps[i] <= stamps[waiting[0]] + 3 * S]
        order.append(rng.choice(near))
        waiting.remove(order[-1])
    return rows.take(order)


@pytest.mark.parametrize("seed", range(QUERIES))
def test_answers_are_those_by_definition(seed: int) -> None:
    case = oracle.random_case(seed)
    first = None
    for variant in variants(case):
        found = outputs(case, variant)
        bags = [bag(t) for t in found]
        if first is None:
            first = bags
            check(case, [rows_of(t) for t in found])
        for was, now in zip(first, bags, strict=True):
            gone, came = list((was - now).elements())[:5], list((now - was).elements())[:5]
            assert was == now, f"{seed} {variant.name}: {case.sql}\n gone {gone}\n came {came}"


def check(case: Case, outputs: Sequence[list[dict[str, Any]]]) -> None:
    """The rows against the oracle, at all instants worth asking."""
    title = f"seed {case.seed}, {case.family}, {case.form}: {case.sql}"
    checks = {
        "relation": check_relation,
        "changes": check_changes,
        "sample": check_grid,
        "slide": check_grid,
        "tuples": check_tuples,
        "eager": check_eager,
        "fit": check_fit,
    }
    problem = checks[case.form](case, *outputs)
    assert problem is None, f"{title}\n{problem}"


def check_changes(case: Case, came: list[Any], went: list[Any]) -> str | None:
    rows = [{**r, "__sign": 1} for r in came] + [{**r, "__sign": -1} for r in went]
    return check_relation(case, rows)


def check_relation(case: Case, rows: list[dict[str, Any]]) -> str | None:
    answer = Relation(rows)
    for at in instants(case, answer.changes()):
        problem = oracle.difference(case, at, answer.at(at))
        if problem is not None:
            return problem
    return None


def instants(case: Case, changes: Sequence[int]) -> list[int]:
    """Where rows come, where the engine's answer changes, one and two ticks beside, and anywhere;
    up to the last row."""
    rng = Random(case.seed)
    stamps = {r["ts"] for rows in case.rows.values() for r in rows}
    marks = {m + d for m in [*stamps, *changes, *case.instants] for d in (-2, -1, 0, 1, 2)}
    marks |= {rng.randrange(case.since, case.until) for _ in range(RANDOM_INSTANTS)}
    return sorted(m for m in marks if case.since <= m < case.until)


def check_grid(case: Case, rows: list[dict[str, Any]]) -> str | None:
    """SAMPLE and SLIDE: rows at multiples of the period since 1970 (17.17), and nowhere else."""
    at_ticks: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        at_ticks.setdefault(row["__ts"], []).append(row)
    for at in [at for at in at_ticks if at % case.period]:
        if case.form == "slide" or not all(_is_a_point(case, at, r) for r in at_ticks[at]):
            return f"rows off the grid: {at_ticks[at]}"
    first = -(-case.since // case.period) * case.period
    for at in range(first, case.until, case.period):
        problem = oracle.difference(case, at, at_ticks.get(at, []))
        if problem is not None:
            return problem
    return None


def _is_a_point(case: Case, at: int, row: Mapping[str, Any]) -> bool:
    """Point results come at their own instant (17.17): there, and neither before nor after."""
    ident = tuple(row[c] for c in case.ident)
    beside = [case.answer(at + d).certain for d in (-2, 2)]
    return ident in case.answer(at).possible and not any(ident in b for b in beside)


def check_tuples(case: Case, rows: list[dict[str, Any]]) -> str | None:
    """A tuple stream reads a model at its own instants."""
    at_ticks: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        at_ticks.setdefault(row["__ts"], []).append(row)
    strange = [at for at in at_ticks if at not in case.instants and at < case.until]
    if strange:
        return f"rows where no tuple came: {strange[:5]}"
    for at in case.instants:
        problem = oracle.difference(case, at, at_ticks.get(at, []))
        if problem is not None:
            return problem
    return None


def check_eager(case: Case, rows: list[dict[str, Any]]) -> str | None:
    """17.1: the newest prediction of a key, made at or before an instant, says what is then."""
    marks = {r[c] for r in rows for c in ("valid_from", "valid_until") if r[c] is not None}
    for at in instants(case, sorted(marks)):
        newest: dict[Any, tuple[int, list[dict[str, Any]]]] = {}
        for row in rows:
            if row["__ts"] > at:
                continue
            ident = tuple(row[c] for c in case.ident)
            made, group = newest.get(ident, (-1, []))
            if row["__ts"] > made:
                newest[ident] = (row["__ts"], [row])
            elif row["__ts"] == made:
                group.append(row)
        on = [next(r for r in g if _valid(r, at)) for _, g in newest.values()
              if any(_valid(r, at) for r in g)]  # fmt: skip
        problem = oracle.difference(case, at, on)
        if problem is not None:
            return problem
    return None


def _valid(row: Mapping[str, Any], at: int) -> bool:
    since, until = row["valid_from"], row["valid_until"]
    return since is not None and since <= at and (until is None or at < until)


def check_fit(case: Case, rows: list[dict[str, Any]]) -> str | None:
    """At every tuple instant the curve is within the bound (17.11); a piece belongs to one cell of
    the grid (17.4); a silent cell has none. Of equal stamps the last counts where they spread more
    than twice the bound (17.19), otherwise the midpoint is within it (16.3.8)."""
    answer = Relation(rows)
    for life in answer.lives:
        end = life.end
        if end is None or life.start // case.cell != (end - 1) // case.cell:
            return f"a piece over more than one cell: {life}"
    tuples: dict[tuple[str, int], list[Any]] = {}
    for row in sorted(case.rows["s"], key=oracle.order_key):
        tuples.setdefault((row["id"], row["ts"]), []).append(row["c0"])
    for (key, at), values in tuples.items():
        problem = _at_a_tuple(case, answer, key, at, values)
        if problem is not None:
            return problem
    return None


def _at_a_tuple(case: Case, answer: Relation, key: str, at: int, values: list[Any]) -> str | None:
    got = [r["u"] for r in answer.at(at) if r["id0"] == key]
    if None in values:  # ends the segment at that instant, unless a later one of it begins anew
        return None if len(values) > 1 or not got else f"at {at}: NULL of {key} has a segment"
    if len(got) != 1:
        return f"at {at}: {key} should have one segment, has {got}"
    wide = max(values) - min(values) > 2 * case.bound
    for value in values[-1:] if wide else values:
        if abs(Fraction(got[0]) - Fraction(value)) > case.bound * (1 + Fraction(1, 10**9)):
            return f"at {at}: {key} is {value}, the curve says {got[0]}, bound {case.bound}"
    return None


def test_of_a_silent_cell_nothing_is_known() -> None:
    """17.4: no segment in a cell without a tuple of the key; a later piece begins with its first
    tuple, or with the cell if the cell before had one."""
    stamps = (500_000, 1_500_000, 2_500_000, 8_500_000)
    rows = [dict.fromkeys(oracle.COLUMNS) | {"id": "a", "c0": 1.0, "ts": at} for at in stamps]
    model = "MODEL (FIT c0 DEGREE 1 WITHIN 0.5 EVERY 2 SECONDS)"
    sql = f"SELECT a.id AS id0, a.c0 AS u FROM s AS a {model}"
    case = Case(
        0, "fit", sql, "fit", {"s": rows}, {}, ("id0",), lambda at: oracle.Answer(), 0, 30 * S
    )
    (found,) = outputs(case, Variant("one epoch", {}))
    spans = Relation(rows_of(found)).spans()
    assert spans == [(500_000, 4 * S), (8_500_000, 10 * S)]
