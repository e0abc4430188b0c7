"""The plan of a join that has seen no rows yet, by the rows that are kept of its sources."""

from __future__ import annotations

import math

from thalweg.errors import NotAvailableYet
from thalweg.estimate.figure import UNKNOWN
from thalweg.estimate.probe_order import probe_orders
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.joins.join_order import orderable_pipelines, repiped
from thalweg.plan.joins.join_trees import smallest_tree, with_tree
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.sizes.asked_join import AskedJoin
from thalweg.runtime.sizes.join_sizes import JoinSizes

MOST_IN_TREES = 6
"""Of joins of more inputs not every tree is looked at."""


def initial_plan(sizes: JoinSizes, bound: BoundQuery, plan: QueryPlan) -> QueryPlan:
    """The plan with what the rows at hand advise, for a query that has seen none yet: in which
    order rows are looked up, or the tree whose kept subresults are smallest. As it is where
    nothing is at hand."""
    pipelines = orderable_pipelines(plan)
    if not pipelines:
        return plan
    try:
        asked = sizes.asked(bound.root)
    except NotAvailableYet:  # of another shape than a join of sources
        return plan
    if asked.calls_functions or not asked.is_at_hand:
        return plan
    if bound.options.joins == "xjoin":
        return _with_tree(sizes, bound, plan, asked)
    orders = probe_orders(sizes.joined_rows(asked))
    for one in pipelines:
        names = [leaf.alias for leaf in plan.block(one.relation).leaves]
        if set(names) == set(orders):
            chosen = [names.index(n) for n in orders[names[one.leaf]]]
            plan = repiped(plan, one, chosen)
    return plan


def _with_tree(sizes: JoinSizes, bound: BoundQuery, plan: QueryPlan, asked: AskedJoin) -> QueryPlan:
    number = orderable_pipelines(plan)[0].relation
    block = plan.block(number)
    names = [leaf.alias for leaf in block.leaves]
    if set(names) != set(asked.selected.sources) or len(names) > MOST_IN_TREES:
        return plan
    bounds = sizes.bound_of(bound.root)
    known = {frozenset(names.index(a) for a in s.sources): s.figure for s in bounds.subjoins}

    def rows(leaves: frozenset[int]) -> float:
        found = known.get(leaves, UNKNOWN).rows
        return math.inf if found is None else found

    tree = smallest_tree(block, rows)
    return plan if tree is None else with_tree(plan, number, tree)
