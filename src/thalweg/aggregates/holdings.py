"""The values a group holds on to: sorted codes with a tag each, one region per group.

Codes are integers in the order of the values. Types without such integers, and pairs of values,
are coded by their rank among all values at hand; a pool then gives the values back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from thalweg.aggregates.accumulator import Arguments, Columns, Loaded, Side
from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.sort_codes import decode_floats, dense_ranks, order_codes
from thalweg.columns.vector import Mask, Vector, concat, nulls
from thalweg.instants import Ints
from thalweg.numeric import extremes
from thalweg.plan.types import DataType

HELD = {"count": "int64", "begin": "int64"}
"""State columns of what is held: how many values a group has, and where they begin."""
_RANKED = ("STRING", "BINARY", "DECIMAL")
_NOTHING: Ints = np.empty(0, np.int64)


@dataclass(slots=True)
class Holdings:
    """`types` are those of a value, or of the parts of a pair; `reverse` sorts the other way."""

    prefix: str
    types: tuple[DataType, ...]
    reverse: bool = False
    codes: Ints = field(default_factory=lambda: _NOTHING)
    tags: Ints = field(default_factory=lambda: _NOTHING)
    offset: Ints = field(default_factory=lambda: _NOTHING)
    size: Ints = field(default_factory=lambda: _NOTHING)
    _pool: Arguments = ()

    @property
    def regions(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Where each group's region begins, its size, and all codes and tags; walks change them."""
        return self.offset, self.size, self.codes, self.tags

    def load(self, arguments: Arguments, used: Signs, runs: Runs, loaded: Loaded) -> Ints:
        """What the groups hold, with room for what may come; returns the changes' codes in run
        order."""
        stored = loaded.sides.get(self.prefix)
        old = tuple(nulls(t, 0) for t in self.types) if stored is None else stored.values
        codes, old_codes = self._encoded(arguments, old)
        self.size = loaded.ints(f"{self.prefix}count")
        coming = np.bincount(runs.group_of_run[runs.run], used != 0, runs.groups)
        room = coming.astype(np.int64) + self.size
        self.offset = np.cumsum(room) - room
        self.codes = np.zeros(int(room.sum()), np.int64)
        self.tags = np.zeros(len(self.codes), np.int64)
        if stored is not None:
            begin = loaded.ints(f"{self.prefix}begin")
            extremes.gather_slices(begin, self.size, self.offset, old_codes, self.codes)
            extremes.gather_slices(begin, self.size, self.offset, stored.tags, self.tags)
        return codes[runs.order]

    def _encoded(self, new: Arguments, old: Arguments) -> tuple[Ints, Ints]:
        if len(self.types) == 1 and self.types[0].name not in _RANKED:
            codes, old_codes = order_codes([new[0], old[0]])
        else:
            whole = [concat([a, b]) for a, b in zip(new, old, strict=True)]
            ranks, examples = dense_ranks(whole, len(whole[0]))
            self._pool = tuple(v.take(examples) for v in whole)
            codes, old_codes = ranks[: len(new[0])], ranks[len(new[0]) :]
        return (~codes, ~old_codes) if self.reverse else (codes, old_codes)

    def copied(self) -> Holdings:
        """The same, to be walked through without a trace."""
        return replace(self, size=self.size.copy(), codes=self.codes.copy(), tags=self.tags.copy())

    def decoded(self, codes: Ints, part: int = 0, valid: Mask | None = None) -> Vector:
        """The values (or one part of the pairs) that codes stand for, where they are `valid`."""
        dtype = self.types[part]
        plain = ~codes if self.reverse else codes
        if valid is not None:
            plain = np.where(valid, plain, 0)
        if self._pool:
            return self._from_pool(plain, part, valid)
        if dtype.is_float:
            data = decode_floats(plain)
            if dtype.name == "FLOAT":
                data = data.astype(np.float32)
            return Vector(dtype, data, valid, None)
        return Vector(dtype, plain.astype(nulls(dtype, 0).data.dtype), valid, None)

    def _from_pool(self, codes: Ints, part: int, valid: Mask | None) -> Vector:
        pool = self._pool[part]
        if not len(pool):
            return nulls(self.types[part], len(codes))
        found = pool.take(codes)
        known = found.valid if valid is None or found.valid is None else found.valid & valid
        return Vector(found.type, found.data, valid if found.valid is None else known, None)

    def save(self) -> tuple[Columns, Side]:
        codes = extremes.compact_slices(self.offset, self.size, self.codes)
        tags = extremes.compact_slices(self.offset, self.size, self.tags)
        begin = np.cumsum(self.size) - self.size
        values = tuple(self.decoded(codes, part) for part in range(len(self.types)))
        columns = {f"{self.prefix}begin": begin, f"{self.prefix}count": self.size}
        return columns, Side(values, tags)
