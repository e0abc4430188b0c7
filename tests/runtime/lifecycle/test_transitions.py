"""The life of a query: every (status, stage, placement) under every command follows the table of
`runtime/lifecycle/transitions.py`, or is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError, QueryFailed, StillRead, ThalwegError
from thalweg.runtime.lifecycle.transitions import STATUS_AFTER, Event, Stage, after, stage_of
from thalweg.runtime.sharing.placement import Place
from thalweg.runtime.state.query_state import FAILED, PAUSED, RUNNING, Lifecycle
from thalweg.testing import Runner

OWN, MEMBER, DORMANT = Place.OWN, Place.MEMBER, Place.DORMANT
FILLING, CATCHING_UP, LIVE = Stage.FILLING, Stage.CATCHING_UP, Stage.LIVE
TEXTS = {
    OWN: "SELECT k, count(*) AS n FROM s [RANGE 40 MICROSECONDS] GROUP BY k",
    MEMBER: "SELECT k FROM s WHERE k > 0 WITH (share = 'on')",
    DORMANT: "SELECT k, v FROM s [RANGE 40 MICROSECONDS] WHERE v > 3 WITH (materialize = 'none')",
}
OTHER_TEXTS = {
    OWN: TEXTS[OWN].replace("40", "50"),
    MEMBER: "SELECT k FROM s WHERE k > 1 WITH (share = 'on')",
    DORMANT: TEXTS[DORMANT].replace("v > 3", "v > 5"),
}
STATES = [
    *product((RUNNING, PAUSED, FAILED), (FILLING, CATCHING_UP, LIVE), (OWN,)),
    (RUNNING, LIVE, MEMBER),
    (RUNNING, CATCHING_UP, MEMBER),
    (RUNNING, LIVE, DORMANT),
]
"""Only a query that runs is run with others, and a dormant one has come as far as its leader."""
State = tuple[str, Stage, Place]


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    ts = pa.array(numbers, pa.timestamp("us", "UTC"))
    return pa.table({"k": [i % 3 for i in numbers], "v": [i % 7 for i in numbers], "ts": ts})


def made(state: State) -> Runner:
    """A runner with a query `q` in this state."""
    status, stage, place = state
    runner = Runner(slice_rows=5, share_from=10**9)
    runner.stream("s", rows(0, 1), retain="1 hour")
    runner._tables.clear()
    if stage is not LIVE:
        runner.query("SELECT ISTREAM k FROM s", "before")
        runner.feed({"s": rows(0, 100)})
    text = TEXTS[place]
    if stage is FILLING:
        text += " WITH (history = 'seed')"
    if place is DORMANT:
        runner.query(text, "leader")
    runner.query(text, "q")
    if stage is LIVE:
        runner.feed({"s": rows(0, 100)})
        runner.feed({"s": rows(100, 120)})
    runner.core.coordinator.save(0)
    if status == PAUSED:
        runner.core.registry.pause("q")
    if status == FAILED:
        query = runner.core.state.queries["q"]
        query.lifecycle = after(query.lifecycle, Event.FAIL, "it broke")
    assert found(runner) == state
    return runner


def found(runner: Runner) -> State:
    query = runner.core.placement.state_of("q")
    return query.lifecycle.status, stage_of(query), runner.core.placement.of("q")


@dataclass(frozen=True)
class Rule:
    """Where a command leads; what it does not name stays as it is."""

    act: Callable[[Runner, Place], Any]
    leads_to: Callable[[State], State | type[ThalwegError] | None]


def _paused(state: State) -> State:
    return PAUSED, state[1], OWN


def _resumed(state: State) -> State:
    status, stage, place = state
    if status == RUNNING:
        return state
    return RUNNING, FILLING if stage is FILLING else CATCHING_UP, place


def _altered(state: State) -> State:
    """A query that is invoked begins afresh in its mode; others fill the windows of the new
    version."""
    status, _, place = state
    return status, LIVE if place is DORMANT else FILLING, OWN


def _apart(state: State) -> State:
    return state[0], state[1], OWN


def _invoked(state: State) -> State | type[ThalwegError]:
    status, _, place = state
    if status == FAILED:
        return QueryFailed
    if place is MEMBER:
        return ConfigError  # it emits a stream
    return (status, LIVE, place) if status == RUNNING else state


RULES = {
    "PAUSE": Rule(lambda r, _: r.sql("PAUSE QUERY q"), _paused),
    "RESUME": Rule(lambda r, _: r.sql("RESUME QUERY q"), _resumed),
    "ALTER AS": Rule(lambda r, p: r.sql(f"ALTER QUERY q AS {OTHER_TEXTS[p]}"), _altered),
    "SET (share)": Rule(lambda r, _: r.sql("ALTER QUERY q SET (share = 'off')"), _apart),
    "SET (filters)": Rule(lambda r, _: r.sql("ALTER QUERY q SET (filters = 'fixed')"), _apart),
    "SET (unbounded)": Rule(
        lambda r, _: r.sql("ALTER QUERY q SET (unbounded = true)"), lambda _: ConfigError
    ),
    "INVOKE": Rule(lambda r, _: r.sql("INVOKE q"), _invoked),
    "DROP": Rule(lambda r, _: r.sql("DROP QUERY q"), lambda _: None),
}


@pytest.mark.parametrize("command", RULES)
@pytest.mark.parametrize("state", STATES, ids=lambda s: f"{s[0]}, {s[1].value}, {s[2].value}")
def test_every_state_under_every_command(state: State, command: str) -> None:
    runner, rule = made(state), RULES[command]
    expected = rule.leads_to(state)
    if isinstance(expected, type):
        with pytest.raises(expected):
            rule.act(runner, state[2])
        status, stage, place = found(runner)
        assert (status, place) == (state[0], state[2]), "what is refused changes nothing"
        assert command == "INVOKE" or stage == state[1]  # which waits for the past first
        return
    rule.act(runner, state[2])
    if expected is None:
        assert "q" not in runner.queries
        assert runner.core.state.known("q") is None
    elif state[2] is not OWN and command != "PAUSE" and expected[2] is OWN:
        # it may be back among the others by the commit that made the change
        assert found(runner)[:2] == expected[:2]
    else:
        assert found(runner) == expected


@pytest.mark.parametrize("state", STATES, ids=str)
def test_what_others_read_is_not_dropped(state: State) -> None:
    runner = made(state)
    runner.sql("CREATE VIEW reader AS SELECT k FROM q")
    with pytest.raises(StillRead):
        runner.sql("DROP QUERY q")
    assert found(runner) == state


def test_a_paused_query_cannot_be_kept_up_to_date() -> None:
    runner = made((RUNNING, LIVE, DORMANT))
    runner.sql("PAUSE QUERY q")
    with pytest.raises(ConfigError, match="while it is paused"):
        runner.sql("ALTER QUERY q SET (materialize = 'c')")


def test_the_table_is_complete_but_for_what_cannot_happen() -> None:
    every = set(product((RUNNING, PAUSED, FAILED), Event))
    assert every - STATUS_AFTER.keys() == {(PAUSED, Event.FAIL), (FAILED, Event.FAIL)}
    with pytest.raises(KeyError):
        after(Lifecycle(PAUSED), Event.FAIL, "why")


def test_an_error_is_told_until_the_query_is_resumed() -> None:
    failed = after(Lifecycle(), Event.FAIL, "why")
    assert after(failed, Event.PAUSE) == Lifecycle(PAUSED, "why")
    assert after(after(failed, Event.PAUSE), Event.RESUME) == Lifecycle()
