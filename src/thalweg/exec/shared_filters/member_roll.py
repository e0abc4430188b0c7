"""The members of a shared filter (its roll), as packs of an Arrow table.

Packs are added when queries are added and merged when there are many; the numbers of dropped
queries are marked as deleted until a merge leaves them out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.columns.vector import numpy_type
from thalweg.exec.shared_filters.predicate_index import Asked, PredicateIndex
from thalweg.instants import Ints
from thalweg.plan.expr import Expr
from thalweg.plan.logical import Schema
from thalweg.plan.sharing.shared_filter import Comparison, StandingFilter
from thalweg.plan.types import DataType
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import PackMeta
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
    """The roll as a step needs it: the packs, the numbers marked as deleted, and the members'
    conditions beyond comparisons, each once, by its text."""

    packs: tuple[PackMeta, ...]
    struck: tuple[int, ...] = ()
    rest: tuple[tuple[str, Expr], ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the roll: one member."""

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
    kind = _kind(comparison.type)
    return {"column": comparison.column, "operator": comparison.operator, kind: comparison.constant}


def index_of(cache: PackCache, pack: PackMeta, fields: Schema) -> tuple[PredicateIndex, Ids]:
    """The predicate index of a pack's members and their numbers, built once in a process."""
    key = ("predicate index", pack.name)
    found = cache.derived(key)
    if found is None:
        table = cache.storage.read_table(pack.name)
        ids = table.column(ID).combine_chunks().to_numpy()
        found = PredicateIndex(table.num_rows, _asked(table, fields)), ids
        cache.remember(key, found, 200 * table.num_rows)
    return found  # type: ignore[no-any-return]


def question(text: str) -> str:
    """The name of the column that holds the results of a condition of the `rest`."""
    return f"?{text}"


def _asked(table: pa.Table, fields: Schema) -> dict[str, Asked]:
    """The comparisons of a roll, column by column."""
    types = {f.name: f.type for f in fields}
    compared = table.column(COMPARISONS).combine_chunks()
    owner, values = _owners(compared), compared.flatten()
    operators = np.array(values.field("operator").to_pylist(), np.str_)
    found = {}
    for name, mine in _by(values.field("column")):
        constants = values.field(_kind(types[name])).take(pa.array(mine))
        dtype = numpy_type(types[name]) or np.object_
        array = np.array(constants.to_numpy(zero_copy_only=False), dtype)
        found[name] = Asked(owner[mine], operators[mine], array)
    rest = table.column(REST).combine_chunks()
    owner = _owners(rest)
    for text, mine in _by(rest.flatten()):
        ones = np.ones(len(mine), np.int8)
        found[question(text)] = Asked(owner[mine], np.full(len(mine), "="), ones)
    return found


def _owners(lists: pa.ListArray) -> Ints:
    """For each of the flattened values, the list that it belongs to."""
    return np.repeat(np.arange(len(lists)), np.diff(lists.offsets.to_numpy()))


def _by(names: pa.StringArray) -> Iterator[tuple[str, Ints]]:
    """Each distinct name and its places."""
    coded = names.dictionary_encode()
    codes = coded.indices.to_numpy()
    for number, name in enumerate(coded.dictionary.to_pylist()):
        yield name, np.flatnonzero(codes == number)


def _kind(dtype: DataType) -> str:
    """The key under which constants of a type are stored."""
    if dtype.name == "STRING":
        return "text"
    return "number" if dtype.is_float else "integer"
