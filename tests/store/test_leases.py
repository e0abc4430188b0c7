"""Leases of followers."""

from __future__ import annotations

from thalweg.store.leases import Lease, leases, renew
from thalweg.store.storage import MemoryStorage


def test_leases_of_followers_with_like_names() -> None:
    storage = MemoryStorage()
    now = 4e9
    renew(storage, Lease("job-2", "q", 3, now))
    renew(storage, Lease("job", "q", 9, now))
    renew(storage, Lease("a/b", "q", 1, 1.0))
    renew(storage, Lease("a/b", "q", 1, now))
    assert {(x.follower, x.epoch, x.renewed) for x in leases(storage)} == {
        ("job-2", 3, now), ("job", 9, now), ("a/b", 1, now)
    }  # fmt: skip
