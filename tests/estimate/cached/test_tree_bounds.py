"""Messages over buckets and the trees they are passed along."""

from __future__ import annotations

from random import Random

import numpy as np

from thalweg.estimate.cached import join_trees
from thalweg.estimate.cached.messages import Message, at_bits, combined, combined_total


def message(keys: np.ndarray, bits: int) -> Message:
    """What is known of so many results per key, key k being in bucket k modulo 2^bits."""
    parts = keys.reshape(-1, 1 << bits)
    rows, degree = parts.sum(axis=0), parts.max(axis=0)
    return Message.of(rows.astype(float), degree.astype(float), float(keys.sum()))


def test_the_join_of_parts_over_one_key_is_never_larger() -> None:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        bits = int(rng.integers(0, 5))
        parts = [rng.zipf(1.4, 64) % 30 for _ in range(rng.integers(2, 5))]
        found = combined([message(p, bits) for p in parts])
        true = message(np.prod(parts, axis=0), bits)
        assert (found.rows >= true.rows).all()
        assert (found.degree >= true.degree).all()
        assert found.total >= true.total
        assert found.most >= true.most
        assert combined_total([message(p, bits) for p in parts]) == found.total


def test_the_least_of_both_directions_is_taken_bucket_by_bucket() -> None:
    one = Message.of(np.array([10.0, 4.0]), np.array([1.0, 4.0]), 14.0)
    other = Message.of(np.array([6.0, 3.0]), np.array([6.0, 1.0]), 9.0)
    assert combined([one, other]).rows.tolist() == [6.0, 4.0]


def test_numbers_over_fewer_or_more_buckets() -> None:
    values = np.array([1.0, 5.0, 2.0, 0.0])
    assert at_bits(values, 1, add=True).tolist() == [6.0, 2.0]
    assert at_bits(values, 1, add=False).tolist() == [5.0, 2.0]
    assert at_bits(values, 3, add=True).tolist() == [1.0, 1.0, 5.0, 5.0, 2.0, 2.0, 0.0, 0.0]


def attributes(*parts: str) -> dict[int, frozenset[str]]:
    return {i: frozenset(p) for i, p in enumerate(parts)}


def test_one_tree_suffices_exactly_if_it_leaves_nothing_out() -> None:
    assert join_trees.trees(attributes("a", "ab", "b")) == [((0, 1), (1, 2))]
    assert len(join_trees.trees(attributes("a", "a", "a"))) == 1
    assert len(join_trees.trees(attributes("abc", "ab", "bc"))) == 1
    assert join_trees.trees(attributes("ab", "a", "b")) == [((0, 1), (0, 2))]


def test_a_circle_has_several_trees() -> None:
    assert len(join_trees.trees(attributes("ab", "bc", "ac"))) == 3
    assert len(join_trees.trees(attributes("ab", "bc", "cd", "ad"))) == 4
    many = attributes(*(f"{a}{b}" for a in "abcd" for b in "abcd" if a < b))
    assert 1 < len(join_trees.trees(many)) <= join_trees.MOST_TREES


def test_inputs_without_a_shared_attribute_have_no_tree() -> None:
    assert join_trees.trees(attributes("a", "b")) == []
    assert not join_trees.is_connected(attributes("a", "b"))
    assert join_trees.is_connected(attributes("a"))


def test_trees_are_trees() -> None:
    for seed in range(200):
        random = Random(seed)
        parts = ["".join(random.sample("abcdef", random.randint(1, 3))) for _ in range(5)]
        for tree in join_trees.trees(attributes(*parts)):
            reached = {0}
            for _ in tree:
                reached |= {i for e in tree if reached & set(e) for i in e}
            assert len(tree) == 4
            assert reached == set(range(5))
