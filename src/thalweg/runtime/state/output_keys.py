"""Committed output in the state: under a query's name, the epochs that it is of, and its packs.

A key is `name/epoch`, or, once the output of several epochs has been gathered in one pack,
`name/first-last`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")


def key_of(name: str, first: int, last: int) -> str:
    return f"{name}/{first}" if first == last else f"{name}/{first}-{last}"


def owner_of(key: str) -> str:
    return key.rsplit("/", 1)[0]


def epochs_of(key: str) -> tuple[int, int]:
    """The first and the last epoch."""
    first, _, last = key.rsplit("/", 1)[1].partition("-")
    return int(first), int(last or first)


def last_epoch_of(key: str) -> int:
    return epochs_of(key)[1]


def number_of_epochs(keys: Sequence[str]) -> int:
    """So many epochs the output of one query may be of; in some there may have been none."""
    return sum(last - first + 1 for first, last in map(epochs_of, keys))


def keys_of(outputs: Mapping[str, T], name: str) -> list[str]:
    """The keys of a query, in the order of time."""
    found = [key for key in outputs if owner_of(key) == name]
    return sorted(found, key=epochs_of)


def epochs_named(outputs: Iterable[str]) -> set[str]:
    """The first and last epochs of all keys: those whose clocks are still of use."""
    return {str(epoch) for key in outputs for epoch in epochs_of(key)}


def place_of(names: Sequence[str], some: tuple[str, ...]) -> int | None:
    """Where these names stand, one after another; None if they do not."""
    at = names.index(some[0]) if some[0] in names else 0
    return at if tuple(names[at : at + len(some)]) == some else None
