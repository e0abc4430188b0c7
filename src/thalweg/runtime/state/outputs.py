"""The output of queries in the state: packs by owner and epoch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import kind_of_output
from thalweg.runtime.state.output_keys import key_of, keys_of, owner_of
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import CONDITIONS
from thalweg.store.packs import PackMeta


class Outputs:
    """Adds and forgets output. `fresh` counts, by owner, epochs whose output lies in packs of their
    own; what conditions let through is merged by what it holds and not counted."""

    def __init__(self, state: EngineState, files: PendingFiles) -> None:
        self._state = state
        self._files = files
        self.fresh: Counter[str] = Counter()
        for key in state.outputs:
            self._count(owner_of(key))

    def put(self, owner: str, epoch: int, packs: Sequence[PackMeta]) -> None:
        """Output of an epoch."""
        if not packs:
            return
        key = key_of(owner, epoch, epoch)
        if key not in self._state.outputs:
            self._count(owner)
        described = [p.to_json() for p in packs]
        self._state.outputs[key] = [*self._state.outputs.get(key, ()), *described]

    def of(self, owner: str) -> list[list[object]]:
        """All packs of an owner as described, in the order of epochs."""
        outputs = self._state.outputs
        return [p for key in keys_of(outputs, owner) for p in outputs[key]]

    def forget(self, owner: str) -> None:
        """All of it is superfluous."""
        self.fresh.pop(owner, None)
        for key in keys_of(self._state.outputs, owner):
            self._files.drop(p[0] for p in self._state.outputs.pop(key))

    def _count(self, owner: str) -> None:
        if kind_of_output(owner) != CONDITIONS:
            self.fresh[owner] += 1
