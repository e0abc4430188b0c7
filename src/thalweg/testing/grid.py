"""The invariance grid: one query, one input, many ways to run it, one answer.

`check_case(case)` computes the answer of a generated case once with the naive reference and then
runs the engine under several `Variant`s (how the input is cut into epochs, how many buckets, which
plans, when it restarts, in which order rows arrive). Every one must emit the same rows, bag per
timestamp and sign, and reject as many under the same predicates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from random import Random
from typing import Any

import numpy as np

from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.runtime.session.session import Query
from thalweg.testing.compare import column_values, difference, from_table, python_rows
from thalweg.testing.generators import Case, GeneratedStream, cuts
from thalweg.testing.passing_time import IDLE, let_time_pass, time_passed
from thalweg.testing.reference import ReferenceResult, ReferenceStream, evaluate_query
from thalweg.testing.runner import Runner

Feature = str | tuple[str, ...]
# The finest cut gives every row its own epoch, up to this many epochs.
_FINEST = 30
# Routed by other keys than the case's query, with shorter and longer memories.
_NEIGHBOURS = (
    "SELECT ISTREAM k FROM {stream} [NOW] WHERE k > 0",
    "SELECT x, count(*) AS c FROM {stream} [RANGE 1 HOUR] GROUP BY x",
    "SELECT a.k FROM {stream} [PARTITION BY k ROWS 1] a, {stream} [NOW] b WHERE a.x = b.x",
)
# Windows over the order of rows that reach further or less far than those of cases.
_SHARING = (
    "SELECT sum(x) AS s FROM {stream} [ROWS 3]",
    "SELECT k, count(*) AS c FROM {stream} [PARTITION BY k ROWS 5] GROUP BY k",
    "SELECT k, count(*) AS c FROM {stream} [PARTITION BY k SESSION GAP 2 SECONDS] GROUP BY k",
)


@dataclass(frozen=True)
class Variant:
    """One way to run a case: the Runner's arguments, and what to do to the input before.

    `beside` are other queries in the same engine, over `{stream}`, the case's first, or `{sql}`,
    the case's query itself. The query is registered before the epoch `comes`; `manage` is what is
    done to it before which epochs. Where the past matters, streams are `kept`. With `ticks` time
    passes without rows: between epochs as far as no row is late for it, and long after the last.
    With `final` it goes on in the end until windows are empty.
    """

    name: str
    arguments: Callable[[Case], dict[str, Any]]
    arrange: Callable[[Case], Case] = lambda case: case
    beside: tuple[str, ...] = ()
    comes: int = 0
    manage: tuple[tuple[int, str], ...] = ()
    kept: bool = False
    ticks: bool = False
    final: bool = False


def _random_cuts(case: Case) -> dict[str, Any]:
    epochs = {
        name: cuts(case.seed * 7 + i, stream.table.num_rows)
        for i, (name, stream) in enumerate(case.streams.items())
    }
    return {"epochs": epochs, "buckets": 3, "switches": case.seed}


def _every_row(case: Case) -> dict[str, Any]:
    epochs = {}
    for name, stream in case.streams.items():
        rows = stream.table.num_rows
        epochs[name] = list(range(1, rows, max(-(-rows // _FINEST), 1)))
    return {"epochs": epochs, "gather_from": 4}


def _one_after_another(case: Case) -> dict[str, Any]:
    """The second stream starts when the first has ended: nearly every row has to wait."""
    epochs: dict[str, list[int]] = {}
    for name, stream in case.streams.items():
        rows = stream.table.num_rows
        waited = 1 + max((len(c) for c in epochs.values()), default=-1)
        epochs[name] = [0] * waited + [rows // 3, 2 * rows // 3]
    return {"epochs": epochs, "buckets": 2}


def reshuffled(case: Case) -> Case:
    """The same rows in another order of arrival, none further behind than its stream allows."""
    rng = Random(f"arrival {case.seed}")
    streams = {name: _reshuffled(rng, stream) for name, stream in case.streams.items()}
    return replace(case, streams=streams)


def _reshuffled(rng: Random, stream: GeneratedStream) -> GeneratedStream:
    stamps = column_values(stream.table[stream.timestamp])
    waiting = sorted(range(len(stamps)), key=lambda i: stamps[i])
    order = []
    while waiting:
        limit = stamps[waiting[0]] + stream.lateness
        allowed = sum(stamps[i] <= limit for i in waiting)
        order.append(waiting.pop(rng.randrange(allowed)))
    return replace(stream, table=stream.table.take(np.array(order, np.int64)))


VARIANTS: tuple[Variant, ...] = (
    Variant("one epoch, one bucket", lambda case: {}),
    Variant("random cuts, three buckets, forced switches", _random_cuts),
    Variant(
        "four epochs, two buckets, restarts after the first and the third",
        lambda case: {"epochs": 4, "buckets": 2, "restarts": (1, 3)},
    ),
    Variant("every row its own epoch, output soon gathered", _every_row),
    Variant(
        "another order of arrival, five epochs, four buckets, forced switches",
        lambda case: {"epochs": 5, "buckets": 4, "switches": case.seed + 1},
        reshuffled,
    ),
    Variant("one stream after another", _one_after_another),
    Variant(
        "beside other queries, four epochs, two buckets, a restart",
        lambda case: {"epochs": 4, "buckets": 2, "restarts": (2,)},
        beside=_NEIGHBOURS,
    ),
    Variant(
        "registered when half is over, the past in small slices, a restart",
        lambda case: {"epochs": 6, "buckets": 2, "restarts": (4,), "slice_rows": 5},
        comes=3,
        kept=True,
    ),
    Variant(
        "paused and resumed, a restart, forced switches",
        lambda case: {"epochs": 5, "restarts": (2,), "slice_rows": 7, "switches": case.seed},
        manage=((1, "PAUSE q"), (3, "RESUME q"), (4, "PAUSE q"), (5, "RESUME q")),
    ),
    Variant(
        "replaced by itself in the midst, twice, a restart",
        lambda case: {"epochs": 5, "buckets": 2, "restarts": (3,), "slice_rows": 9},
        manage=((2, "ALTER QUERY q AS {sql}"), (4, "ALTER QUERY q AS {sql}")),
        kept=True,
    ),
    Variant(
        "windows shared with a twin and others, apart in between, restarts",
        lambda case: {
            "epochs": 7,
            "buckets": 2,
            "restarts": (2, 5),
            "share_from": 0,
            "switches": case.seed,
        },
        beside=("{sql}", *_SHARING),
        manage=((2, "ALTER QUERY q SET (share = 'off')"), (4, "ALTER QUERY q SET (share = 'on')")),
    ),
    Variant(
        "time passes between epochs and after the last, a restart, forced switches",
        lambda case: {"epochs": 4, "buckets": 2, "restarts": (2, 6), "switches": case.seed},
        ticks=True,
    ),
    Variant(
        "three epochs, cut again since they have too many rows, a restart",
        lambda case: {"epochs": 3, "buckets": 2, "restarts": (2, 7), "epoch_rows": 4},
    ),
    Variant(
        "time goes on until windows are empty, three epochs, a restart, forced switches",
        lambda case: {"epochs": 3, "restarts": (3,), "switches": case.seed + 2},
        final=True,
    ),
)
_AGES = "3650 days"


def load(runner: Runner, case: Case, kept: bool = False, **options: Any) -> Runner:
    """The runner, with the case's streams (for ever, if `kept`) and tables."""
    if kept:
        options["retain"] = _AGES
    for name, stream in case.streams.items():
        runner.stream(name, stream.table, stream.timestamp, lateness=stream.lateness, **options)
    for name, table in case.tables.items():
        runner.table(name, table)
    return runner


