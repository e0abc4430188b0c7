"""What runs inside Python workers: jobs over packs, with the process's own pack cache."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark import cloudpickle

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.jobs import Job, execute_all
from thalweg.store import native
from thalweg.store.hostfiles import HostFiles
from thalweg.store.pack_cache import PackCache
from thalweg.store.storage import Storage

_caches: dict[str, PackCache] = {}
_functions: dict[bytes, Mapping[str, UserFunction]] = {}


def cache_for(storage: Storage) -> PackCache:
    """The pack cache of this process for a storage; packs are immutable, so it never lies."""
    key = repr(storage)
    if key not in _caches:
        _caches[key] = PackCache(storage, files=_host_files(key))
    return _caches[key]


def _host_files(engine: str) -> HostFiles | None:
    with contextlib.suppress(OSError):
        return HostFiles.of(engine)
    return None


def functions_from(pickled: bytes) -> Mapping[str, UserFunction]:
    if pickled not in _functions:
        _functions.clear()
        each: dict[str, tuple[UserFunction, bytes]] = cloudpickle.loads(pickled)
        _functions[pickled] = {n: _loaded(known, code) for n, (known, code) in each.items()}
    return _functions[pickled]


def packed(functions: Mapping[str, UserFunction]) -> bytes:
    """Functions for workers, each by itself: one that cannot be loaded must not spoil the rest."""
    return cloudpickle.dumps(  # type: ignore[no-any-return]
        {
            name: (replace(f, function=_nothing), cloudpickle.dumps(f.function))
            for name, f in functions.items()
        }
    )


def _nothing(*_: Any) -> None:
    """Stands for a function that is packed apart."""


def _loaded(known: UserFunction, code: bytes) -> UserFunction:
    try:
        return replace(known, function=cloudpickle.loads(code))
    except Exception as error:
        return replace(known, broken=f"{type(error).__name__}: {error}")


def run_batches(
    storage: Storage, functions: bytes, batches: Iterable[Sequence[Job]]
) -> Iterator[list[Any]]:
    """Run each batch of jobs; called once per Spark task."""
    cache = cache_for(storage)
    known = functions_from(functions)
    for batch in batches:
        yield execute_all(batch, cache, known)


def keep_memory() -> None:
    """Let the allocator keep freed memory: large arrays come and go with every epoch, and having
    their pages mapped afresh each time costs as much as computing on them. NumPy then need not
    ask for huge pages with every array, which cost 20 to 60 ms of an epoch of 100."""
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_THRESHOLD, 1 << 30)
        libc.mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)
    with contextlib.suppress(ImportError):
        from numpy._core.multiarray import _set_madvise_hugepage  # type: ignore[attr-defined]

        _set_madvise_hugepage(False)


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def warm_up() -> None:
    """Load (or compile) the kernels that every task needs."""
    h = np.array([1, 2], np.uint64)
    t = np.array([1, 2], np.int64)
    native.mix(h)
    native.checksum(h, h[0], h[0])
    native.combine(h, h)
    native.key_time_order(h, t)
    native.time_order(t[::-1].copy())
    ranges = native.match_ranges(h, t, t, h, t)
    native.expand_matches(*ranges)
    native.match_pairs(h, t, t, h, t)
    base, shift, starts = native.hash_directory(h)
    native.match_by_directory(h, t, t, h, t, 1, 2, np.uint64(base), np.uint64(shift), starts)
    native.rows_between(t, 0, 5)
    bits = np.zeros(1 << 9, np.uint8)
    native.mark_instants(bits, t, 0)
    native.test_instants(bits, t, 0)
