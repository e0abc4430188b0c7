"""What every window kind must keep to, over the examples it gives of itself."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from thalweg.fluent.text import query_text
from thalweg.instants import AFTER_TIME, BEFORE_TIME
from thalweg.lang.binding.binder import bind
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.logical import Window, walk
from thalweg.testing.generators import Case, case_of
from thalweg.testing.grid import check_case, load
from thalweg.testing.runner import Runner
from thalweg.windows import WINDOW_KINDS
from thalweg.windows.protocol import OrderedWindow, TimeWindow, WindowSpec

EXAMPLES = [text for kind in WINDOW_KINDS for text in kind.examples]
QUERIES = (
    "SELECT k, x FROM s1 {window}",
    "SELECT DSTREAM a.k FROM s1 {window} a, s1 [RANGE 3 SECONDS] b WHERE a.k = b.k",
    "SELECT k, count(*) AS n FROM s1 {window} GROUP BY k",
    "SELECT RSTREAM k FROM s1 {window} WHERE x > 0",
)
SECOND = 1_000_000


@dataclass(frozen=True)
class Row:
    ts: int


def case(window: str, template: str, seed: int) -> Case:
    return case_of(template.format(window=window) + " WITH (unbounded = true)", seed)


def bound(window: str) -> WindowSpec:
    given = case(window, QUERIES[0], 0)
    runner = load(Runner(), given)
    root = bind(parse_query(given.sql), runner.session.catalog, given.sql).root
    return next(n.window for n in walk(root) if isinstance(n, Window))


def test_every_kind_that_runs_gives_examples() -> None:
    assert all(k.examples for k in WINDOW_KINDS)


@pytest.mark.parametrize("window", EXAMPLES)
def test_text_and_value_are_the_same_window(window: str) -> None:
    query = parse_query(f"SELECT k FROM s1 {window}")
    assert parse_query(query_text(query)) == query
    assert pickle.loads(pickle.dumps(bound(window))) == bound(window)
    assert str(bound(window)).startswith("[")
    assert bound(window).bound()


def test_a_fresh_process_knows_the_windows_of_a_plan() -> None:
    specs = [bound(w) for w in EXAMPLES]
    code = "import pickle, sys; print(*pickle.load(sys.stdin.buffer), sep='\\n')"
    found = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(specs), capture_output=True, check=True
    )
    assert found.stdout.decode().splitlines() == [str(s) for s in specs]


@pytest.mark.parametrize("window", EXAMPLES)
def test_lifetimes_are_those_of_the_content(window: str) -> None:
    """Of rows at every half second: in the content exactly from start to end."""
    spec = bound(window)
    ts = np.arange(0, 12 * SECOND, SECOND // 2)
    if isinstance(spec, TimeWindow):
        starts, ends = spec.starts(ts), spec.ends(ts)
    else:
        assert isinstance(spec, OrderedWindow)
        starts, ends = spec.lifetimes(np.zeros(len(ts), np.int64), ts, AFTER_TIME)
    instants = sorted({*starts, *ends, *(starts - 1), *(ends - 1), *ts} - {AFTER_TIME})
    for at in (int(i) for i in instants if i < AFTER_TIME - 1):
        arrived = [Row(int(t)) for t in ts if t <= at]
        held = {r.ts for r in spec.content(arrived, at)}
        assert held == _alive(spec, ts, starts, ends, at), f"{spec} at {at}"


def _alive(spec: WindowSpec, ts, starts, ends, at: int) -> set[int]:
    alive = (starts <= at) & (at < ends)
    if isinstance(spec, TimeWindow):
        low, high = spec.alive_at(at)
        alive &= (ts >= low) & (ts < high)
    return {int(t) for t in ts[alive]}


@pytest.mark.parametrize("window", EXAMPLES)
def test_ranges_of_event_times_agree_with_lifetimes(window: str) -> None:
    spec = bound(window)
    if not isinstance(spec, TimeWindow):
        return
    ts = np.arange(-3 * SECOND, 12 * SECOND, SECOND // 4)
    inside = ts[(ts >= (spec.since or BEFORE_TIME)) & (ts <= (spec.until or AFTER_TIME))]
    starts, ends = spec.starts(inside), spec.ends(inside)
    assert (np.diff(starts) >= 0).all()
    assert (np.diff(ends) >= 0).all()
    for at in range(0, 14 * SECOND, SECOND // 3):
        low, high = spec.starting_between(at, at + SECOND)
        wanted = inside[(starts >= at) & (starts < at + SECOND)]
        assert inside[(inside >= low) & (inside < high)].tolist() == wanted.tolist()
        low, high = spec.ending_between(at, at + SECOND)
        wanted = inside[(ends >= at) & (ends < at + SECOND)]
        assert inside[(inside >= low) & (inside < high)].tolist() == wanted.tolist()
        assert spec.has_empty_lifetimes or (ends > starts).all()


@pytest.mark.parametrize("window", EXAMPLES)
def test_what_is_said_of_it_is_so(window: str) -> None:
    spec = bound(window)
    ts = np.arange(0, 12 * SECOND, SECOND // 2)
    if isinstance(spec, TimeWindow):
        ends = spec.ends(ts)
        assert spec.is_endless == bool((ends == AFTER_TIME).all())
        assert spec.expires == bool((ends < AFTER_TIME).all())
        if spec.longest_stay is not None:
            assert (ends - spec.starts(ts)).max() <= spec.longest_stay + 1
        assert all(spec.starts(ts[i : i + 1])[0] <= spec.settled(int(ts[i])) for i in range(9))
    else:
        assert isinstance(spec, OrderedWindow)
        assert spec.reaching(spec.reach) == spec
        assert spec.reaching(spec.reach + 1).reach == spec.reach + 1
        assert spec.name


@pytest.mark.parametrize("window", EXAMPLES)
@pytest.mark.parametrize("query", QUERIES)
def test_the_engine_does_what_it_means(window: str, query: str) -> None:
    check_case(case(window, query, EXAMPLES.index(window)))
