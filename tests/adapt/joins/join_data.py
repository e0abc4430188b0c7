"""Pipelines, keys and statistics of joins for the tests of caches, and the definitions again,
written naively."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from random import Random

from thalweg.adapt.joins.candidates import (
    KeyOf,
    Pipelines,
    Segment,
    candidates,
    compatible,
    global_candidates,
)
from thalweg.adapt.joins.costs import CacheEstimate, Estimates, Operator

GOLDEN: Pipelines = {
    1: (2, 3, 4, 5, 6),
    2: (1, 3, 5, 4, 6),
    3: (2, 1, 4, 5, 6),
    4: (5, 1, 2, 3, 6),
    5: (4, 2, 3, 1, 6),
    6: (2, 1, 4, 5, 3),
}
"""Example 5.5.1 of the note."""


# --- keys


def one_column(before: frozenset[int], leaves: frozenset[int]) -> tuple[str, ...]:
    """All leaves join on one column, so that caches of the same leaves are always shared."""
    return ("a",)


def along_a_chain(before: frozenset[int], leaves: frozenset[int]) -> tuple[str, ...]:
    """Each leaf joins the next one on a column of its own."""
    return tuple(f"c{min(b, x)}" for b in sorted(before) for x in sorted(leaves) if abs(b - x) == 1)


def all_before(before: frozenset[int], leaves: frozenset[int]) -> tuple[str, ...]:
    """Each leaf joins every other on a column of its own: caches are rarely shared."""
    return tuple(f"c{b}" for b in sorted(before))


KEYS: list[KeyOf] = [one_column, along_a_chain, all_before]


# --- pipelines


def random_pipelines(rng: Random, n: int, broken: float = 0.15) -> Pipelines:
    """Pipelines that follow a random tree over the leaves from below, so that many sets keep the
    prefix invariant; some of them shuffled instead."""
    return dict(_orders(rng, list(range(n)), _tree(rng, list(range(n))), broken))


def _tree(rng: Random, leaves: list[int]) -> list[frozenset[int]]:
    """The inner nodes of a random tree, each as its set of leaves."""
    parts = [frozenset([leaf]) for leaf in leaves]
    nodes = []
    while len(parts) > 1:
        rng.shuffle(parts)
        width = min(len(parts), rng.choice([2, 2, 3]))
        nodes.append(frozenset(chain.from_iterable(parts[:width])))
        parts = [*parts[width:], nodes[-1]]
    return nodes


def _orders(
    rng: Random, leaves: list[int], nodes: list[frozenset[int]], broken: float
) -> Iterator[tuple[int, tuple[int, ...]]]:
    for leaf in leaves:
        order: list[int] = []
        for node in sorted((s for s in nodes if leaf in s), key=len):
            order += _met_together(rng, node - {leaf, *order}, nodes)
        if rng.random() < broken:
            rng.shuffle(order)
        yield leaf, tuple(order)


def _met_together(rng: Random, new: frozenset[int], nodes: list[frozenset[int]]) -> list[int]:
    """New leaves in random order, those of the largest node among them one after the other."""
    inner = max((s for s in nodes if s < new), key=len, default=None)
    if inner is None:
        return rng.sample(sorted(new), len(new))
    parts = [_met_together(rng, inner, nodes), _met_together(rng, new - inner, nodes)]
    rng.shuffle(parts)
    return parts[0] + parts[1]


# --- statistics


def random_estimates(
    rng: Random, pipelines: Pipelines, found: Iterable[Segment], same: bool = True
) -> Estimates:
    """Random rates and costs; `same` gives all users of a shared cache the same cost per change."""
    operators, outputs = {}, {}
    for leaf, order in pipelines.items():
        rates = [10 ** rng.uniform(0, 2)]
        for _ in order:
            rates.append(rates[-1] * rng.lognormvariate(0, 0.7))
        outputs[leaf] = rates.pop()
        operators[leaf] = tuple(Operator(rate, rng.uniform(0.5, 3)) for rate in rates)
    costs: dict[object, float] = {}
    caches = {}
    for s in found:
        update = costs.setdefault(s.shared if same else s, rng.uniform(0.05, 1.2))
        caches[s] = CacheEstimate(rng.random(), rng.uniform(0.05, 0.8), update)
    return Estimates(pipelines, operators, outputs, caches)


def random_instance(
    rng: Random, n: int, key_of: KeyOf | None = None, quota: int = 0
) -> tuple[list[Segment], Estimates]:
    """Candidates with their statistics, global ones among them if a quota is given."""
    pipelines = random_pipelines(rng, n)
    key_of = key_of or rng.choice(KEYS)
    found = candidates(pipelines, key_of)
    found += global_candidates(pipelines, key_of, found, quota)
    return found, random_estimates(rng, pipelines, found, same=rng.random() < 0.7)


def none_shared(found: Iterable[Segment]) -> list[Segment]:
    """One of all candidates that are one cache."""
    return list({s.shared: s for s in found}.values())


# --- the definitions again


def subsets(items: Sequence[Segment]) -> Iterator[tuple[Segment, ...]]:
    return chain.from_iterable(combinations(items, k) for k in range(len(items) + 1))


def legal_sets(found: Sequence[Segment], pipelines: Pipelines) -> list[tuple[Segment, ...]]:
    return [some for some in subsets(found) if compatible(some, pipelines)]


def is_prefix_set(pipelines: Pipelines, leaves: frozenset[int]) -> bool:
    """Definition 5.4.2: the first |S| - 1 operators of each leaf of S join exactly the others."""
    for leaf in leaves:
        met = list(pipelines[leaf])[: len(leaves) - 1]
        if sorted([leaf, *met]) != sorted(leaves):
            return False
    return True
