"""Bounds of a join and of its sub-joins from table statistics: no row of a table is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

from thalweg.estimate.cached import join_trees
from thalweg.estimate.cached.filtered_input import FilteredInput
from thalweg.estimate.cached.join_trees import Edge, Tree
from thalweg.estimate.cached.matching_entries import Bits
from thalweg.estimate.cached.table_statistics import TableStatistics
from thalweg.estimate.cached.tree_bound import Sent, TreeBound
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.estimate.join_query import JoinInput, JoinQuery

MOST_SUBJOINS = 256
"""Beyond so many connected sub-joins, the smaller ones and the whole are bounded."""
_EXACT = 2.0**53
_ROUNDING = 1.0 + 1e-9
"""Above 2^53 sums of doubles are rounded: their relative error is far below this."""


@dataclass(frozen=True, slots=True)
class SubJoinBound:
    """A bound of the join of some inputs, and what it was computed from."""

    sources: tuple[str, ...]
    figure: Figure
    formula: str


@dataclass(frozen=True, slots=True)
class CachedBound:
    """One bound for each connected sub-join of two inputs and more, the whole last."""

    sub_joins: tuple[SubJoinBound, ...]

    @property
    def whole(self) -> SubJoinBound:
        return self.sub_joins[-1]

    @property
    def figure(self) -> Figure:
        return self.whole.figure


def cached_bound(query: JoinQuery, statistics: Mapping[str, TableStatistics]) -> CachedBound:
    """Guaranteed upper bounds of the rows of a join and its connected sub-joins.

    `statistics` are by relation. They must have been made from the rows that are joined: of other
    rows they guarantee nothing. An input without them makes each sub-join that it is in unknown.

    Equalities of a column that is no join column of its statistics, or whose type hashes otherwise
    than those of the other inputs, are left out, as are predicates that are no `Condition` and
    residual ones: a join has at most as many rows with a condition as without it. Of several
    valid bounds the least is taken.
    """
    search = _Search(_inputs(query, statistics))
    every = tuple(range(len(query.inputs)))
    found = []
    for subset in [*_connected(query), every]:
        value, formula = search.bound(subset)
        sources = tuple(query.inputs[i].alias for i in subset)
        found.append(SubJoinBound(sources, _figure(value), formula))
    return CachedBound(tuple(found))


Subset = tuple[int, ...]


def _connected(query: JoinQuery) -> Iterator[Subset]:
    """The connected proper subsets of two inputs and more, smaller ones first."""
    attributes = {i: frozenset(r.attributes) for i, r in enumerate(query.inputs)}
    subsets = (c for n in range(2, len(attributes)) for c in combinations(attributes, n))
    return islice(
        (s for s in subsets if join_trees.is_connected({i: attributes[i] for i in s})),
        MOST_SUBJOINS,
    )


def _first(bits: list[int]) -> int:
    return bits[0]


def _figure(value: float | None) -> Figure:
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return Figure.of(int(value if value <= _EXACT else value * _ROUNDING), Kind.BOUND)


def _inputs(
    query: JoinQuery, statistics: Mapping[str, TableStatistics]
) -> dict[int, FilteredInput]:
    """Those with statistics, with the columns that may be used of each attribute."""
    known = {i: r for i, r in enumerate(query.inputs) if r.relation in statistics}
    columns: dict[int, dict[str, str]] = {i: {} for i in known}
    safe = frozenset(a.name for a in query.attributes if a.null_safe)
    for attribute in query.attributes:
        for i, column in _alike(attribute.name, known, statistics).items():
            columns[i][attribute.name] = column
    return {
        i: FilteredInput(r.alias, statistics[r.relation], columns[i], r.conditions, safe)
        for i, r in known.items()
    }


def _alike(
    attribute: str, known: Mapping[int, JoinInput], statistics: Mapping[str, TableStatistics]
) -> dict[int, str]:
    """The columns of an attribute, if the types of all hash alike. Columns of one type that equal
    the same column of another are not always equal: 2^53 and 2^53 + 1 are the same double."""
    found = {}
    for i, source in known.items():
        keys = statistics[source.relation].keys
        if attribute in source.attributes and source.column(attribute) in keys:
            found[i] = keys[source.column(attribute)]
    families = {k.family for k in found.values()}
    return {i: k.name for i, k in found.items()} if len(families) == 1 else {}


@dataclass(frozen=True)
class _Search:
    """Bounds of sub-joins, each made once."""

    inputs: Mapping[int, FilteredInput]
    _found: dict[Subset, tuple[float | None, str]] = field(default_factory=dict)
    _sent: Sent = field(default_factory=dict)

    def bound(self, subset: Subset) -> tuple[float | None, str]:
        if subset not in self._found:
            self._found[subset] = self._bound(subset)
        return self._found[subset]

    def _bound(self, subset: Subset) -> tuple[float | None, str]:
        if any(i not in self.inputs for i in subset):
            return None, "no statistics of all inputs: run ANALYZE"
        if len(subset) == 1:
            source = self.inputs[subset[0]]
            return source.total, f"rows of {source.alias} that may satisfy its conditions"
        parts = join_trees.components(self._attributes(subset))
        return self._connected_bound(subset) if len(parts) == 1 else self._product(parts)

    def _attributes(self, subset: Subset) -> dict[int, frozenset[str]]:
        return {i: frozenset(self.inputs[i].columns) for i in subset}

    def _product(self, parts: Sequence[Subset]) -> tuple[float, str]:
        """Nothing is known that relates the parts."""
        found = [self.bound(p) for p in parts]
        value = math.prod(v for v, _ in found if v is not None)
        return value, " times ".join(f"({text})" for _, text in found)

    def _connected_bound(self, subset: Subset) -> tuple[float, str]:
        candidates = list(self._parts(subset))
        for tree in join_trees.trees(self._attributes(subset)):
            candidates += self._along(subset, tree)
        return min(candidates, key=lambda c: c[0])

    def _along(self, subset: Subset, tree: Tree) -> Iterator[tuple[float, str]]:
        for level in self._levels(subset):
            keys = {e: self._key(e, level) for e in tree}
            within = {i: self.inputs[i] for i in subset}
            value, edge = TreeBound(within, tree, keys, self._sent).least()
            yield value, self._text(edge, keys[edge])

    def _levels(self, subset: Subset) -> list[dict[str, int]]:
        """Bits of each attribute: the finest and the coarsest buckets that all inputs have, as
        these hold different bounds, and those of their entries."""
        found: list[dict[str, int]] = []
        for choice in (max, min, _first):
            level: dict[str, int] = {}
            for i in subset:
                for a in self.inputs[i].columns:
                    bits = choice(self.inputs[i].all_bits(a))
                    level[a] = min(bits, level.get(a, bits))
            if level not in found:
                found.append(level)
        return found

    def _key(self, edge: Edge, level: Mapping[str, int]) -> Bits:
        """All shared attributes where both inputs have entries, else the one of most buckets."""
        one, other = self.inputs[edge[0]], self.inputs[edge[1]]
        names = sorted(set(one.columns) & set(other.columns))
        if len(names) > 1 and one.entries is not None and other.entries is not None:
            finest = {a: min(one.entries.bits(a), other.entries.bits(a)) for a in names}
            return tuple((a, min(level[a], finest[a])) for a in names)
        name = max(names, key=lambda a: level[a])
        return ((name, level[name]),)

    def _parts(self, subset: Subset) -> Iterator[tuple[float, str]]:
        """One input less, times its largest degree: so many of its rows share the key of one
        result of the others."""
        for i in subset if len(subset) > 2 else ():
            source = self.inputs[i]
            rest = tuple(j for j in subset if j != i)
            others = self._attributes(rest)
            if len(join_trees.components(others)) == 1:
                names = frozenset(source.columns) & frozenset().union(*others.values())
                most = min(source.degree(a) for a in names)
                value, formula = self.bound(rest)
                assert value is not None
                yield value * most, f"{formula}, times {int(most):,} of {source.alias}"

    def _text(self, edge: Edge, over: Bits) -> str:
        names = ", ".join(f"{a} (2^{b} buckets)" for a, b in over)
        one, other = self.inputs[edge[0]].alias, self.inputs[edge[1]].alias
        return f"rows times largest degrees per {names}, cut between {one} and {other}"
