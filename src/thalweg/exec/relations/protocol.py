"""The interface between a relation and the step it runs in, and the registry of relation kinds.

`@runs(Kind)` registers a function for a class of relations; importing the module that defines the
class must import it, too, so that a worker which unpickles a plan can run it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import pyarrow as pa

from thalweg.columns.frame import Changes, Frame
from thalweg.columns.vector import Mask
from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.context import TaskContext
from thalweg.plan.relations.protocol import Relation
from thalweg.plan.state_slots import SlotKind
from thalweg.store.packs import Key


class RelationStep(Protocol):
    """One relation in one step. With `only_new`, of vanishing rows only those that netting needs
    are wanted."""

    @property
    def ctx(self) -> TaskContext: ...
    @property
    def only_new(self) -> bool: ...
    @property
    def keeps_state(self) -> bool:
        """Whether there are later epochs, for which state is worth computing."""
        ...

    def inputs(self) -> list[Changes]:
        """The changes of its inputs, under its own names of their columns."""
        ...

    def raw_inputs(self) -> list[Changes]:
        """The same under the names that they have in the inputs."""
        ...

    def own_rows(self, frame: Frame) -> Mask | None:
        """Which of the relation's rows belong to this task (None: all)."""
        ...

    def arriving(self, leaf: int) -> list[pa.Table]:
        """The rows of a leaf that arrive in this epoch and pass its filters, with their times."""
        ...

    def stored(self, kind: SlotKind, leaf: int | None = None) -> Sequence[StatePack]:
        """The state it stored in earlier epochs."""
        ...

    def tables(self, kind: SlotKind, leaf: int | None = None) -> list[pa.Table]: ...
    def keep(
        self,
        kind: SlotKind,
        table: pa.Table | None,
        keys: tuple[Key, ...] = (),
        leaf: int | None = None,
    ) -> None:
        """Store state for later epochs; `keys` arrange rows with times for being probed or
        split."""
        ...

    def wake(self, instant: int) -> None:
        """Request a wake-up at this instant, or later, without new rows."""
        ...


Run = Callable[[Any, Any], Changes]
RUNS: dict[type[Relation], Run] = {}


def runs(kind: type[Relation]) -> Callable[[Run], Run]:
    """Registers how relations of a kind run: (step, relation) -> its changes in the epoch."""

    def register(run: Run) -> Run:
        RUNS[kind] = run
        return run

    return register
