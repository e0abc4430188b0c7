"""The context of a task besides its plan: the packs it may open, user functions, its instants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Frame
from thalweg.columns.shown_values import shown_values
from thalweg.columns.vector import ERROR_TEXT, Codes, Vector, from_arrow
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.tactics import AnyTactic, Seen, Subject
from thalweg.instants import Ints
from thalweg.plan.types import DataType
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import Pack


@dataclass(slots=True)
class Reject:
    """Rows that could not be evaluated: the failing expression, the reason, and the rows
    themselves."""

    expression: str
    codes: Codes
    ts: Ints
    rows: Frame


@dataclass(slots=True)
class TaskContext:
    """One task of one epoch: instants in [since, until) are to be processed; `start` is the query's
    first instant, None until it is known. `common` are predicates on streams that several queries
    evaluate (see `exec/predicates/memo.py`)."""

    cache: PackCache
    functions: Mapping[str, UserFunction]
    since: int
    until: int
    start: int | None = None
    tactics: Mapping[Subject, AnyTactic] = field(default_factory=dict)
    common: frozenset[tuple[str, str]] = frozenset()
    rejects: list[Reject] = field(default_factory=list)
    observations: dict[Subject, list[Seen]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def begins(self) -> bool:
        """Whether the query starts in this epoch."""
        return self.start is not None and self.since <= self.start < self.until

    @contextmanager
    def counting_apart(self, name: str) -> Iterator[None]:
        """Count what happens inside under one separate name: work that the answer did not need."""
        before = self.counts.copy()
        yield
        made = self.counts - before
        self.counts.subtract(made)
        self.counts[name] += sum(made.values())

    def vector(self, pack: Pack, name: str, dtype: DataType) -> Vector:
        key = (pack.name, name, dtype.name)
        found = self.cache.derived(key)
        if found is None:
            found = from_arrow(pack.column(name), dtype)
            self.cache.remember(key, found, owned_bytes(found.data, found.valid))
        return found  # type: ignore[no-any-return]


def owned_bytes(*arrays: Any) -> int:
    """Memory that arrays own themselves, not as views of a pack."""
    return sum(a.nbytes for a in arrays if isinstance(a, np.ndarray) and a.flags.owndata)


def rejects_table(rejects: list[Reject]) -> pa.Table | None:
    """Rejected rows as a table: `__ts`, the expression, the reason and the row as text."""
    times, expressions, reasons, rows = [], [], [], []
    for reject in rejects:
        times.append(reject.ts)
        expressions += [reject.expression] * len(reject.ts)
        reasons += [ERROR_TEXT.get(int(c), "error") for c in reject.codes]
        rows += _in_words(reject.rows)
    if not times:
        return None
    return pa.table(
        {
            "expression": pa.array(expressions, pa.string()),
            "reason": pa.array(reasons, pa.string()),
            "row": pa.array(rows, pa.string()),
            "__ts": pa.array(np.concatenate(times)),
        }
    )


def _in_words(frame: Frame) -> list[str]:
    columns = {n: shown_values(v.to_arrow()) for n, v in frame.columns.items()}
    return [", ".join(f"{n}={v[i]}" for n, v in columns.items()) for i in range(frame.length)]
