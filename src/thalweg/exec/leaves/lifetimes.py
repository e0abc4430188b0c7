"""Rows by key and lifetime, of which probes find those that are alive at an instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from thalweg.exec.leaves.protocol import Needles
from thalweg.instants import AFTER_TIME, Ints
from thalweg.store import native
from thalweg.store.hashing import Hashes

Places = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Lifetimes sorted by (hash of the key, start). `last` is the place in FROM of the leaf that
    decides which changes at its first instant a row meets, `first` of the one at its end."""

    hashes: Hashes
    starts: Ints
    ends: Ints
    last: Places
    first: Places

    @staticmethod
    def of_leaf(hashes: Hashes, starts: Ints, ends: Ints, position: int) -> tuple[Lifetimes, Ints]:
        """The lifetimes of rows of one leaf, and the row of each."""
        order = native.key_time_order(hashes, starts)
        places = np.full(len(order), position, np.int8)
        return Lifetimes(hashes[order], starts[order], ends[order], places, places), order

    def met_by(self, needles: Needles) -> tuple[Ints, Ints, int]:
        """(needle, lifetime) of all rows that needles meet, and how often one was looked at: it
        grows with the pairs, the needles and the rows, and not with their product."""
        order = native.key_time_order(needles.hashes, needles.instants)
        return native.alive_pairs(  # type: ignore[no-any-return]
            needles.hashes, needles.instants, order, needles.source, needles.departing,
            self.hashes, self.starts, self.ends, self.last, self.first,
        )  # fmt: skip


def paired(content: Ints, instants: Ints, weights: Ints) -> tuple[Ints, Ints, Ints]:
    """Lifetimes of rows that appear and vanish: of equal rows the first to appear is the first to
    vanish.

    Row i of this `content` (a code) appears `weights[i]` times at its instant, or vanishes as often
    if that is negative. Returns the row, start and end of each lifetime; what appears and never
    vanishes ends after all time.
    """
    born = np.repeat(*_positive(weights))
    gone = np.repeat(*_positive(-weights))
    born = born[np.lexsort((instants[born], content[born]))]
    gone = gone[np.lexsort((instants[gone], content[gone]))]
    of_born, of_gone = content[born], content[gone]
    rank = np.arange(len(born)) - np.searchsorted(of_born, of_born)
    partner = np.searchsorted(of_gone, of_born) + rank
    ends = np.full(len(born), AFTER_TIME, np.int64)
    dies = np.flatnonzero(partner < np.searchsorted(of_gone, of_born, "right"))
    ends[dies] = instants[gone[partner[dies]]]
    lives = np.flatnonzero(ends > instants[born])
    return born[lives], instants[born[lives]], ends[lives]


def _positive(weights: Ints) -> tuple[Ints, Ints]:
    rows = np.flatnonzero(weights > 0)
    return rows, weights[rows]
