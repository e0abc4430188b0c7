"""Plans that change at random between epochs, for the invariance grid."""

from __future__ import annotations

import random

from thalweg.plan.joins.join_order import Orders
from thalweg.runtime.session.core import EngineCore
from thalweg.testing.restless import with_random_subresults


def switch_plans(core: EngineCore, rng: random.Random) -> None:
    """Give most queries other orders of filters and pipelines, and other subresults."""
    for name in list(core.plans):
        if name not in core.queries.queries:
            continue  # one that others are members of
        if rng.random() < 0.3:
            continue  # what was kept for a plan is used when it runs on
        leaves = len(core.plans[name].leaves)
        orders = Orders(
            tuple(tuple(rng.sample(range(6), 6)) for _ in range(leaves)),
            tuple(tuple(rng.sample(range(leaves), leaves)) for _ in range(leaves)),
        )
        plan = core.planner.physical(core.queries.bound(name), orders)
        core.plans.replace(name, with_random_subresults(plan, rng))
