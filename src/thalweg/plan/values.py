"""Values as Python objects: equality and order.

NULL equals NULL, NaN equals NaN, -0.0 equals 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

# One object for all NaN: dictionaries and tuples compare by identity before equality.
NAN = float("nan")


def normal(value: Any) -> Any:
    """The representative of all values equal to this one, fit as a dictionary key."""
    if isinstance(value, float):
        return NAN if math.isnan(value) else value + 0.0
    if isinstance(value, (list, tuple)):
        return tuple(normal(v) for v in value)
    return value


def normal_row(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(normal(v) for v in values)


def order_key(value: Any) -> tuple[Any, ...]:
    """A sort key for values of one type: NULL first, NaN last, strings by their UTF-8 bytes. Arrays
    have no order that a query could ask for; where some is needed it is that of their texts."""
    if value is None:
        return (0,)
    if isinstance(value, float) and math.isnan(value):
        return (2,)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, tuple):
        return (1, list_text(value).encode())
    return (1, value)


def row_order_key(values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    return tuple(order_key(v) for v in values)


ESCAPE = "\x1b"


def list_text(values: Iterable[Any]) -> str:
    """A text for a list, equal for equal lists only."""
    shown = [_item_text(v) for v in values]
    return f"{len(shown)}:{','.join(shown)}"


def _item_text(value: Any) -> str:
    if value is None:
        return f"{ESCAPE}n"
    if isinstance(value, bool):
        return str(value).lower()
    return str(normal(value)).replace(ESCAPE, f"{ESCAPE}e").replace(",", f"{ESCAPE}c")
