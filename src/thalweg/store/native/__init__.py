"""Compiled loops, where NumPy has no vectorised form: sorting, matching, expanding, set tests.

All kernels work on int64/uint64 arrays and are cached on disk, so only the very first import on a
machine compiles. Times are microseconds; hashes are uint64 whose top bits are the bucket. Modules
do not call each other: a cached kernel would not notice that another file has changed.
"""

from thalweg.store.native.checksums import checksum
from thalweg.store.native.groups import number_rows
from thalweg.store.native.hashes import (
    combine,
    hash_bytes,
    hash_bytes_again,
    mix,
)
from thalweg.store.native.instants import (
    mark_instants,
    rows_between,
    test_instants,
)
from thalweg.store.native.lifetimes import alive_pairs
from thalweg.store.native.matching import (
    expand_matches,
    expand_ranges,
    expand_some,
    hash_directory,
    match_by_directory,
    match_pairs,
    match_ranges,
)
from thalweg.store.native.orders import (
    by_high_bits,
    grouped,
    key_time_order,
    split_runs,
    time_order,
)

__all__ = [
    "alive_pairs",
    "by_high_bits",
    "checksum",
    "combine",
    "expand_matches",
    "expand_ranges",
    "expand_some",
    "grouped",
    "hash_bytes",
    "hash_bytes_again",
    "hash_directory",
    "key_time_order",
    "mark_instants",
    "match_by_directory",
    "match_pairs",
    "match_ranges",
    "mix",
    "number_rows",
    "rows_between",
    "split_runs",
    "test_instants",
    "time_order",
]
