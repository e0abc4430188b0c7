"""One accumulator per aggregate: its state as columns, its value after every run.

The protocol is small, so that a new aggregate is one class: `load` what the groups had, `advance`
over the epoch's changes, then `values` of all versions (the groups' stored states first, then one
per run) and `save` what the groups have now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from thalweg.exec import exact, extremes
from thalweg.exec.frame import Ints, Signs
from thalweg.exec.groups import Runs
from thalweg.exec.ordering import decode_floats, order_codes
from thalweg.exec.vector import OVERFLOW, Vector, concat, from_arrow, nulls
from thalweg.plan.expr import AggregateCall
from thalweg.plan.types import BIGINT, DOUBLE, DataType, to_arrow

Columns = dict[str, Any]


@dataclass(slots=True)
class Loaded:
    """State rows found for groups: `rows[g]` is the row of group g in `columns`, -1 if none."""

    columns: Columns
    rows: Ints
    side: dict[str, Columns] = field(default_factory=dict)

    def ints(self, name: str) -> Ints:
        """An int64 state column, 0 where the group is new."""
        out = np.zeros(len(self.rows), np.int64)
        have = self.rows >= 0
        if name in self.columns and have.any():
            out[have] = self.columns[name][self.rows[have]]
        return out


@dataclass(slots=True)
class Signed:
    """The epoch's changes, sorted into runs: `weight` in run order, `ends` as they came, and the
    number of rows in each version of each group (`members`)."""

    runs: Runs
    weight: Signs
    ends: Ints | None
    members: Ints


class Accumulator(Protocol):
    """What the aggregate operator asks of each aggregate."""

    def advance(self, argument: Vector | None, signed: Signed, loaded: Loaded) -> None: ...
    def values(self) -> Vector: ...
    def save(self, last: Ints) -> tuple[Columns, Columns | None]: ...


def accumulator(call: AggregateCall, prefix: str) -> Accumulator:
    if call.function == "count":
        return Count(prefix)
    if call.function in ("min", "max"):
        return Extreme(prefix, call.type, call.function == "max")
    assert call.argument is not None
    return Sum(prefix, call.argument.type, call.type, mean=call.function == "avg")


def sign_runs(weight: Signs, ends: Ints | None, runs: Runs, loaded: Loaded, rows: str) -> Signed:
    """Changes ready for accumulators; `rows` names the state column that counts members."""
    ordered = weight[runs.order]
    return Signed(runs, ordered, ends, running_counts(ordered, runs, loaded.ints(rows)))


def running_counts(weight: Signs, runs: Runs, init: Ints) -> Ints:
    """Counts of all versions: the stored ones, then one per run."""
    versions = np.empty(runs.groups + runs.runs, np.int64)
    versions[: runs.groups] = init
    exact.running_counts(weight, runs.run, runs.group_of_run, init, versions[runs.groups :])
    return versions


def _used(argument: Vector | None, signed: Signed) -> Signs:
    """Weights in run order, 0 where the argument is NULL."""
    if argument is None or argument.valid is None:
        return signed.weight
    return np.where(argument.valid[signed.runs.order], signed.weight, np.int8(0))


def _counted(used: Signs, signed: Signed, loaded: Loaded, name: str) -> Ints:
    """How many values each version has; its rows, if no group ever had a NULL among them."""
    init = loaded.ints(name)
    runs = signed.runs
    if used is signed.weight and np.array_equal(init, signed.members[: runs.groups]):
        return signed.members
    return running_counts(used, runs, init)


@dataclass(slots=True)
class Count:
    """Rows, or rows whose argument is not NULL."""

    prefix: str
    _counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def advance(self, argument: Vector | None, signed: Signed, loaded: Loaded) -> None:
        self._counts = _counted(_used(argument, signed), signed, loaded, f"{self.prefix}n")

    def values(self) -> Vector:
        return Vector(BIGINT, self._counts, None, None)

    def save(self, last: Ints) -> tuple[Columns, Columns | None]:
        return {f"{self.prefix}n": self._counts[last]}, None


@dataclass(slots=True)
class Sum:
    """SUM and AVG: exact limbs, a count of values, and the specials of doubles counted apart.

    Limbs exist once per group; what the runs keep of them is the rounded total.
    """

    prefix: str
    argument: DataType
    returns: DataType
    mean: bool
    _low: int = exact.INTEGER_LIMB
    _limbs: exact.Limbs = field(default_factory=lambda: np.empty((0, 0), np.int64))
    _special: exact.Limbs = field(default_factory=lambda: np.empty((0, 3), np.int64))
    _counts: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _totals: Any = None
    _overflow: Any = None

    def advance(self, argument: Vector | None, signed: Signed, loaded: Loaded) -> None:
        assert argument is not None
        used = _used(argument, signed)
        self._counts = _counted(used, signed, loaded, f"{self.prefix}n")
        values = np.asarray(argument.data)
        if self.argument.is_integer:
            self._integers(values.astype(np.int64, copy=False), used, signed.runs, loaded)
        else:
            self._doubles(values.astype(np.float64, copy=False), used, signed.runs, loaded)

    def _integers(self, values: Ints, used: Signs, runs: Runs, loaded: Loaded) -> None:
        self._limbs = self._stored(loaded, 2)
        self._special = np.zeros((runs.groups, 3), np.int64)
        before = self._limbs.copy()
        after = np.zeros((runs.runs, 2), np.int64)
        exact.running_integers(
            values, runs.order, used, runs.run, runs.group_of_run, self._limbs, after
        )
        versions = np.concatenate([before, after])
        if self.mean:
            none = np.zeros((len(versions), 3), np.int64)
            self._totals = exact.to_doubles(versions, none, self._low)
        else:
            self._totals, self._overflow = exact.to_integers(versions)

    def _doubles(self, values: Any, used: Signs, runs: Runs, loaded: Loaded) -> None:
        low, high = exact.double_limb_range(values, runs.order, used)
        stored = [
            int(n.removeprefix(f"{self.prefix}l")) for n in loaded.columns if self._is_limb(n)
        ]
        touched = stored + ([low, high] if high >= 0 else [])
        self._low = min(touched, default=exact.INTEGER_LIMB)
        # one limb above the highest takes the carries of what is stored
        self._limbs = self._stored(loaded, max(touched, default=self._low) - self._low + 2)
        self._special = np.stack([loaded.ints(f"{self.prefix}{n}") for n in _SPECIALS], axis=1)
        totals = np.empty(runs.groups + runs.runs, np.float64)
        totals[: runs.groups] = exact.to_doubles(self._limbs, self._special, self._low)
        short = self._limbs.shape[1] <= exact.MOST_LIMBS
        kernel = exact.running_doubles_short if short else exact.running_doubles
        kernel(
            values, runs.order, used, runs.run, runs.group_of_run,
            self._limbs, self._special, self._low, totals[runs.groups :],
        )  # fmt: skip
        self._totals = totals

    def _is_limb(self, name: str) -> bool:
        return name.startswith(f"{self.prefix}l")

    def _stored(self, loaded: Loaded, width: int) -> exact.Limbs:
        out = np.zeros((len(loaded.rows), width), np.int64)
        for name in loaded.columns:
            if self._is_limb(name):
                at = int(name.removeprefix(f"{self.prefix}l")) - self._low
                out[:, at] = loaded.ints(name)
        return out

    def values(self) -> Vector:
        valid = self._counts > 0
        if self._overflow is not None:
            errors = np.where(self._overflow & valid, OVERFLOW, 0).astype(np.uint8)
            return Vector(BIGINT, self._totals, valid, errors if errors.any() else None)
        if self.mean:
            return Vector(DOUBLE, self._totals / np.maximum(self._counts, 1), valid, None)
        return Vector(DOUBLE, self._totals, valid, None)

    def save(self, last: Ints) -> tuple[Columns, Columns | None]:
        limbs = exact.normalized(self._limbs)
        columns: Columns = {f"{self.prefix}n": self._counts[last]}
        for j in range(limbs.shape[1]):
            if self.argument.is_integer or limbs[:, j].any():
                columns[f"{self.prefix}l{self._low + j}"] = limbs[:, j]
        for j, name in enumerate(_SPECIALS):
            if self._special[:, j].any():
                columns[f"{self.prefix}{name}"] = self._special[:, j]
        return columns, None


_SPECIALS = ("nan", "inf", "ninf")


@dataclass(slots=True)
class Extreme:
    """MIN and MAX: a front where ends are known, the whole multiset where they are not.

    The candidates of a group are rows of a side table; the group's state row says where.
    """

    prefix: str
    type: DataType
    largest: bool
    _codes: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _tags: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _offset: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _size: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _best: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    _has: Any = None
    _pool: Vector | None = None
    _pool_codes: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def advance(self, argument: Vector | None, signed: Signed, loaded: Loaded) -> None:
        assert argument is not None
        runs, ends = signed.runs, signed.ends
        stored = loaded.side.get(self.prefix)
        old = nulls(self.type, 0) if stored is None else stored["value"]
        codes, old_codes = self._encode(argument, old)
        used = _used(argument, signed)
        init_count = loaded.ints(f"{self.prefix}count")
        self._lay_out(old_codes, stored, init_count, loaded, runs, used)
        best = np.zeros(runs.runs, np.int64)
        has = np.zeros(runs.runs, np.bool_)
        ordered = codes[runs.order]
        if ends is not None:
            at = runs.instants[runs.run]
            extremes.running_front(
                ordered, ends[runs.order], used, at, runs.run, runs.group_of_run,
                self._offset, self._size, self._codes, self._tags, best, has,
            )  # fmt: skip
        else:
            extremes.running_multiset(
                ordered, used, runs.run, runs.group_of_run,
                self._offset, self._size, self._codes, self._tags, best, has,
            )  # fmt: skip
        self._best = np.concatenate([self._best, best])
        self._has = np.concatenate([self._has, has])

    def _encode(self, new: Vector, old: Vector) -> tuple[Ints, Ints]:
        codes, old_codes = order_codes([new, old])
        if self.type.name in ("STRING", "BINARY", "DECIMAL"):
            pool = concat([new, old])
            known = np.flatnonzero(pool.usable)
            self._pool = pool.take(known)
            self._pool_codes = np.concatenate([codes, old_codes])[known]
        if self.largest:
            return ~codes, ~old_codes
        return codes, old_codes

    def _lay_out(
        self,
        old_codes: Ints,
        stored: Columns | None,
        count: Ints,
        loaded: Loaded,
        runs: Runs,
        used: Signs,
    ) -> None:
        """One region per group, with room for all it had and all that may come."""
        group_of_change = runs.group_of_run[runs.run]
        room = np.bincount(group_of_change, used != 0, runs.groups).astype(np.int64) + count
        self._offset = np.concatenate([[0], np.cumsum(room)[:-1]]).astype(np.int64)
        total = int(room.sum())
        self._codes = np.zeros(total, np.int64)
        self._tags = np.zeros(total, np.int64)
        self._size = count.copy()
        begin = loaded.ints(f"{self.prefix}begin")
        if stored is not None:
            extremes.gather_slices(begin, count, self._offset, old_codes, self._codes)
            extremes.gather_slices(begin, count, self._offset, stored["tag"], self._tags)
        self._has = count > 0
        first = np.minimum(self._offset, max(total - 1, 0))
        self._best = self._codes[first] if total else np.zeros(runs.groups, np.int64)

    def values(self) -> Vector:
        return self._decode(self._best, self._has)

    def _decode(self, codes: Ints, valid: Any) -> Vector:
        plain = ~codes if self.largest else codes
        if self.type.is_float:
            data: Any = decode_floats(plain)
            if self.type.name == "FLOAT":
                data = data.astype(np.float32)
            return Vector(self.type, data, valid, None)
        if self._pool is not None:
            return self._from_pool(plain, valid)
        zero = nulls(self.type, 0).data
        return Vector(self.type, plain.astype(zero.dtype), valid, None)

    def _from_pool(self, codes: Ints, valid: Any) -> Vector:
        assert self._pool is not None
        if not len(self._pool_codes):
            return nulls(self.type, len(codes))
        order = np.argsort(self._pool_codes, kind="stable")
        at = np.searchsorted(self._pool_codes[order], codes)
        rows = order[np.minimum(at, len(order) - 1)]
        found = self._pool.take(rows)
        return Vector(self.type, found.data, valid, None)

    def save(self, last: Ints) -> tuple[Columns, Columns | None]:
        codes = extremes.compact_slices(self._offset, self._size, self._codes)
        tags = extremes.compact_slices(self._offset, self._size, self._tags)
        begin = np.concatenate([[0], np.cumsum(self._size)[:-1]]).astype(np.int64)
        values = self._decode(codes, np.ones(len(codes), np.bool_))
        columns = {f"{self.prefix}begin": begin, f"{self.prefix}count": self._size}
        return columns, {"value": values.to_arrow().cast(to_arrow(self.type)), "tag": tags}


def load_side(table: pa.Table, dtype: DataType) -> Columns:
    """A side table as read back."""
    return {
        "value": from_arrow(table.column("value"), dtype),
        "tag": table.column("tag").to_numpy(),
    }
