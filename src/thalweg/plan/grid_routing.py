"""Joins without a common key over many tasks: a grid with one axis per join attribute.

A row is sent to the tasks that agree with it along the axes it has a column for, and to all of them
along the others. A result's attributes fix one place on every axis, so one task makes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from thalweg.plan.joins.join_keys import KeyClasses
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import Routing, RoutingKind
from thalweg.plan.relations.block import Block

REPLICATION_LIMIT = 4.0
"""The largest mean number of tasks that read a row; beyond that fewer tasks share the work."""
MOST_AXES = 4

Shape = tuple[int, ...]


def cube_routing(
    block: Block, classes: KeyClasses, together: Sequence[frozenset[str]]
) -> Routing | None:
    """The grid for a join of streams, if there is one. Results that are equal in all of one of
    these sets of columns have to be computed `together`: groups, and those that may cancel."""
    leaves = block.leaves
    streams = {i for i, leaf in enumerate(leaves) if not leaf.is_table}
    if len(streams) < 2 or block.outer is not None or not all(map(_is_repeatable, leaves)):
        return None
    usable = [
        c
        for c in classes.members
        if len(c.keys() & streams) > 1 and all(names & set(c.values()) for names in together)
    ]
    usable.sort(key=lambda c: -len(c.keys() & streams))
    if not usable:
        return None
    axes = [
        [(leaf.bare(c[i]),) if i in c.keys() & streams else () for i, leaf in enumerate(leaves)]
        for c in usable[:MOST_AXES]
    ]
    return Routing(RoutingKind.CUBE, tuple(map(tuple, axes)))


def _is_repeatable(leaf: Leaf) -> bool:
    """Whether several tasks may read the same rows: none of them keeps state of its own."""
    return not (leaf.keeps_rows or leaf.members or leaf.changes)


def shape(routing: Routing, streams: Sequence[int], tasks: int) -> Shape:
    """The number of tasks along each axis, so that the busiest reads least; all streams count
    alike."""

    def rank(sizes: Shape) -> tuple[float, int]:
        return replication(routing, streams, sizes) / prod(sizes), prod(sizes)

    within = (
        sizes
        for sizes in _shapes(len(routing.axes), tasks)
        if replication(routing, streams, sizes) <= REPLICATION_LIMIT
    )
    return min(within, key=rank)


def replication(routing: Routing, streams: Sequence[int], sizes: Shape) -> float:
    """The number of tasks that read a row, on average over the streams."""
    copies = [
        prod(size for size, axis in zip(sizes, routing.axes, strict=True) if not axis[i])
        for i in streams
    ]
    return sum(copies) / len(copies)


def _shapes(axes: int, tasks: int) -> Iterator[Shape]:
    if axes == 0:
        yield ()
        return
    for size in range(1, tasks + 1):
        for rest in _shapes(axes - 1, tasks // size):
            yield size, *rest
