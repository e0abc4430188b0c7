"""The pool of pages: never exceeded, and given to who brings most per byte."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thalweg.adapt.joins.memory import Grant, PagePool, priority


def test_priority_is_net_benefit_per_byte() -> None:
    assert priority(benefit=50.0, upkeep=10.0, entries=4, entry_bytes=5) == 2.0
    assert priority(benefit=10.0, upkeep=50.0, entries=4, entry_bytes=5) == -2.0
    assert priority(benefit=3.0, upkeep=1.0, entries=0, entry_bytes=5) == 2.0


def test_a_free_page_then_one_of_the_poorest_then_none() -> None:
    """streamon #35: who has less priority loses pages first, the least first of all."""
    pool: PagePool[str] = PagePool(4, 4096)
    for cache, value in [("low", 1.0), ("low", 1.0), ("middle", 2.0), ("high", 3.0)]:
        assert pool.ask(cache, value) == Grant(True)
    assert pool.free == 0
    assert pool.ask("new", 2.5) == Grant(True, "low")
    assert pool.ask("new", 2.5) == Grant(True, "low")
    assert pool.pages_of("low") == 0
    assert pool.ask("new", 2.5) == Grant(True, "middle")
    assert pool.ask("new", 2.5) == Grant(False)
    assert pool.ask("low", 3.0) == Grant(True, "new")
    assert [pool.pages_of(c) for c in ("low", "middle", "new", "high")] == [1, 0, 2, 1]
    assert pool.bytes_of("new") == 2 * 4096


def test_nobody_is_robbed_by_an_equal_or_by_itself() -> None:
    pool: PagePool[str] = PagePool(1, 100)
    assert pool.ask("one", 1.0).granted
    assert pool.ask("other", 1.0) == Grant(False)
    assert pool.ask("one", 5.0) == Grant(False)
    assert pool.pages_of("one") == 1


def test_priorities_are_those_of_now() -> None:
    pool: PagePool[str] = PagePool(2, 100)
    pool.ask("falls", 9.0)
    pool.ask("stays", 5.0)
    assert pool.ask("asks", 4.0) == Grant(False)
    pool.rank("falls", 1.0)
    assert pool.ask("asks", 4.0) == Grant(True, "falls")
    assert pool.ask("stays", 0.5) == Grant(False), "asking says that its own has fallen"
    assert pool.ask("asks", 4.0) == Grant(True, "stays")


def test_pages_come_back() -> None:
    pool: PagePool[str] = PagePool(3, 100)
    for _ in range(3):
        pool.ask("a", 1.0)
    assert pool.release("a", 1) == 1
    assert (pool.pages_of("a"), pool.free) == (2, 1)
    assert pool.release("a") == 2
    assert pool.release("a") == 0
    assert pool.release("unknown") == 0
    assert pool.free == 3


def test_a_pool_of_nothing() -> None:
    """streamon #35: no page is ever granted, and nothing breaks."""
    pool: PagePool[str] = PagePool(0, 4096)
    assert pool.ask("a", float("inf")) == Grant(False)
    assert (pool.free, pool.pages_of("a"), pool.release("a")) == (0, 0, 0)


@pytest.mark.parametrize(("pages", "page_bytes"), [(-1, 10), (1, 0)])
def test_impossible_pools_are_refused(pages: int, page_bytes: int) -> None:
    with pytest.raises(ValueError, match="no pool"):
        PagePool(pages, page_bytes)


asks = st.tuples(st.sampled_from("ask release rank".split()), st.integers(0, 4), st.integers(-3, 6))


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 6), st.lists(asks, max_size=60))
def test_the_pool_is_never_exceeded(pages: int, steps: list[tuple[str, int, int]]) -> None:
    """streamon #35: whatever is asked for, pages are neither made nor lost, one refused changes
    nothing, and a victim was the poorest."""
    pool: PagePool[int] = PagePool(pages, 10)
    held = dict.fromkeys(range(5), 0)
    worth: dict[int, int] = {}
    for what, cache, value in steps:
        if what == "release":
            held[cache] -= pool.release(cache, max(value, 0))
        elif what == "rank":
            pool.rank(cache, value)
            worth[cache] = value
        else:
            worth[cache] = value
            poorest = min((worth[c] for c in held if held[c]), default=0)
            full = sum(held.values()) == pages
            grant = pool.ask(cache, value)
            assert grant.granted == (not full or (pages > 0 and poorest < value))
            assert (grant.victim is not None) == (grant.granted and full)
            if grant.victim is not None:
                assert worth[grant.victim] == poorest
                held[grant.victim] -= 1
            held[cache] += grant.granted
        assert {c: pool.pages_of(c) for c in held} == held
        assert 0 <= pool.free == pages - sum(held.values())


def test_what_fits_is_worth_more_the_larger_the_pool() -> None:
    """streamon #35: with caches that bring their priority per page, what the pool brings rises with
    every page, by less each time, up to what all want."""
    wanted = {0: (9.0, 3), 1: (5.0, 4), 2: (2.0, 5)}  # priority, pages
    brought = []
    for pages in range(15):
        pool: PagePool[int] = PagePool(pages, 10)
        rng = Random(pages)
        for _ in range(400):
            cache = rng.choice(list(wanted))
            worth, most = wanted[cache]
            if pool.pages_of(cache) < most:
                pool.ask(cache, worth)
        brought.append(sum(w * pool.pages_of(c) for c, (w, _) in wanted.items()))
    gains = [b - a for a, b in pairwise(brought)]
    assert gains == [9.0] * 3 + [5.0] * 4 + [2.0] * 5 + [0.0] * 2
