"""From JSON to the values of fields, where they are not the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.store.packs import PackMeta

_EMPTY: dict[str, Any] = {}


def no_entries() -> dict[str, Any]:
    """One empty mapping for all fields of frozen values that have none."""
    return _EMPTY


def pairs(given: Mapping[str, Iterable[int]]) -> dict[str, tuple[int, ...]]:
    return {key: tuple(pair) for key, pair in given.items()}


def packs(given: Iterable[Any]) -> list[PackMeta]:
    return [PackMeta.from_json(p) for p in given]


def state_packs(given: Iterable[Any]) -> tuple[StatePack, ...]:
    return tuple(StatePack.from_json(p) for p in given)


def slots(given: Mapping[str, Iterable[Any]]) -> dict[str, tuple[StatePack, ...]]:
    return {slot: state_packs(found) for slot, found in given.items()}
