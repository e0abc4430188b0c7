"""Ways through the code only go forward: no call goes back into a file that is already on the
stack, in the walks of registering, an epoch, ALTER, INVOKE, restarting, and a client's reading."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import thalweg
from numbered_rows import rows
from thalweg.runtime.session.client import Client
from thalweg.testing import Runner

ROOT = f"{Path(thalweg.__file__).parent}/"
WATCHED = ("runtime/", "testing/runner", "spark/", "statements/")
SUMS = "SELECT k, sum(v) AS t FROM s [RANGE 10 SECONDS] GROUP BY k"


class Walk:
    """Calls that cross into a watched file, and those of them that go back."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.back: list[str] = []
        self._stack: list[str] = []

    def profile(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(ROOT) or code.co_name.startswith("<"):
            return
        if event == "return" and self._stack:
            self._stack.pop()
        if event != "call":
            return
        file = code.co_filename.removeprefix(ROOT)
        if file.startswith(WATCHED) and (not self._stack or self._stack[-1] != file):
            name = f"{file}:{code.co_qualname}"
            self.steps.append(name)
            if file in self._stack:
                self.back.append(name)
        self._stack.append(file)


@contextmanager
def walking() -> Iterator[Walk]:
    walk, before = Walk(), sys.getprofile()
    sys.setprofile(walk.profile)
    try:
        yield walk
    finally:
        sys.setprofile(before)


@pytest.fixture
def runner() -> Runner:
    made = Runner()
    made.stream("s", rows(0, 1))
    made._tables.clear()
    made.sql(f"CREATE QUERY a AS {SUMS}")
    made.sql(f"CREATE QUERY i AS {SUMS} WITH (materialize = 'c')")
    made.sql("CREATE QUERY m AS SELECT k, v FROM s WHERE v > 3 WITH (share = 'on')")
    made.sql(
        "CREATE QUERY j AS SELECT k, v FROM s [RANGE 10 SECONDS] WHERE v > 3 "
        "WITH (materialize = 'p')"
    )
    made.feed({"s": rows(0, 20)})
    return made


WALKS: dict[str, tuple[Callable[[Runner], Any], str]] = {
    "register": (
        lambda r: r.sql(f"CREATE QUERY b AS {SUMS}"),
        "runtime/lifecycle/query_registry.py:QueryRegistry.add",
    ),
    "register by handle": (
        lambda r: r.query(SUMS, "b"),
        "runtime/lifecycle/query_registry.py:QueryRegistry.add",
    ),
    "epoch": (
        lambda r: r.feed({"s": rows(20, 40)}),
        "runtime/state/committer.py:Committer.commit",
    ),
    "alter window": (
        lambda r: r.sql("ALTER QUERY a SET WINDOW s [RANGE 20 SECONDS]"),
        "runtime/lifecycle/query_registry.py:QueryRegistry.replace",
    ),
    "alter options": (
        lambda r: r.sql("ALTER QUERY a SET (filters = 'fixed')"),
        "runtime/session/alteration.py:Alteration.set_options",
    ),
    "pause a member": (
        lambda r: r.sql("PAUSE QUERY m"),
        "runtime/sharing/cohort_admission.py:CohortAdmission.detach",
    ),
    "drop": (
        lambda r: r.sql("DROP QUERY j"),
        "runtime/invoke/materialize_modes.py:MaterializeModes.leave",
    ),
    "invoke p": (
        lambda r: r.sql("INVOKE j"),
        "runtime/invoke/instant_answers.py:InstantAnswers.answer",
    ),
    "invoke c": (
        lambda r: r.sql("INVOKE i"),
        "runtime/invoke/instant_answers.py:InstantAnswers.answer",
    ),
    "invoke a relation": (
        lambda r: r.sql("INVOKE a"),
        "runtime/results/results_reader.py:ResultsReader.answer",
    ),
    "restart": (
        lambda r: r.restart(),
        "runtime/session/resumption.py:resume_queries",
    ),
    "client shows queries": (
        lambda r: Client(r.storage).sql("SHOW QUERIES"),
        "runtime/session/reading.py:StateReading.listed",
    ),
    "client invokes": (
        lambda r: Client(r.storage).invoke("a"),
        "runtime/results/results_reader.py:ResultsReader.answer",
    ),
    "client results of a member": (
        lambda r: Client(r.storage).results("m"),
        "runtime/results/results_reader.py:ResultsReader.results",
    ),
}


@pytest.mark.parametrize("name", WALKS)
def test_no_call_goes_back(runner: Runner, name: str) -> None:
    act, passes = WALKS[name]
    with walking() as walk:
        act(runner)
    assert walk.back == []
    assert passes in walk.steps, "the walk is another one than it was"


def test_a_call_back_is_seen(runner: Runner) -> None:
    """The control: what is settled in a commit commits by itself."""
    core = runner.core
    called: list[int] = []

    def settle() -> None:
        if not called:
            called.append(1)
            core.changes.commit()

    core.modes.settle = settle  # type: ignore[method-assign]
    with walking() as walk:
        core.coordinator.save(0)
    assert walk.back == ["runtime/epoch/coordinator.py:Coordinator.save"]
