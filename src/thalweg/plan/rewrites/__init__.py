"""Rewrites of the logical plan: one rule per file, one public function each, applied in order.

Every rule keeps the answer, rejects included: that is what their tests execute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.expr import Expr, Literal
from thalweg.plan.logical import Emit, Node
from thalweg.plan.rewrites.fold_constants import fold_constants
from thalweg.plan.rewrites.prune_columns import prune_columns
from thalweg.plan.rewrites.push_filters import push_filters
from thalweg.plan.rewrites.split_conjunctions import split_conjunctions

Evaluate = Callable[[Expr], Literal | None]
RULES: tuple[Callable[[Node], Node], ...] = (split_conjunctions, push_filters, prune_columns)


def optimize(query: BoundQuery, evaluate: Evaluate | None = None) -> BoundQuery:
    """The query after all rules; `evaluate` computes a constant expression (None: it raises)."""
    root: Node = query.root
    if evaluate is not None:
        root = fold_constants(root, evaluate)
    for rule in RULES:
        root = rule(root)
    assert isinstance(root, Emit)
    return replace(query, root=root)
