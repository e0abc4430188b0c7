"""Large files go to disk piece by piece, and are the same files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from thalweg.store import storage
from thalweg.store.storage import LocalStorage


@pytest.mark.parametrize("ending", ["arrow", "parquet"])
def test_pieces_are_forced_and_nothing_is_changed(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[int] = []
    monkeypatch.setattr(storage, "_force", forced.append)
    rng = np.random.default_rng(1)
    large = pa.table({"a": rng.integers(0, 1 << 60, 1_000_000), "b": rng.random(1_000_000)})
    durable, fleeting = LocalStorage(str(tmp_path / "d")), LocalStorage(str(tmp_path / "f"), False)
    for store in (durable, fleeting):
        assert store.write_table(f"large.{ending}", large) > 8 << 20
        assert store.read_table(f"large.{ending}").equals(large)
    assert len(forced) >= 2
    assert (tmp_path / f"d/large.{ending}").read_bytes() == (
        tmp_path / f"f/large.{ending}"
    ).read_bytes()
    forced.clear()
    durable.write_table(f"small.{ending}", large.slice(0, 1000))
    assert not forced
