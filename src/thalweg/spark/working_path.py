"""The path of an engine: given, or temporary; held by one process at a time."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import Any

from thalweg.runtime.state.open_path import claim, release
from thalweg.store.storage import open_storage


class WorkingPath:
    """`durable` None: files survive a power failure on a given path, not on a temporary one."""

    def __init__(self, path: str | os.PathLike[str] | None, durable: bool | None) -> None:
        self._temporary = tempfile.mkdtemp(prefix="thalweg-") if path is None else None
        self._lock: Any = None
        self.path = str(self._temporary or path)
        self.storage = open_storage(self.path, path is not None if durable is None else durable)

    @property
    def is_temporary(self) -> bool:
        """Whether it is removed when the engine is closed."""
        return self._temporary is not None

    def claim(self) -> None:
        """Hold the path for this process, or refuse."""
        self._lock = claim(self.storage)

    def release(self) -> None:
        """Let others have it."""
        release(self._lock)
        self._lock = None

    def remove_temporary(self) -> None:
        """Remove the path, if it was not given."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
