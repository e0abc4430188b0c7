"""The ways that docs/architecture.md lists are those that rows, statements and plan switches take:
every name exists, is called in this order, and none goes back into a file that is still at work."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import thalweg
from numbered_rows import rows
from thalweg.testing import Runner

ROOT = Path(thalweg.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
ONLY_IN_SPARK = "spark/"
"""Hops that a Runner does without."""
QUERY = (
    "CREATE QUERY q AS SELECT k, sum(v) AS t FROM s [RANGE 10 SECONDS] WHERE v >= 0 AND k = 1 "
    "GROUP BY k WITH (filters = 'a-greedy', profile = 1.0)"
)


def ways() -> dict[str, list[str]]:
    """The hops under each heading `The way of ...`."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return {
        title.removeprefix("The way of a "): re.findall(r"^\d+\. `([^`]+)`", text, re.MULTILINE)
        for title, _, text in (s.partition("\n") for s in sections)
        if title.startswith("The way of a ")
    }


class Calls:
    """Every call into a file of ours that is not at work already, and every one that is."""

    def __init__(self) -> None:
        self.forward: list[str] = []
        self._stack: list[str] = []

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(f"{ROOT}/") or code.co_name.startswith("<"):
            return
        if event == "return" and self._stack:
            self._stack.pop()
        if event == "call":
            file = str(Path(code.co_filename).relative_to(ROOT))
            if file not in self._stack or self._stack[-1] == file:
                self.forward.append(f"{file}:{code.co_qualname}")
            self._stack.append(file)


def called(action: Callable[[], Any]) -> list[str]:
    calls, before = Calls(), sys.getprofile()
    sys.setprofile(calls.profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls.forward


@pytest.fixture
def runner() -> Runner:
    made = Runner(costs={"k = 1": 1.0, "v >= 0": 1.0})
    made.stream("s", rows(0, 1).slice(0, 0))
    return made


def fed(runner: Runner) -> Callable[[], Any]:
    """Rows for a query that runs; `v >= 0` drops none, so the order of its filters changes."""
    runner.sql(QUERY)
    runner.feed({"s": rows(0, 20)})
    return lambda: runner.feed({"s": rows(20, 3_020)})


ACTIONS: dict[str, Callable[[Runner], Callable[[], Any]]] = {
    "row": fed,
    "statement": lambda runner: lambda: runner.sql(QUERY),
    "plan switch": fed,
}


def in_order(hops: list[str], calls: list[str]) -> list[str]:
    """The hops that are found in the calls, each behind the one before it."""
    found, at = [], 0
    for hop in hops:
        if hop in calls[at:]:
            at += calls[at:].index(hop)
            found.append(hop)
    return found


def test_every_way_is_listed() -> None:
    assert ways().keys() == ACTIONS.keys()
    assert all(len(hops) > 15 for hops in ways().values())


@pytest.mark.parametrize("way", ACTIONS)
def test_the_listed_hops_are_taken_in_this_order(runner: Runner, way: str) -> None:
    hops = [hop for hop in ways()[way] if not hop.startswith(ONLY_IN_SPARK)]
    assert in_order(hops, called(ACTIONS[way](runner))) == hops


def test_a_hop_out_of_order_is_noticed(runner: Runner) -> None:
    calls = called(ACTIONS["statement"](runner))
    first, second, *_ = ways()["statement"]
    assert in_order([second, first], calls) == [second]


@pytest.mark.parametrize("way", ACTIONS)
def test_every_hop_exists(way: str) -> None:
    """Those too that are taken only on Spark."""
    for hop in ways()[way]:
        file, name = hop.split(":")
        level: list[ast.stmt] = ast.parse((ROOT / file).read_text("utf-8")).body
        for part in name.split("."):
            names = {n.name: n for n in level if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
            assert part in names, hop
            level = names[part].body
