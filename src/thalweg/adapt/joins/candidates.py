"""Candidates for caching: parts of a join's pipelines, and which of them are compatible.

A cache of a set of leaves costs no work of its own to maintain if each of these leaves, when it
changes, meets the others of the set before any other leaf: what has passed them is then the change
of the cached join. That is the prefix invariant, and sets that keep it nest or are disjoint. A
*global* cache holds a part that does not keep it, reduced to what has partners `beside` it such
that both together do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from thalweg.adapt.constants import CACHE_QUOTA
from thalweg.plan.joins.join_caches import keeps_prefix

Leaves = frozenset[int]
Pipelines = Mapping[int, tuple[int, ...]]
"""Per leaf the other leaves in the order in which its changes meet them."""
KeyOf = Callable[[Leaves, Leaves], tuple[str, ...]]
"""The columns that join the leaves before a part to those in it."""
Shared = tuple[Leaves, tuple[str, ...], Leaves]


@dataclass(frozen=True, slots=True)
class Segment:
    """A cache of the operators `first` to `last` of one pipeline (counted from 0, both included).

    `key` are the columns it is looked up by, `beside` the leaves that its rows must have partners
    in; an ordinary cache has none.
    """

    pipeline: int
    first: int
    last: int
    leaves: Leaves
    key: tuple[str, ...]
    beside: Leaves = frozenset()

    @property
    def shared(self) -> Shared:
        """The properties in which caches of different pipelines must agree to be shared."""
        return self.leaves, self.key, self.beside

    @property
    def maintained(self) -> Leaves:
        """The leaves whose changes may change the cache."""
        return self.leaves | self.beside

    @property
    def places(self) -> range:
        """The operators it replaces when it hits."""
        return range(self.first, self.last + 1)

    def overlaps(self, other: Segment) -> bool:
        """Whether some operator is in both."""
        apart = self.last < other.first or other.last < self.first
        return self.pipeline == other.pipeline and not apart

    def within(self, other: Segment) -> bool:
        """Whether the other has all its operators, and more."""
        inside = other.first <= self.first and self.last <= other.last
        return self.pipeline == other.pipeline and inside and self.places != other.places


# -- ordinary caches -----------------------------------------------------------------------------


def prefix_sets(pipelines: Pipelines) -> list[Leaves]:
    """All sets of two leaves or more, short of all, that satisfy the prefix invariant.

    >>> [sorted(s) for s in prefix_sets({1: (2, 3), 2: (1, 3), 3: (2, 1)})]
    [[1, 2]]
    """
    beginnings = {
        frozenset((leaf, *order[:count]))
        for leaf, order in pipelines.items()
        for count in range(1, len(order))
    }
    found = [s for s in beginnings if keeps_prefix(pipelines, s)]
    return sorted(found, key=lambda s: (len(s), sorted(s)))


def candidates(pipelines: Pipelines, key_of: KeyOf) -> list[Segment]:
    """Every part of a pipeline that is such a set and is linked to the leaves before it."""
    legal = set(prefix_sets(pipelines))
    return [s for s in _segments(pipelines, key_of) if s.leaves in legal]


def _segments(pipelines: Pipelines, key_of: KeyOf) -> Iterator[Segment]:
    for leaf, order in sorted(pipelines.items()):
        for first, last in combinations(range(len(order)), 2):
            leaves = frozenset(order[first : last + 1])
            key = key_of(frozenset((leaf, *order[:first])), leaves)
            if key:
                yield Segment(leaf, first, last, leaves, key)


# -- global caches -------------------------------------------------------------------------------


def global_candidates(
    pipelines: Pipelines, key_of: KeyOf, prefix: Sequence[Segment], quota: int = CACHE_QUOTA
) -> list[Segment]:
    """Global caches that fill the quota up where ordinary ones (`prefix`) leave room, those of most
    leaves first.

    A pitfall in maintaining them: where the pipeline's own leaf is `beside`, rows that arrive while
    it has none of their key are not recorded. An entry must then be removed as soon as it is empty,
    and an empty one must not be made; if a leaf beside joins both the rows cached and those before
    them, even that is not enough.
    """
    room = quota - len(prefix)
    if room <= 0:
        return []
    legal = prefix_sets(pipelines)
    failing = [s for s in _segments(pipelines, key_of) if s.leaves not in legal]
    failing.sort(key=lambda s: -len(s.leaves))
    legal.append(frozenset(pipelines).union(*pipelines.values()))
    return [replace(s, beside=_beside(s.leaves, legal)) for s in failing[:room]]


def _beside(leaves: Leaves, legal: Sequence[Leaves]) -> Leaves:
    """The leaves that the smallest legal set around these leaves has besides them."""
    return min((s for s in legal if leaves <= s), key=len) - leaves


# -- compatibility -------------------------------------------------------------------------------


def straddles(segment: Segment, update_point_sets: Iterable[Leaves], pipelines: Pipelines) -> bool:
    """Whether a hit of this cache would skip the place where a cache maintained by one of these
    sets of leaves is told of changes of this pipeline's leaf."""
    points = (
        _update_point(pipelines[segment.pipeline], leaves)
        for leaves in update_point_sets
        if segment.pipeline in leaves
    )
    return any(segment.first < point <= segment.last for point in points)


def _update_point(order: Sequence[int], leaves: Leaves) -> int:
    """The number of operators after which all these leaves are joined."""
    return 1 + max(place for place, leaf in enumerate(order) if leaf in leaves)


def clash(one: Segment, other: Segment, pipelines: Pipelines) -> bool:
    """Whether two caches cannot be in use at the same time."""
    return (
        one.overlaps(other)
        or straddles(one, [other.maintained], pipelines)
        or straddles(other, [one.maintained], pipelines)
    )


def compatible(chosen: Iterable[Segment], pipelines: Pipelines) -> bool:
    """Whether these caches can be in use together: none overlaps another, or hides a change from
    it."""
    return not any(clash(a, b, pipelines) for a, b in combinations(chosen, 2))
