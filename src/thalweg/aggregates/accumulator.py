"""What aggregates share: changes sorted into runs, and state rows found for groups.

The protocol is small, so that a new aggregate is one class in a file of its own: `advance` over the
epoch's changes from what the groups had, then `values` of all versions (the groups' stored states
first, then one per run) and `save` what the groups have now.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from thalweg.columns.frame import Signs
from thalweg.columns.runs import Runs
from thalweg.columns.vector import Vector
from thalweg.instants import Ints
from thalweg.numeric import exact
from thalweg.plan.types import DataType

Columns = dict[str, Any]
Arguments = tuple[Vector, ...]
"""What an aggregate is of: nothing for count(*), one vector, or a value and its order."""


@dataclass(slots=True)
class Side:
    """Values that belong to groups, many to one: columns of equal length and a tag for each row."""

    values: Arguments
    tags: Ints


@dataclass(slots=True)
class Loaded:
    """State rows found for groups: `rows[g]` is the row of group g in `columns`, -1 if none."""

    columns: Columns
    rows: Ints
    sides: dict[str, Side] = field(default_factory=dict)

    def ints(self, name: str) -> Ints:
        """An int64 state column, 0 where the group is new."""
        found: Ints = self._column(name, np.dtype(np.int64))
        return found

    def floats(self, name: str) -> npt.NDArray[np.float64]:
        """A float64 state column, 0 where the group is new."""
        found: npt.NDArray[np.float64] = self._column(name, np.dtype(np.float64))
        return found

    def _column(self, name: str, dtype: np.dtype[Any]) -> Any:
        out = np.zeros(len(self.rows), dtype)
        have = self.rows >= 0
        if name in self.columns and have.any():
            found = self.columns[name]
            if found.dtype != dtype:
                raise TypeError(f"state column {name} holds {found.dtype}, not {dtype}")
            out[have] = found[self.rows[have]]
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
    """What the aggregate operator asks of each aggregate. `side_types` are the types of the values
    it keeps beside its state rows, () if it keeps none."""

    @property
    def side_types(self) -> tuple[DataType, ...]: ...
    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None: ...
    def values(self) -> Vector: ...
    def save(self, last: Ints) -> tuple[Columns, Side | None]: ...


def sign_runs(weight: Signs, ends: Ints | None, runs: Runs, loaded: Loaded, rows: str) -> Signed:
    """Changes ready for accumulators; `rows` names the state column that counts members."""
    ordered = weight[runs.order]
    return Signed(runs, ordered, ends, running_counts(ordered, runs, loaded.ints(rows)))


def running_counts(weight: Signs | Ints, runs: Runs, init: Ints) -> Ints:
    """Counts of all versions: the stored ones, then one per run."""
    versions = np.empty(runs.groups + runs.runs, np.int64)
    versions[: runs.groups] = init
    exact.running_counts(weight, runs.run, runs.group_of_run, init, versions[runs.groups :])
    return versions


def used_weights(arguments: Arguments, signed: Signed) -> Signs:
    """Weights in run order, 0 where what decides (the last argument) is NULL."""
    if not arguments or arguments[-1].valid is None:
        return signed.weight
    return np.where(arguments[-1].valid[signed.runs.order], signed.weight, np.int8(0))


def counted(used: Signs, signed: Signed, loaded: Loaded, name: str) -> Ints:
    """How many values each version has; its rows, if no group ever had a NULL among them."""
    init = loaded.ints(name)
    runs = signed.runs
    if used is signed.weight and np.array_equal(init, signed.members[: runs.groups]):
        return signed.members
    return running_counts(used, runs, init)