def reference_result(case: Case, horizon: int | None = None) -> ReferenceResult:
    """What the case emits and rejects by definition, from the plan as bound, not rewritten; up to
    a horizon, by default that of a close."""
    catalog = load(Runner(), case).session.catalog
    bound = bind(parse_query(case.sql), catalog, case.sql)
    streams = {
        name: ReferenceStream.from_table(s.table, timestamp=s.timestamp)
        for name, s in case.streams.items()
    }
    tables = {name: python_rows(table) for name, table in case.tables.items()}
    return evaluate_query(bound.root, streams, tables, horizon=horizon)


def check_variant(case: Case, variant: Variant, expected: ReferenceResult) -> None:
    """One cell of the grid: raises AssertionError with what is missing and what is too much."""
    options = {"idle": IDLE} if variant.ticks else {}
    arranged = variant.arrange(case)
    runner = load(Runner(**variant.arguments(case)), arranged, variant.kept, **options)
    stream = next(iter(case.streams))
    neighbours = [sql.format(stream=stream, sql=case.sql) for sql in variant.beside]
    for i, sql in enumerate(neighbours[::2]):
        runner.query(sql, name=f"before{i}")

    def before_epoch(number: int) -> None:
        if variant.ticks:
            let_time_pass(runner, arranged, number, epochs)
        if number == min(variant.comes, epochs):
            runner.query(case.sql, name="q")
        for at, statement in variant.manage:
            if number == min(at, epochs):
                runner.sql(statement.format(sql=case.sql))

    epochs = runner.feedings
    if not variant.comes:
        runner.query(case.sql, name="q")
    for i, sql in enumerate(neighbours[1::2]):
        runner.query(sql, name=f"after{i}")
    runner.run(before_epoch, final=variant.final)
    query = runner.queries["q"]
    if variant.ticks:
        expected = reference_result(case, time_passed(runner) - 1)
    elif variant.final:
        expected = reference_result(case, int(query.stats()["frontier"]) - 1)
    title = f"seed {case.seed}, {variant.name}\n  {case.sql}"
    found = difference(expected.emitted, from_table(query.results()))
    assert found is None, f"{title}\n{found}"
    rejected = Counter(str(r["expression"]) for r in _rejects(query))
    wanted = Counter(label for label, _ in expected.rejected.elements())
    assert rejected == wanted, f"{title}\n  expected rejects {wanted}\n  got {rejected}"
    for name in case.streams:
        late = query.stats()["streams"].get(name, {}).get("late", 0)
        assert late == 0, f"{title}\n{late} rows of {name} were called late, none is"


def _rejects(query: Query) -> list[dict[str, Any]]:
    found = query.rejects()
    return found.to_pylist() if "expression" in found.column_names else []


def check_case(case: Case, variants: Sequence[Variant] | None = None) -> None:
    """The case under the given variants (all by default) against the reference."""
    expected = reference_result(case)
    for variant in VARIANTS if variants is None else variants:
        check_variant(case, variant, expected)


def chosen_variants(seed: int, count: int) -> list[Variant]:
    """Some of the variants, so that neighbouring seeds together use all of them."""
    return [VARIANTS[(seed + i * 2) % len(VARIANTS)] for i in range(count)]


def uncovered(cases: Iterable[Case], *wanted: Feature) -> list[Feature]:
    """The wanted features that occur in no case; a tuple must occur together in one case."""
    features = [case.features for case in cases]
    return [w for w in wanted if not any(_parts(w) <= f for f in features)]


def _parts(feature: Feature) -> frozenset[str]:
    return frozenset((feature,) if isinstance(feature, str) else feature)


def pairs(left: Iterable[str], right: Iterable[str]) -> list[tuple[str, str]]:
    """All pairs of two lists of features, for `uncovered`."""
    return list(product(left, right))
