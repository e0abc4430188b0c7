"""Smaller joins of the same size: inputs that only test keys are replaced by sets of keys.

- An input that passed a filter, joins by one attribute and has each key once is replaced by `key IN
  (...)` on the inputs that reference it, if it has few keys. The size stays the same. With one key
  the attribute disappears, too, since all rows agree on it.
- An input without a filter that joins by one attribute and has each key once is dropped: it cannot
  enlarge the join. The size may grow where references dangle, so what remains is a bound of it.

Each removal may make the next one possible; it ends when nothing changes. Only the whole join is
replaced: a sub-join without the removed input is not restricted by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from thalweg.estimate.hypergraph import Hypergraph, members
from thalweg.estimate.join_query import JoinQuery
from thalweg.estimate.join_rows import JoinRows
from thalweg.instants import Ints

PROPAGATE_MAX_KEYS = 1000


@dataclass(frozen=True, slots=True)
class Reduction:
    """A join with fewer inputs. `is_exact`: its size is that of the original, not only a bound of
    it. `notes` say what was replaced."""

    rows: JoinRows
    is_exact: bool = True
    notes: tuple[str, ...] = ()


def reduced(rows: JoinRows, most_keys: int = PROPAGATE_MAX_KEYS) -> Reduction:
    """The join after all replacements; filters with more keys than `most_keys` stay inputs."""
    found = Reduction(rows)
    filtered = {
        r.alias for r, p in zip(rows.query.inputs, rows.passing, strict=True) if p is not None
    }
    while True:
        smaller = _step(found, filtered, most_keys)
        if smaller is None:
            return found
        found = smaller


def _step(found: Reduction, filtered: set[str], most_keys: int) -> Reduction | None:
    rows = found.rows
    for one, edge in enumerate(rows.graph.edges):
        if len(edge) != 1 or rows.graph.holders[edge[0]].bit_count() < 2:
            continue
        (attribute,) = edge
        name = rows.graph.names[one]
        codes = rows.codes(one, attribute)
        codes = codes[codes > 0]
        keys = np.unique(codes)
        if len(keys) < len(codes):
            continue
        if name not in filtered:
            note = f"{name} dropped: each key once, no filter"
            return Reduction(_without(rows, one), False, (*found.notes, note))
        if len(keys) <= most_keys:
            filtered |= {rows.graph.names[i] for i in members(rows.graph.neighbours[one])}
            note = f"{name} replaced by {attribute} IN ({len(keys)} keys)"
            kept = _restricted(rows, one, attribute, keys.astype(np.int64))
            return Reduction(kept, found.is_exact, (*found.notes, note))
    return None


def _restricted(rows: JoinRows, one: int, attribute: str, keys: Ints) -> JoinRows:
    """The other holders of an attribute with the keys of one of them, without that one."""
    allowed = np.zeros(rows.domain(attribute).size, np.bool_)
    allowed[keys] = True
    passing = list(rows.passing)
    for i in members(rows.graph.neighbours[one]):
        kept = np.flatnonzero(allowed[rows.codes(i, attribute)])
        before = passing[i]
        passing[i] = kept if before is None else before[kept]
    smaller = _without(replace_passing(rows, tuple(passing)), one)
    return _without_attribute(smaller, attribute) if len(keys) == 1 else smaller


def replace_passing(rows: JoinRows, passing: tuple[Ints | None, ...]) -> JoinRows:
    """The same join over fewer rows."""
    return JoinRows(rows.query, rows.graph, rows.tables, passing)


def _without(rows: JoinRows, one: int) -> JoinRows:
    def others(values: tuple) -> tuple:  # type: ignore[type-arg]
        return values[:one] + values[one + 1 :]

    query = replace(rows.query, inputs=others(rows.query.inputs))
    tables, passing = others(rows.tables), others(rows.passing)
    return JoinRows(query, Hypergraph.of(query), tables, passing)


def _without_attribute(rows: JoinRows, attribute: str) -> JoinRows:
    inputs = tuple(
        replace(r, columns=tuple(c for c in r.columns if c[0] != attribute), unique=False)
        for r in rows.query.inputs
    )
    attributes = tuple(a for a in rows.query.attributes if a.name != attribute)
    query = JoinQuery(inputs, attributes, rows.query.residual)
    return JoinRows(query, Hypergraph.of(query), rows.tables, rows.passing)
