"""Merges beside the epochs change no row, whenever they are taken over."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from thalweg.errors import PathError
from thalweg.exec.jobs import UpkeepFailed, execute_all
from thalweg.runtime.upkeep import background_merges as aside
from thalweg.runtime.upkeep import compaction
from thalweg.testing.compare import difference, from_table
from thalweg.testing.generators import random_case
from thalweg.testing.grid import VARIANTS, check_variant, reference_result
from thalweg.testing.local_executor import LocalExecutor
from thalweg.testing.runner import Runner


def test_any_query_beside_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "LARGE", 0)
    monkeypatch.setattr(compaction, "FAN_IN", 2)
    every_row = next(
        v for v in VARIANTS if v.name == "every row its own epoch, output soon gathered"
    )
    for seed in range(60):
        case = random_case(seed)
        check_variant(case, every_row, reference_result(case))


class Slow(LocalExecutor):
    """Merges are done when somebody says so."""

    def __init__(self, cache: Any) -> None:
        super().__init__(cache)
        self.begun: list[tuple[Any, Future[Any]]] = []

    def aside(self, job: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.begun.append((job, future))
        return future

    def finish(self, failing: bool = False) -> None:
        while self.begun:
            job, future = self.begun.pop()
            if failing:
                future.set_result(UpkeepFailed("no"))
                continue
            try:
                future.set_result(execute_all([job], self.cache, {})[0])
            except PathError as error:  # its packs are gone
                future.set_exception(error)


def rows(t: int) -> pa.Table:
    return pa.table({"k": np.arange(10) % 3, "ts": pa.array([t] * 10, pa.timestamp("us", "UTC"))})


@pytest.mark.parametrize("ending", ["late", "failed", "gone"])
def test_a_merge_is_taken_over_or_left(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "LARGE", 50)
    made = Runner()
    slow = Slow(made.core.runner.executor.cache)  # type: ignore[attr-defined]
    made.core.runner.executor = slow
    made.core.upkeep.background = aside.BackgroundMerges(slow.aside)
    made.stream("s", rows(0).slice(0, 0))
    span = 400 if ending != "gone" else 12
    query = made.query(f"SELECT k, count(*) AS n FROM s [RANGE {span} MICROSECONDS] GROUP BY k")
    for t in range(30):
        made.feed({"s": rows(t)})
    assert len(slow.begun) == 1, "one at a time"
    packs = made.core.state.streams["s"].packs
    before = {p.name for p in packs}
    slow.finish(failing=ending == "failed")
    made.feed({"s": rows(30)})
    after = {p.name for p in made.core.state.streams["s"].packs}
    merged = [n for n in after - before if "merged" in n]
    assert len(merged) == (ending == "late")
    on_disk = [n for n in made.storage.listing("log") if "merged" in n and n not in after]
    assert not on_disk
    made.close()
    other = Runner()
    other.stream("s", pa.concat_tables([rows(t) for t in range(31)]))
    expected = other.query(query.text, "q")
    other.run()
    assert difference(from_table(expected.results()), from_table(query.results())) is None
