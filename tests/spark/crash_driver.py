"""A driver to be killed: `python crash_driver.py FOLDER [KIND NUMBER WHEN | after SECONDS]`.

Runs two queries over FOLDER/a and FOLDER/b on FOLDER/path and writes their results if it gets to
the end. Before that it kills itself and its JVM with SIGKILL: before, inside (the draft is there,
the link is not) or after the NUMBER-th commit to the `log` or the `manifests`, or at any instant.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow.feather
from cases import file_frame

import thalweg as tw
from thalweg.store.storage import LocalStorage

SCHEMA = "ts TIMESTAMP, k BIGINT, v BIGINT"
QUERIES = {
    "joined": "SELECT a.k, a.v, b.v AS w FROM a [RANGE 3 SECONDS], b [RANGE 3 SECONDS] "
    "WHERE a.k = b.k",
    "grouped": "SELECT k, count(*) AS n, max(v) AS m FROM a [RANGE 3 SECONDS] GROUP BY k",
}


def die(*_: Any) -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)
    time.sleep(60)


def die_at_commit(folder: str, number: int, when: str) -> None:
    """Make the NUMBER-th commit to a folder the last thing this process does."""
    commit, link, seen = LocalStorage.create, os.link, [0]

    def dying_link(source: Any, target: Any) -> None:
        if f"/{folder}/" in str(target):
            seen[0] += 1
            if seen[0] == number and when == "inside":
                die()
        link(source, target)

    def dying_commit(self: LocalStorage, name: str, data: bytes) -> bool:
        mine = name.startswith(f"{folder}/")
        if mine and when == "before" and seen[0] + 1 == number:
            die()
        done = commit(self, name, data)
        if mine and when == "after" and seen[0] == number:
            die()
        return done

    os.link = dying_link  # type: ignore[assignment]
    LocalStorage.create = dying_commit  # type: ignore[method-assign]


def arm(point: list[str]) -> None:
    if not point:
        return
    if point[0] == "after":
        threading.Timer(float(point[1]), die).start()
    else:
        die_at_commit(point[0], int(point[1]), point[2])


def main(folder: Path, point: list[str]) -> None:
    with tw.Engine("local[2,4]", folder / "path", parallelism=2) as engine:
        for name in "ab":
            frame = file_frame(engine.spark, folder / name, schema=SCHEMA)
            engine.stream(name, frame, "ts", idle=None)
        queries = [engine.query(text, name) for name, text in QUERIES.items()]
        arm(point)
        engine.run()
        for query in queries:
            pyarrow.feather.write_feather(query.results(), folder / f"{query.name}.feather")
        late = sum(s.late for s in engine.core.state.streams.values())
        (folder / "late").write_text(str(late))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
