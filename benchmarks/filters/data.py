"""Tuples for filter experiments: which predicate drops which tuple, with wanted correlations.

Predicates come in groups of `gamma`; those of one group agree on 80 % of the tuples at selectivity
0.5, those of different groups are independent. A permutation gives each predicate the selectivity
that another one had.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

AGREE = 0.8


@dataclass(frozen=True)
class Phase:
    """So many tuples under these shares of passing tuples, one per predicate."""

    rows: int
    passing: tuple[float, ...]


def drops_of(phases: list[Phase], gamma: int, seed: int) -> np.ndarray:
    """Per tuple and predicate whether it is dropped."""
    rng = np.random.default_rng(seed)
    n = len(phases[0].passing)
    groups = rng.permutation(np.arange(n) % -(-n // gamma))  # the text knows nothing of them
    return np.concatenate([_phase(phase, gamma, groups, rng) for phase in phases])


def _phase(phase: Phase, gamma: int, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    n = len(phase.passing)
    latent = rng.random((phase.rows, -(-n // gamma)))[:, groups]
    own = rng.random((phase.rows, n))
    copies = rng.random((phase.rows, n)) < _copying(float(np.mean(phase.passing)))
    return np.where(copies, latent, own) >= np.array(phase.passing)


def _copying(passing: float) -> float:
    """How often a predicate follows its group, so that two of a group agree as wanted."""
    alone = passing**2 + (1 - passing) ** 2
    return float(np.sqrt(max((AGREE - alone) / (1 - alone), 0.0)))


def spread(n: int) -> tuple[float, ...]:
    """Selectivities around one half, all different."""
    return tuple(np.linspace(0.15, 0.85, n).round(3).tolist())


def permuted(passing: tuple[float, ...], seed: int) -> tuple[float, ...]:
    order = np.random.default_rng(seed).permutation(len(passing))
    return tuple(passing[i] for i in order)
