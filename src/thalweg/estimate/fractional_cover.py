"""The AGM bound: the best fractional edge cover of a join of relations without duplicates.

With weights u >= 0 such that for each attribute those of the relations that have it sum to 1 at
least, |Q| <= product of |R_j|^(u_j) (Shearer's lemma). The best u is a linear program. Relations
with duplicates are bounded by the product of their largest multiplicities times the bound of their
distinct rows: u alone is not valid for them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linprog


def cover_weights(edges: Sequence[Sequence[str]], sizes: Sequence[int]) -> list[float]:
    """The fractional edge cover that minimises the product of powers of the sizes (at least 1)."""
    attributes = list(dict.fromkeys(a for e in edges for a in e))
    if not attributes:
        return [1.0] * len(edges)
    incidence = np.array([[float(a in e) for e in edges] for a in attributes])
    costs = np.log(np.maximum(sizes, 1).astype(float))
    found = linprog(costs, A_ub=-incidence, b_ub=-np.ones(len(attributes)), bounds=(0, None))
    weights = np.maximum(found.x, 0.0)
    covered = incidence @ weights
    weights = weights / min(1.0, float(covered.min()))  # a hair below 1 is no cover
    return [float(w) for w in weights]


def agm_bound(edges: Sequence[Sequence[str]], sizes: Sequence[int]) -> float:
    """The bound of the join of relations of these sizes without duplicates; 0 if one is empty."""
    if min(sizes) == 0:
        return 0.0
    weights = cover_weights(edges, sizes)
    logs = [w * np.log(float(n)) for w, n in zip(weights, sizes, strict=True)]
    return float(np.exp(sum(logs)))


def agm_formula(names: Sequence[str], weights: Sequence[float], repeated: Sequence[str]) -> str:
    """The bound as text; `repeated` are the relations with duplicates, whose largest multiplicity
    is a factor."""
    powers = [
        f"c_{n}" if abs(w - 1) < 1e-9 else f"c_{n}^{w:.3g}"
        for n, w in zip(names, weights, strict=True)
        if w > 1e-9
    ]
    return "·".join([*(f"m_{n}" for n in repeated), *powers])
