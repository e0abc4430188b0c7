"""The state of a query as values: written flat, read again, and no larger than it must be."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from dataclasses import FrozenInstanceError, fields, replace

import pytest

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import (
    FILTERS,
    PAUSED,
    Cohort,
    Definition,
    HistoryStart,
    Lifecycle,
    Limits,
    OperatorState,
    Output,
    Progress,
    QueryState,
    Sharing,
)
from thalweg.store.packs import PackMeta

VALUES = (Definition, Lifecycle, HistoryStart, OperatorState, Output, Limits, Sharing, Progress)
MOST_BYTES = 1_000
"""Of an idle query; it was 1,434 when its state was one object of 36 fields."""


def whole() -> QueryState:
    """A query of which every field differs from its default."""
    pack = PackMeta("q/x", 3, 100, 5, 9)
    return QueryState(
        Definition(
            "SELECT 1", "SELECT 0", {"filters": "fixed"}, "schema", ("s",), "p", "auto",
            {"filters: a AND b": [1, 0]}, FILTERS, "v",
        ),
        Lifecycle(PAUSED, "why"),
        HistoryStart(7, {"s": 5}, {"s": 2}, 11, True),
        OperatorState({"0.a": (StatePack(pack, (("a", "b"),)),)}, {"1.leaf0": "store"}, {"n": 1}),
        Output(3, (pack.to_json(),), 12, (pack.to_json(),), True, (pack.to_json(),)),
        Limits({"s": 1}, {"s": (0, 1)}, 9),
        Sharing((pack.to_json(),), (4,), ([1, "s", []],), "group", "v > 3", Cohort("s", 8)),
        Progress(20, 6, 4, True, "push", 30, 19),
    )  # fmt: skip


def values(query: QueryState) -> list[object]:
    return [getattr(query, f.name) for f in fields(query) if not f.name.startswith("_")]


def test_names_of_fields_are_unique_across_values() -> None:
    """They are written flat: two of one name would overwrite each other."""
    names = Counter(f.name for kind in VALUES for f in fields(kind))
    assert [n for n, count in names.items() if count > 1] == []


def test_every_field_is_written_and_read() -> None:
    query = whole()
    names = {f.name for kind in VALUES for f in fields(kind)}
    for value in values(query):
        fresh = type(value)()
        assert all(getattr(value, f.name) != getattr(fresh, f.name) for f in fields(value))
    found = query.to_json()
    assert found.keys() == names
    assert values(QueryState.from_json(found)) == values(query)


def test_what_has_its_default_is_left_out() -> None:
    query = QueryState(Definition("SELECT 1"))
    assert query.to_json().keys() == {"text", *(f.name for f in fields(Progress))}
    assert values(QueryState.from_json(query.to_json())) == values(query)


def test_a_query_that_stood_still_is_not_written_again() -> None:
    query = whole()
    before = query.to_json()
    assert query.to_json(before) is before
    query.progress.frontier += 1
    moved = query.to_json(before)
    assert moved == {**before, "frontier": 21}
    query.limits = replace(query.limits, approximate_since=10)
    changed = query.to_json(moved)
    assert changed == {**moved, "approximate_since": 10}
    query.limits = Limits()
    names = {f.name for f in fields(Limits)}
    assert query.to_json(changed) == {k: v for k, v in changed.items() if k not in names}


def test_what_somebody_else_wrote_is_written_anew() -> None:
    """Only its own last form is known to be that of its values."""
    query = whole()
    query.to_json()
    foreign = {**query.to_json(), "text": "something else"}
    assert query.to_json(foreign)["text"] == "SELECT 1"


@pytest.mark.parametrize("value", [v for v in values(whole()) if not isinstance(v, Progress)])
def test_values_are_replaced_not_changed(value: object) -> None:
    name = fields(value)[0].name  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        setattr(value, name, None)


def test_a_state_survives_its_manifest_form() -> None:
    state = EngineState(epoch=3, next_seq=9, queries={"q": whole()}, dormant={"d": whole()})
    again = EngineState.from_json(state.to_json())
    assert again.to_json() == state.to_json()
    assert values(again.queries["q"]) == values(state.queries["q"])


def test_an_idle_query_takes_few_bytes() -> None:
    texts = [f"SELECT k FROM s WHERE v > {i}" for i in range(2_000)]
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    made = [
        QueryState(Definition(t, t, schema="x"), history=HistoryStart(7, {"s": 5}, {"s": 0}))
        for t in texts
    ]
    now, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (now - before) / len(made) < MOST_BYTES
