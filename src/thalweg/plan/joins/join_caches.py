"""Plans with subresults: joins of some leaves that other pipelines look up instead of computing.

A *span* is a run of neighbouring probes in one pipeline. Where the pipelines of all its leaves join
just them first (the prefix invariant), changes of the subresult are produced in normal processing;
for leaves that meet others before, the change is computed by a separate pipeline. Spans of several
pipelines over the same leaves and by the same key share one subresult.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import is_

from thalweg.plan.expr import columns_of
from thalweg.plan.joins.join_keys import KeyClasses
from thalweg.plan.joins.join_order import (
    equality,
    integer_like,
    pipeline,
    probe_order,
    routed_by,
    without_subresults,
)
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import Field
from thalweg.plan.physical import QueryPlan
from thalweg.plan.pipeline import Check, Pipeline, Probe, Subresult
from thalweg.plan.relations.block import Block

KEY = "__key"
"""Columns of the rows that a fill starts from."""


@dataclass(frozen=True, slots=True)
class Span:
    """Probes `first` to `last` of the pipeline of a leaf, as a cache or kept whole."""

    leaf: int
    first: int
    last: int
    whole: bool = False
    buckets: int = 1 << 12
    limit: int = 1 << 26


def can_be_kept(leaf: Leaf) -> bool:
    """Whether rows of a leaf can be referred to across epochs."""
    waits = leaf.window is not None and leaf.window.waits
    passing = waits or leaf.changes or leaf.members
    return leaf.is_stored and not passing


def keeps_prefix(orders: Mapping[int, Sequence[int]], members: Iterable[int]) -> bool:
    """Whether every pipeline of the members joins the other members first."""
    wanted = set(members)
    return all(
        set(orders[leaf][: len(wanted) - 1]) == wanted - {leaf} for leaf in wanted if leaf in orders
    )


def all_spans(block: Block, *, prefix: bool = False) -> list[Span]:
    """Every run of probes whose leaves may be kept as a subresult; with `prefix` only those whose
    changes are produced in normal processing."""
    if block.outer is not None:
        return []
    orders, found = block.orders, []
    for leaf, order in orders.items():
        for first in range(len(order) - 1):
            for last in range(first + 1, len(order)):
                members = order[first : last + 1]
                if (
                    may_be_kept(block, members)
                    and (not prefix or keeps_prefix(orders, members))
                    and key_of(block, {leaf, *order[:first]}, members)
                ):
                    found.append(Span(leaf, first, last))
    return found


def may_be_kept(block: Block, members: Sequence[int]) -> bool:
    """Whether the join of some leaves can be kept: rows can be referred to, and keys or other
    predicates between them link them (a product of windows is not worth keeping)."""
    if not all(can_be_kept(block.leaves[i]) for i in members):
        return False
    links = _known(_Keys(block)).links
    return _reaches_all(members, [link & set(members) for link in links])


class _Keys:
    """The leaves and predicates of a block by identity: those of a plan are asked for again and
    again, and comparing them is most of the work."""

    def __init__(self, block: Block) -> None:
        self._of = (block.leaves, block.joins)

    def __hash__(self) -> int:
        return hash(tuple(map(id, self._of)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keys) and all(map(is_, self._of, other._of))

    @cached_property
    def classes(self) -> KeyClasses:
        return KeyClasses(*self._of)

    @cached_property
    def links(self) -> list[set[int]]:
        """Leaves that keys or other predicates link."""
        return [*map(set, self.classes.members), *self.classes.bridges()]


@lru_cache(maxsize=16)
def _known(keys: _Keys) -> _Keys:
    return keys


def is_linked(block: Block, members: Sequence[int]) -> bool:
    """Whether keys lead from each of some leaves to all the others, through these leaves alone."""
    classes = KeyClasses(block.leaves, block.joins)
    return _reaches_all(members, [set(c) & set(members) for c in classes.members])


def _reaches_all(members: Sequence[int], links: Sequence[set[int]]) -> bool:
    joined: set[int] = {members[0]}
    while found := {i for link in links if link & joined for i in link} - joined:
        joined |= found
    return joined >= set(members)


def compatible(spans: Sequence[Span]) -> bool:
    """Whether no two of the spans overlap in their pipeline."""
    return not any(
        one.leaf == other.leaf and one.first <= other.last and other.first <= one.last
        for n, one in enumerate(spans)
        for other in spans[:n]
    )


def key_of(block: Block, before: Iterable[int], members: Iterable[int]) -> tuple[str, ...]:
    """The columns of some leaves that keys link to leaves before them."""
    classes = _known(_Keys(block)).classes
    return tuple(column for _, column in _key(classes, set(before), set(members)))


def sources_of(block: Block, before: Sequence[int], members: Iterable[int]) -> tuple[str, ...]:
    """The columns before some leaves by which they would be looked up together."""
    classes = KeyClasses(block.leaves, block.joins)
    keys = _key(classes, set(before), set(members))
    return tuple(
        next(classes.members[n][i] for i in before if i in classes.members[n]) for n, _ in keys
    )


def _key(classes: KeyClasses, before: set[int], members: set[int]) -> list[tuple[int, str]]:
    return [
        (n, c[min(members & set(c))])
        for n, c in enumerate(classes.members)
        if before & set(c) and members & set(c)
    ]


def with_spans(plan: QueryPlan, relation: int, spans: Sequence[Span]) -> QueryPlan:
    """The plan with these spans of one relation kept, and no others."""
    return plan.with_block(relation, _builder(plan, relation, spans).built(spans))


def upkeep_of(plan: QueryPlan, relation: int, span: Span) -> tuple[Pipeline, ...]:
    """The separate pipelines that are needed to maintain a span."""
    return _builder(plan, relation, [span]).subresults_of([span])[0][0].upkeep


def _builder(plan: QueryPlan, relation: int, spans: Sequence[Span]) -> _Builder:
    block = without_subresults(plan.block(relation))
    kept = {i for s in spans for i in block.orders[s.leaf][s.first : s.last + 1]}
    leaves = tuple(leaf.tracked() if i in kept else leaf for i, leaf in enumerate(block.leaves))
    return _Builder(replace(block, leaves=leaves), routed_by(plan, relation))


class _Builder:
    def __init__(self, block: Block, routed: list[tuple[str, ...] | None]) -> None:
        self.block = block
        self.leaves = block.leaves
        self.classes = KeyClasses(block.leaves, block.joins)
        self.routed = routed
        self.subresults: dict[tuple[tuple[int, ...], tuple[str, ...]], Subresult] = {}

    def built(self, spans: Sequence[Span]) -> Block:
        orders = self.block.orders
        found, units = self.subresults_of(spans)
        pipelines = tuple(
            replace(self._pipeline(leaf, units[leaf], found), order=tuple(orders[leaf]))
            for leaf in orders
        )
        plain = tuple(self._pipeline(leaf, list(orders[leaf]), ()) for leaf in orders)
        if not found:
            return replace(self.block, pipelines=plain, plain=())
        return replace(self.block, pipelines=pipelines, subresults=found, plain=plain)

    def subresults_of(
        self, spans: Sequence[Span]
    ) -> tuple[tuple[Subresult, ...], dict[int, list[int]]]:
        """The subresults for some spans, and what each pipeline probes with them."""
        orders = self.block.orders
        units: dict[int, list[int]] = {leaf: list(order) for leaf, order in orders.items()}
        for span in sorted(spans, key=lambda s: -s.first):
            order = orders[span.leaf]
            members = order[span.first : span.last + 1]
            number = self._subresult(span, {span.leaf, *order[: span.first]}, set(members))
            units[span.leaf][span.first : span.last + 1] = [number]
        return tuple(self._with_upkeep(s, units) for s in self.subresults.values()), units

    def _subresult(self, span: Span, before: set[int], members: set[int]) -> int:
        keys = _key(self.classes, before, members)
        assert keys, "no key leads to these leaves"
        identity = (tuple(sorted(members)), tuple(column for _, column in keys))
        if identity not in self.subresults:
            fields = tuple(f for i in identity[0] for f in self.leaves[i].fields)
            self.subresults[identity] = Subresult(
                *identity,
                fields,
                self._fill(members, [] if span.whole else keys),
                span.whole,
                span.buckets,
                span.limit,
            )
        return len(self.leaves) + list(self.subresults).index(identity)

    def _with_upkeep(self, subresult: Subresult, units: Mapping[int, list[int]]) -> Subresult:
        """Pipelines for the members whose own does not join the others first."""
        members = set(subresult.members)
        inside = self._inside(members, {})
        upkeep = [
            self._between(leaf, members, inside, self.leaves)
            for leaf in subresult.members
            if leaf in units and not self._joins_first(leaf, units[leaf], members)
        ]
        return replace(subresult, upkeep=tuple(upkeep))

    def _joins_first(self, leaf: int, units: list[int], members: set[int]) -> bool:
        known = list(self.subresults.values())
        joined = {leaf}
        for unit in units:
            if unit < len(self.leaves):
                joined.add(unit)
            else:
                joined |= set(known[unit - len(self.leaves)].members)
            if joined >= members:
                break
        return joined == members

    def _fill(self, members: set[int], keys: list[tuple[int, str]]) -> Pipeline:
        """The fill pipeline from a key, one column per class, to the members' rows; without keys
        from the rows of one member to those of the others."""
        types = {f.name: f.type for leaf in self.leaves for f in leaf.fields}
        columns = {n: Field(f"{KEY}{i}", types[c], True) for i, (n, c) in enumerate(keys)}
        source = Leaf("", "", tuple(columns.values()), None)
        inside = self._inside(members, {n: f.name for n, f in columns.items()})
        start = -1 if keys else min(members)
        return self._between(start, members, inside, (*self.leaves, source))

    def _inside(self, members: set[int], keys: Mapping[int, str]) -> KeyClasses:
        """Predicates that link only members with each other, or, as leaf -1, with a key."""
        inside = KeyClasses(self.leaves, self.block.joins)
        covered = [p for n, p in enumerate(inside.predicates) if n in inside.covered]
        inside.members = [
            {i: c for i, c in found.items() if i in members} | ({-1: keys[n]} if n in keys else {})
            for n, found in enumerate(inside.members)
        ]
        names = {f.name for i in members for f in self.leaves[i].fields}
        inside.predicates = tuple(p for p in inside.predicates if columns_of(p.expr) <= names)
        inside.covered = {n for n, p in enumerate(inside.predicates) if p in covered}
        return inside

    def _between(
        self, start: int, members: set[int], inside: KeyClasses, leaves: tuple[Leaf, ...]
    ) -> Pipeline:
        order = [i for i in probe_order(start, len(self.leaves), inside) if i in members]
        return pipeline(start, order, leaves, inside, self.routed)

    def _pipeline(self, start: int, units: list[int], found: Sequence[Subresult]) -> Pipeline:
        base = pipeline(start, self._flat(units, found), self.leaves, self.classes, self.routed)
        if all(u < len(self.leaves) for u in units):
            return base
        plain = {p.leaf: p for p in base.probes}
        done, loose, probes = [start], set[int](), []
        for unit in units:
            inside = [unit]
            if unit < len(self.leaves):
                probe = plain[unit]
                if probe.check is not None and probe.check.parent in loose:
                    probe = replace(probe, check=None)
            else:
                inside = list(found[unit - len(self.leaves)].members)
                probe = self._composite(unit, found[unit - len(self.leaves)], done, loose, plain)
            probes.append(probe)
            done += inside
            if probe.check is None or not probe.check.is_all:
                loose |= set(inside)  # not at hand before results are enumerated
        return Pipeline(start, tuple(probes))

    def _flat(self, units: list[int], found: Sequence[Subresult]) -> list[int]:
        flat: list[int] = []
        for unit in units:
            if unit < len(self.leaves):
                flat.append(unit)
            else:
                members = found[unit - len(self.leaves)].members
                flat += sorted(members)
        return flat

    def _composite(
        self,
        unit: int,
        subresult: Subresult,
        done: list[int],
        loose: set[int],
        plain: Mapping[int, Probe],
    ) -> Probe:
        """The probe of a subresult by all its keys. Predicates between members were evaluated in
        it."""
        keys = _key(self.classes, set(done), set(subresult.members))
        owners = [[i for i in done if i in self.classes.members[n]] for n, _ in keys]
        shared = [i for i in done if i not in loose and all(i in o for o in owners)]
        source = tuple(
            self.classes.members[n][shared[0] if shared else o[0]]
            for (n, _), o in zip(keys, owners, strict=True)
        )
        target = tuple(column for _, column in keys)
        inner = {f.name for f in subresult.fields}
        residual = tuple(
            p
            for i in subresult.members
            for p in plain[i].residual
            if not columns_of(p.expr) <= inner
        )
        verify = tuple(equality(s, t, self.leaves) for s, t in zip(source, target, strict=True))
        exact = len(target) == 1 and integer_like(
            next(f.type for f in subresult.fields if f.name == target[0])
        )
        check = Check(shared[0], source, target, True) if shared else None
        return Probe(unit, source, target, exact, verify, residual, check=check)
