"""Sets of instants, as bits with false positives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.instants import Ints
from thalweg.store import native


class InstantSet:
    """A set of instants with false positives, for testing millions of others cheaply."""

    def __init__(self, instants: Ints) -> None:
        size = 1 << max(12, int(len(instants) * 16).bit_length())
        self.bits = np.zeros(min(size, 1 << 27) // 8, np.uint8)
        self.base = int(instants.min()) if len(instants) else 0
        self.is_empty = not len(instants)
        native.mark_instants(self.bits, instants, self.base)

    def might_hold(self, instants: Ints) -> npt.NDArray[np.bool_]:
        if self.is_empty:
            return np.zeros(len(instants), np.bool_)
        return native.test_instants(self.bits, instants, self.base)  # type: ignore[no-any-return]
