"""Tuples that arrive at a modeled source, and what is modeled of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.sort_codes import numbered_rows
from thalweg.columns.vector import Mask, concat
from thalweg.instants import Ints
from thalweg.models.validation import Bound
from thalweg.plan.expr import Expr


@dataclass(frozen=True, slots=True)
class Attribute:
    """A modeled column and its coefficients, ascending, as expressions of the tuple. Where there is
    a `bound`, tuples whose own value is within it are absorbed."""

    name: str
    coefficients: tuple[Expr, ...]
    bound: Bound | None = None

    def __str__(self) -> str:
        terms = (_term(str(c), i) for i, c in enumerate(self.coefficients))
        return f"{self.name} = {' + '.join(terms)}"


def bare_names(alias: str, names: Iterable[str]) -> str:
    """Columns of one source as they are called there."""
    return ", ".join(n.removeprefix(f"{alias}.") for n in names)


def without_alias(alias: str, text: str) -> str:
    """An expression over columns of one source, as it is written there."""
    return text.replace(f"{alias}.", "")


def _term(text: str, power: int) -> str:
    return text if not power else f"{text}*t" + (f"^{power}" if power > 1 else "")


@dataclass(frozen=True, slots=True)
class Tuples:
    """Arriving tuples by key and time, one for each instant of a key; `good` are those that begin a
    segment, whose rows are in `rows`. `last` marks the last of each key."""

    rows: Frame
    ts: Ints
    good: Mask
    last: Mask

    @property
    def first(self) -> Mask:
        found = np.ones(len(self.ts), np.bool_)
        found[1:] = self.last[:-1]
        return found


def partner(key: tuple[str, ...], rows: Frame, others: Frame) -> Ints:
    """For each row the place of the other one with its key, which is unique there; -1: none."""
    both = [concat([rows.columns[c], others.columns[c]]) for c in key]
    group, first = numbered_rows(both, rows.length + others.length)
    place = np.full(len(first), -1, np.int64)
    place[group[rows.length :]] = np.arange(others.length)
    found: Ints = place[group[: rows.length]]
    return found
