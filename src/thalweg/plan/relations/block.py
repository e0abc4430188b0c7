"""FROM, WHERE, GROUP BY, HAVING and SELECT as one relation: most queries are one block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from thalweg.plan.expr import Column, Predicate
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import Closing, Named, NamedAggregate, OuterKind, Schema
from thalweg.plan.pipeline import Pipeline, Probe, Subresult
from thalweg.plan.relations.protocol import (
    Describer,
    Need,
    Predicates,
    Relation,
    Reorder,
    Together,
    reordered_leaf,
)
from thalweg.plan.state_slots import BAG, GROUPS, LEAF, ROWS, STREAM


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUP BY and its aggregates."""

    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    closing: Closing | None = None


@dataclass(frozen=True, slots=True)
class Block(Relation):
    """FROM, WHERE, GROUP BY, HAVING and SELECT. With `outer`, rows of the first leaf looked up in
    the second, as that says. `joins` are the predicates that pipelines are made from. Where
    pipelines look `subresults` up, `plain` are the same without them."""

    slots = (GROUPS, ROWS, STREAM, LEAF, BAG)
    leaves: tuple[Leaf, ...] = field()
    pipelines: tuple[Pipeline, ...] = field()
    top: tuple[Predicate, ...] = field()
    grouping: Grouping | None = field()
    having: tuple[Predicate, ...] = field()
    columns: tuple[Named, ...] = field()
    outer: OuterKind | None = None
    joins: tuple[Predicate, ...] = ()
    subresults: tuple[Subresult, ...] = ()
    plain: tuple[Pipeline, ...] = ()

    @property
    def orders(self) -> dict[int, tuple[int, ...]]:
        """Per leaf that brings changes, the others in the order they are joined."""
        return {p.leaf: p.order for p in self.pipelines}

    @property
    def is_many_way(self) -> bool:
        """Whether it joins three leaves or more."""
        return len(self.leaves) > 2 and self.outer is None

    @property
    def leaf_probes(self) -> tuple[Probe, ...]:
        """All probes that meet leaves, subresults or not."""
        return tuple(p for pipe in self.plain or self.pipelines for p in pipe.probes)

    def unit(self, number: int) -> Leaf | Subresult:
        """The target of a probe: a leaf, or, numbered after them, a subresult."""
        count = len(self.leaves)
        return self.leaves[number] if number < count else self.subresults[number - count]

    @property
    def schema(self) -> Schema:
        return tuple(c.field() for c in self.columns)

    @property
    def is_static(self) -> bool:
        """Whether it reads tables alone: then it appears as a whole when the query starts."""
        return all(leaf.is_table for leaf in self.leaves)

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(leaf.source for leaf in self.leaves if leaf.source is not None)

    @property
    def only_grows(self) -> bool:
        windows = [leaf.window for leaf in self.leaves if leaf.window is not None]
        return self.grouping is None and all(w.only_grows for w in windows)

    @property
    def has_keys(self) -> bool:
        return bool(self.grouping and self.grouping.keys)

    @property
    def grouped_by(self) -> frozenset[str]:
        """The columns among the keys of groups."""
        keys = () if self.grouping is None else self.grouping.keys
        return frozenset(k.expr.name for k in keys if isinstance(k.expr, Column))

    def needs(self) -> tuple[Need, ...]:
        """The needs of each leaf alone; how several are joined is decided in `plan/routing.py`."""
        return tuple(self._need(leaf) for leaf in self.leaves)

    def _need(self, leaf: Leaf) -> Need:
        alone = len(self.leaves) == 1 and self.grouping is None and leaf.emits is None
        if alone and not leaf.keeps_rows and not leaf.is_table:
            return Need(Together.ANY)
        allowed = {f.name for f in leaf.fields}
        if leaf.window is not None and leaf.window.is_ordered:
            allowed &= set(leaf.window.partition_by)
        if len(self.leaves) == 1 and self.grouping is not None:
            allowed &= self.grouped_by
        return Need(Together.KEYS, frozenset(allowed)) if allowed else Need(Together.ALL)

    def shows(self, place: int, column: str) -> frozenset[str]:
        names = {column}
        if self.grouping is not None:
            keys = self.grouping.keys
            names = {k.name for k in keys if isinstance(k.expr, Column) and k.expr.name == column}
        columns = ((c.name, c.expr) for c in self.columns)
        return frozenset(n for n, e in columns if isinstance(e, Column) and e.name in names)

    def conjunctions(self) -> Iterator[Predicates]:
        yield from Relation.conjunctions(self)
        yield self.top
        yield self.having

    def reordered(self, order: Reorder) -> Block:
        leaves = tuple(reordered_leaf(leaf, order) for leaf in self.leaves)
        return replace(self, leaves=leaves, top=order(self.top), having=order(self.having))

    def probed_keys(self, leaf: int) -> tuple[tuple[str, ...], ...]:
        return tuple(dict.fromkeys(p.target for p in self.leaf_probes if p.leaf == leaf))

    def explained(self, show: Describer) -> list[str]:
        lines = []
        if self.having:
            lines.append(f"  having {listed(self.having)}")
        if self.grouping is not None:
            keys = ", ".join(k.name for k in self.grouping.keys) or "everything"
            calls = ", ".join(a.name for a in self.grouping.aggregates) or "presence"
            lines.append(f"  group by {keys}: {calls}")
        if self.top:
            lines.append(f"  judge {listed(self.top)}  (may raise: asked of whole results)")
        if any(p.probes for p in self.pipelines):
            lines += [JOIN] + [f"    {_pipeline(self, p)}" for p in self.pipelines]
        return lines + [line for leaf in self.leaves for line in show.leaf(leaf)]


JOIN = "  join (Δ: rows that enter or leave a window, looked up in the others from left to right)"


def blocks_of(relations: Iterable[Relation]) -> Iterator[tuple[int, Block]]:
    """The blocks among relations, with their numbers."""
    for number, relation in enumerate(relations):
        if isinstance(relation, Block):
            yield number, relation


def listed(predicates: Sequence[Predicate]) -> str:
    return ", ".join(str(p) for p in predicates)


def _pipeline(block: Block, pipeline: Pipeline) -> str:
    steps = [f"Δ{block.leaves[pipeline.leaf].alias}"]
    for probe in pipeline.probes:
        unit = block.unit(probe.leaf)
        on = ", ".join(
            f"{unit.full(t)} = {s}" for s, t in zip(probe.source, probe.target, strict=True)
        )
        residual = f" where {listed(probe.residual)}" if probe.residual else ""
        if probe.outer is not None:
            residual += f" ({probe.outer.value.lower()} look-up)"
        shown = f"{unit.alias} (product)" if not on else f"{_unit(unit)} on {on}"
        steps.append(shown + residual)
    return " → ".join(steps)


def _unit(unit: Leaf | Subresult) -> str:
    if isinstance(unit, Leaf):
        return unit.alias
    return f"{'kept' if unit.whole else 'cached'} {unit.alias}"
