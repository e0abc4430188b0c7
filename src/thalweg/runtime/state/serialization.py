"""Dataclasses as plain JSON and back, field by field.

A field that has its default value is left out: most fields of most queries do, and there may be
very many queries. A field whose JSON is not its value has a reader in its metadata (`read=`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, astuple, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")
Json = dict[str, Any]
READ = "read"


def to_json(value: Any) -> Json:
    """The fields of a dataclass that differ from their defaults."""
    found: Json = {}
    update(found, value)
    return found


def update(found: Json, value: Any) -> None:
    """Write a dataclass over what it was before in `found`."""
    kind: Any = type(value)
    for name, default in _defaults(kind):
        own = getattr(value, name)
        if own is not default and own != default:
            found[name] = plain(own)
        else:
            found.pop(name, None)


def from_json(kind: Callable[..., T], data: Mapping[str, Any]) -> T:
    """A dataclass from those of its fields that are there; other keys are not looked at."""
    return kind(**{n: read(data[n]) for n, read in _readers(kind) if n in data})


def plain(value: Any) -> Any:
    """A value as JSON types. Lists are JSON already (see `Described`)."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is tuple:
        return [plain(v) for v in value]
    if kind is dict:
        return {k: v if type(v) in _ATOMS else plain(v) for k, v in value.items()}
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value) and not isinstance(value, type):
        return list(astuple(value))
    return value


_ATOMS = frozenset((int, str, bool, float, list, type(None)))


def _written(kind: Any) -> list[Field[Any]]:
    return [f for f in fields(kind) if not f.name.startswith("_")]


@cache
def _defaults(kind: Any) -> list[tuple[str, Any]]:
    return [(f.name, _default(f)) for f in _written(kind)]


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


@cache
def _readers(kind: Any) -> list[tuple[str, Callable[[Any], Any]]]:
    return [(f.name, f.metadata.get(READ, _same)) for f in _written(kind)]


def _same(value: Any) -> Any:
    return value
