"""The order of joins in Spark's own plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from thalweg.estimate.batch.partitioned_order import Tree

_INNER = ("Inner", "Cross")


@dataclass(frozen=True, slots=True)
class PlannedTree:
    """The joins of Spark's plan. Inputs of `large` have, as far as Spark knows, more bytes than it
    sends to every machine."""

    tree: Tree
    large: int


def optimized_tree(frame: DataFrame, aliases: Sequence[str], limit: int = 0) -> PlannedTree | None:
    """The tree of inner joins over all inputs of these aliases in the optimized plan; None where
    there is none, because an input was optimized away or another join stands between them."""
    execution = frame._jdf.queryExecution()
    inputs = _inputs(execution.analyzed(), aliases)
    if len(set(inputs.values())) < len(aliases):
        return None
    sizes: dict[int, int] = {}
    found = _tree(execution.optimizedPlan(), inputs, sizes)
    if found is None or found.inputs != (1 << len(aliases)) - 1:
        return None
    return PlannedTree(found, sum(i for i, size in sizes.items() if size > limit))


def _inputs(analyzed: Any, aliases: Sequence[str]) -> dict[int, int]:
    """Per attribute of the plan the input that it belongs to."""
    numbers = {a.lower(): i for i, a in enumerate(aliases)}
    found: dict[int, int] = {}

    def walk(plan: Any) -> None:
        name = plan.alias().lower() if plan.nodeName() == "SubqueryAlias" else None
        if name in numbers:
            for attribute in _each(plan.output()):
                found[attribute.exprId().id()] = 1 << numbers[name]
            return
        for child in _each(plan.children()):
            walk(child)

    walk(analyzed)
    return found


def _tree(plan: Any, inputs: Mapping[int, int], sizes: dict[int, int]) -> Tree | None:
    """The joins of inputs below a node; a leaf is what holds columns of one input. `sizes` gets the
    bytes that Spark expects of each."""
    if plan.nodeName() == "Join" and plan.joinType().toString() in _INNER:
        sides = [_tree(child, inputs, sizes) for child in _each(plan.children())]
        left, right = sides
        if left is None or right is None:
            return left or right
        return Tree(left.inputs | right.inputs, left, right)
    children = list(_each(plan.children()))
    found = [t for t in (_tree(child, inputs, sizes) for child in children) if t is not None]
    if len(found) == 1:
        return found[0]
    if found:  # another kind of join stands here: only its left side is in order
        return found[0]
    masks = {inputs.get(a.exprId().id(), 0) for a in _each(plan.output())} - {0}
    if len(masks) != 1:
        return None
    (mask,) = masks
    sizes[mask] = int(str(plan.stats().sizeInBytes()))
    return Tree(mask)


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.size())]
