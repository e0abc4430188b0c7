"""Opening a path: formats, and incarnations."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.errors import FormatTooNew
from thalweg.runtime.state.open_path import claim, load_state
from thalweg.store.json_files import load_json
from thalweg.store.manifest import FORMAT, FORMAT_FILE, check_format, load
from thalweg.store.storage import LocalStorage, MemoryStorage
from thalweg.testing.runner import Runner


def rows(*micros: int) -> pa.Table:
    return pa.table({"ts": pa.array(micros, pa.timestamp("us", "UTC"))})


def test_every_opening_is_a_new_incarnation() -> None:
    storage = MemoryStorage()
    runner = Runner(storage=storage)
    runner.stream("a", rows(1))
    runner.query("SELECT ts FROM a", "q")
    for number in (1, 2, 3):
        runner.feed({"a": rows(number)})
        assert load(storage)[1]["incarnation"] == number
        runner.restart()


def test_a_newer_format_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create(FORMAT_FILE, b'{"format": 99}')
    before = storage.listing("")
    for refused in (claim, load_state):
        with pytest.raises(FormatTooNew, match="format 99"):
            refused(storage)
    assert storage.listing("") == before


def test_an_older_path_is_marked_as_ours() -> None:
    """Older versions must refuse it from then on."""
    storage = MemoryStorage()
    storage.create(FORMAT_FILE, b'{"format": 1}')
    check_format(storage)
    assert load_json(storage, FORMAT_FILE) == {"format": FORMAT}
