"""Partial results as a tree: rows of one leaf, each under the row it was found for.

Siblings are never multiplied here. A row without a partner at some node below it is dropped, and,
upwards, every row that is left without children; each remaining row is part of a result, as far as
keys tell.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Mask
from thalweg.exec.joins.probe_keys import keyed_rows
from thalweg.instants import Ints
from thalweg.store import native
from thalweg.store.hashing import Hashes


@dataclass(slots=True, eq=False)
class Node:
    """One leaf's rows in the tree. `instants` are those of the source's rows; `up` is the parent's
    row of each."""

    frame: Frame
    instants: Ints
    ends: Ints | None = None
    parent: Node | None = None
    up: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    alive: Mask = field(init=False)
    _keyed: dict[tuple[str, ...], tuple[Ints, Hashes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.alive = np.ones(len(self.instants), np.bool_)

    def usable(self) -> Mask:
        """Rows that are alive and whose ancestors are."""
        return self.alive if self.parent is None else self.alive & self.parent.usable()[self.up]

    def keyed(self, source: tuple[str, ...]) -> tuple[Ints, Hashes]:
        """Usable rows and the hashes of some of their columns."""
        usable = self.usable()
        if source not in self._keyed:
            self._keyed[source] = keyed_rows(self.frame, self.instants, usable, source)
        rows, hashes = self._keyed[source]
        kept = usable[rows]
        if not kept.all():
            rows, hashes = rows[kept], hashes[kept]
            self._keyed[source] = rows, hashes
        return rows, hashes

    def keep(self, rows: Ints) -> None:
        """Drop all other rows, and ancestors that are left without children."""
        kept = np.zeros(len(self.alive), np.bool_)
        kept[rows] = True
        self.alive &= kept
        if self.parent is not None:
            self.parent.keep(self.up[self.alive])

    def sources(self, rows: Ints) -> Ints:
        """The source's rows above these."""
        return rows if self.parent is None else self.parent.sources(self.up[rows])

    def children(self) -> tuple[Ints, Ints, Ints]:
        """Per row of the parent where its living children begin in the third array, and how many
        they are."""
        assert self.parent is not None
        rows = np.flatnonzero(self.usable())
        return native.grouped(self.up[rows], rows, len(self.parent.alive))  # type: ignore[no-any-return]
