"""A real driver to be killed, in a process of its own with the folder as its argument.

Runs the queries over the files of the folder with an engine on its path and writes their results if
it gets to the end. CHAOS_POINT may name the point of its death.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from faults import kill_points
from faults import workload as work


def add_work(engine: Any, root: Path, options: str = "IDLE NEVER") -> dict[str, Any]:
    """The streams and queries on an engine."""
    for stream in work.STREAMS:
        engine.sql(work.stream_statement(root, stream, options))
    return {name: engine.query(text, name) for name, text in work.queries(root).items()}


def save_results(engine: Any, root: Path, queries: dict[str, Any]) -> None:
    late = sum(s.late for s in engine.core.state.streams.values())
    work.save_results(root, {n: q.results() for n, q in queries.items()}, late)


def main(root: Path) -> None:
    import thalweg as tw

    work.busy_upkeep()
    with tw.Engine("local[2,4]", root / "path", parallelism=2) as engine:
        queries = add_work(engine, root)
        kill_points.arm_from_environment()
        (root / "ready").touch()
        engine.run()
        save_results(engine, root, queries)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
