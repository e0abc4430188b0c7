"""The roll: who is a member of a shared filter, as packs of an Arrow table.

Packs are added when queries come and merged when there are many; queries that go are struck off by
their numbers until a merge leaves them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.exec.many.index import Factor, PredicateIndex
from thalweg.exec.vector import numpy_type
from thalweg.plan.expr import Expr
from thalweg.plan.logical import Schema
from thalweg.plan.standing import Comparison, StandingFilter
from thalweg.store.packs import PackCache, PackMeta
from thalweg.store.storage import Storage

ID, NAME, TEXT, CREATED, COMPARISONS, REST = "id", "name", "text", "created", "comparisons", "rest"
_COMPARISON = pa.struct(
    [
        ("column", pa.string()),
        ("operator", pa.string()),
        ("integer", pa.int64()),
        ("number", pa.float64()),
        ("text", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        (ID, pa.int32()),
        (NAME, pa.string()),
        (TEXT, pa.string()),
        (CREATED, pa.string()),
        (COMPARISONS, pa.list_(_COMPARISON)),
        (REST, pa.list_(pa.string())),
    ]
)


Ids = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Roll:
    """What a step needs to know: the packs, who is struck off, and what members ask beyond
    comparisons, each question once, by its text."""

    packs: tuple[PackMeta, ...]
    struck: tuple[int, ...] = ()
    rest: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the roll."""

    id: int
    name: str
    text: str
    created: str
    filter: StandingFilter


def write_roll(storage: Storage, name: str, entries: Sequence[Entry]) -> PackMeta:
    rows = [
        {
            ID: e.id,
            NAME: e.name,
            TEXT: e.text,
            CREATED: e.created,
            COMPARISONS: [_written(c) for c in e.filter.comparisons],
            REST: [str(r) for r in e.filter.rest],
        }
        for e in entries
    ]
    return write_rows(storage, name, pa.Table.from_pylist(rows, SCHEMA))


def write_rows(storage: Storage, name: str, table: pa.Table) -> PackMeta:
    return PackMeta(name, table.num_rows, storage.write_table(name, table), 0, 0)


def _written(comparison: Comparison) -> dict[str, object]:
    constant = comparison.constant
    kind = "text" if isinstance(constant, str) else "number"
    if isinstance(constant, int):
        kind = "integer"
    return {"column": comparison.column, "operator": comparison.operator, kind: constant}


def index_of(cache: PackCache, pack: PackMeta, fields: Schema) -> tuple[PredicateIndex, Ids]:
    """The index of a pack's members and their numbers, made once in a process."""
    key = ("predicate index", pack.name)
    found = cache.derived(key)
    if found is None:
        table = cache.storage.read_table(pack.name)
        ids = table.column(ID).combine_chunks().to_numpy()
        found = PredicateIndex(_factors(table), _dtypes(fields)), ids
        cache.remember(key, found, 200 * table.num_rows)
    return found  # type: ignore[no-any-return]


def question(text: str) -> str:
    """The name under which the answer to a question of the `rest` is a column."""
    return f"?{text}"


def _factors(table: pa.Table) -> list[list[Factor]]:
    found = []
    rest = table.column(REST).to_pylist()
    for compared, asked in zip(table.column(COMPARISONS).to_pylist(), rest, strict=True):
        factors = [Factor(c["column"], c["operator"], _constant(c)) for c in compared]
        found.append(factors + [Factor(question(text), "=", 1) for text in asked])
    return found


def _constant(written: Mapping[str, object]) -> object:
    kinds = ("integer", "number", "text")
    return next((written[k] for k in kinds if written[k] is not None), None)


class _Dtypes(dict[str, npt.DTypeLike]):
    """Answers are numbers 0 and 1."""

    def __missing__(self, name: str) -> npt.DTypeLike:
        return np.int8


def _dtypes(fields: Schema) -> Mapping[str, npt.DTypeLike]:
    return _Dtypes({f.name: numpy_type(f.type) or np.object_ for f in fields})
