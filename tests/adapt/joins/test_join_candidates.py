"""Which parts of pipelines can be cached: the example of the note, and the definition."""

from __future__ import annotations

from itertools import chain, combinations
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from join_data import GOLDEN, KEYS, along_a_chain, is_prefix_set, one_column, random_pipelines

from thalweg.adapt.joins.candidates import (
    KeyOf,
    Pipelines,
    Segment,
    candidates,
    compatible,
    prefix_sets,
    straddles,
)
from thalweg.plan.joins.join_caches import keeps_prefix


@st.composite
def any_pipelines(draw: st.DrawFn) -> Pipelines:
    """Any orders whatever; of few leaves, so that some keep the invariant by chance."""
    n = draw(st.integers(2, 5))
    others = {i: [j for j in range(n) if j != i] for i in range(n)}
    return {i: tuple(draw(st.permutations(rest))) for i, rest in others.items()}


seeds = st.tuples(st.integers(0, 2**32), st.integers(3, 8))
grown = seeds.map(lambda s: random_pipelines(Random(s[0]), s[1]))
pipelines_of = st.one_of(any_pipelines(), grown)
key_functions = st.sampled_from(KEYS)


def by_leaves(found: list[Segment]) -> dict[frozenset[int], set[int]]:
    lookups: dict[frozenset[int], set[int]] = {}
    for s in found:
        lookups.setdefault(s.leaves, set()).add(s.pipeline)
    return lookups


# --- 26: the example


def test_the_prefix_sets_of_the_example() -> None:
    """streamon #26: {1,2}, {4,5}, {1,2,3} and {1..5}, and no other set."""
    assert prefix_sets(GOLDEN) == [{1, 2}, {4, 5}, {1, 2, 3}, {1, 2, 3, 4, 5}]


def test_the_candidates_of_the_example() -> None:
    """streamon #26: exactly the list of the note, at their places in the pipelines."""
    found = candidates(GOLDEN, one_column)
    assert by_leaves(found) == {
        frozenset({4, 5}): {1, 2, 3, 6},
        frozenset({1, 2}): {3, 4, 6},
        frozenset({1, 2, 3}): {4, 5},
        frozenset({1, 2, 3, 4, 5}): {6},
    }
    assert len(found) == 10
    for s in found:
        assert set(GOLDEN[s.pipeline][s.first : s.last + 1]) == s.leaves
        assert s.beside == frozenset()
    at = {(s.pipeline, *sorted(s.leaves)): (s.first, s.last) for s in found}
    assert at[4, 1, 2] == (1, 2)
    assert at[4, 1, 2, 3] == (1, 3)
    assert at[6, 1, 2, 3, 4, 5] == (0, 4)


def test_hierarchies_of_the_example() -> None:
    """streamon #26: {1,2} nests in {1,2,3} in the pipeline of 4, {1,2} and {4,5} in {1..5} in that
    of 6."""
    nested = {
        (s.pipeline, s.leaves, t.leaves)
        for s, t in combinations(candidates(GOLDEN, one_column), 2)
        for s, t in ((s, t), (t, s))
        if s.within(t)
    }
    pair, triple, five = frozenset({1, 2}), frozenset({1, 2, 3}), frozenset({1, 2, 3, 4, 5})
    assert nested == {(4, pair, triple), (6, pair, five), (6, frozenset({4, 5}), five)}


def test_what_no_column_links_is_no_candidate() -> None:
    """In a chain 1 - 2 - 3 - 4 the pair {3,4} is looked up by its link to what was met before."""
    pipelines: Pipelines = {1: (2, 3, 4), 2: (1, 3, 4), 3: (4, 2, 1), 4: (3, 2, 1)}
    found = candidates(pipelines, along_a_chain)
    assert [(s.pipeline, s.first, s.last, s.key) for s in found] == [
        (1, 1, 2, ("c2",)),
        (2, 1, 2, ("c2",)),
        (3, 1, 2, ("c2",)),
        (4, 1, 2, ("c2",)),
    ]
    assert candidates(pipelines, lambda before, leaves: ()) == []


def test_caches_are_one_if_leaves_key_and_partners_agree() -> None:
    one, other = (Segment(i, 0, 1, frozenset({4, 5}), ("a",)) for i in (1, 2))
    assert one.shared == other.shared
    assert one.shared != Segment(2, 0, 1, frozenset({4, 5}), ("b",)).shared
    assert one.shared != Segment(2, 0, 1, frozenset({4, 5}), ("a",), frozenset({2})).shared
    assert one.shared != Segment(2, 0, 1, frozenset({4, 6}), ("a",)).shared


# --- the definition


@settings(max_examples=300, deadline=None)
@given(pipelines_of)
def test_prefix_sets_are_those_of_the_definition(pipelines: Pipelines) -> None:
    """streamon #26: all subsets of all leaves, tried one by one."""
    leaves = sorted(pipelines)
    every = chain.from_iterable(combinations(leaves, k) for k in range(2, len(leaves)))
    expected = [frozenset(s) for s in every if is_prefix_set(pipelines, frozenset(s))]
    assert prefix_sets(pipelines) == expected
    assert all(keeps_prefix(pipelines, s) for s in expected)
    assert keeps_prefix(pipelines, frozenset(leaves)), "the set of all leaves always does"


@settings(max_examples=300, deadline=None)
@given(pipelines_of, key_functions)
def test_candidates_are_those_of_the_definition(pipelines: Pipelines, key_of: KeyOf) -> None:
    """streamon #26: all parts of all pipelines, tried one by one."""
    expected = set()
    for leaf, order in pipelines.items():
        for first in range(len(order)):
            for last in range(first + 1, len(order)):
                part = frozenset(order[first : last + 1])
                key = key_of(frozenset({leaf} | set(order[:first])), part)
                if is_prefix_set(pipelines, part) and key:
                    expected.add(Segment(leaf, first, last, part, key))
    found = candidates(pipelines, key_of)
    assert set(found) == expected
    assert len(found) == len(expected)


@settings(max_examples=300, deadline=None)
@given(pipelines_of)
def test_prefix_sets_nest_or_are_apart(pipelines: Pipelines) -> None:
    """streamon #26: they are a laminar family, so candidates of a pipeline are one too, and none
    begins before and ends after the update point of another."""
    sets = prefix_sets(pipelines)
    assert all(a <= b or b <= a or not a & b for a, b in combinations(sets, 2))
    found = candidates(pipelines, one_column)
    for a, b in combinations(found, 2):
        assert a.within(b) or b.within(a) or not a.overlaps(b)
    assert not any(straddles(s, sets, pipelines) for s in found)


def test_grown_pipelines_have_many_candidates() -> None:
    """The properties above are not about empty lists."""
    counts = [len(candidates(random_pipelines(Random(seed), 6), one_column)) for seed in range(100)]
    assert sum(counts) > 300
    assert max(counts) >= 10


# --- which go together


@settings(max_examples=300, deadline=None)
@given(grown, st.data())
def test_a_hit_that_straddles_skips_the_update_point(
    pipelines: Pipelines, data: st.DataObject
) -> None:
    """Walk the pipeline with the hit: the gaps between operators that are never visited are those
    the cache must not jump over."""
    sets = [*prefix_sets(pipelines), frozenset(pipelines)]
    leaf = data.draw(st.sampled_from(sorted(pipelines)))
    order = pipelines[leaf]
    first = data.draw(st.integers(0, len(order) - 2))
    last = data.draw(st.integers(first + 1, len(order) - 1))
    hit = Segment(leaf, first, last, frozenset(order[first : last + 1]), ("a",))
    for chosen in sets:
        met, place = {leaf}, 0
        visited = []
        while place < len(order):
            jump = last + 1 if place == first else place + 1
            met |= set(order[place:jump])
            visited.append(frozenset(met))
            place = jump
        skipped = leaf in chosen and chosen not in visited
        assert straddles(hit, [chosen], pipelines) == skipped


OVERLAPPING: Pipelines = {1: (2, 3, 4, 5), 2: (1, 3, 4, 5), 3: (4, 2, 1, 5), 4: (3, 2, 1, 5)}
PIPELINES: Pipelines = {**OVERLAPPING, 5: (4, 3, 2, 1)}


def part(pipeline: int, first: int, last: int, beside: tuple[int, ...] = ()) -> Segment:
    leaves = frozenset(PIPELINES[pipeline][first : last + 1])
    return Segment(pipeline, first, last, leaves, ("a",), frozenset(beside))


@pytest.mark.parametrize(
    ("chosen", "together"),
    [
        ([], True),
        ([part(1, 1, 2)], True),
        ([part(1, 1, 2), part(2, 1, 2)], True),  # the same cache in two pipelines
        ([part(5, 0, 1), part(5, 2, 3)], True),  # one after the other
        ([part(5, 0, 1), part(5, 0, 3)], False),  # one in the other
        ([part(1, 0, 1, (1, 4)), part(1, 1, 2)], False),  # across
        ([part(5, 2, 3), part(1, 0, 2, (1, 5))], False),  # jumps over the update point of {1, 2}
        ([part(5, 2, 3), part(1, 1, 2)], True),  # begins just behind it
        ([part(5, 2, 3), part(5, 0, 1), part(1, 0, 1, (1, 4))], False),
    ],
)
def test_which_caches_go_together(chosen: list[Segment], together: bool) -> None:
    assert compatible(chosen, PIPELINES) == together
    assert compatible(chosen[::-1], PIPELINES) == together
