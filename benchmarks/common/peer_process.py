"""Running a peer system in a process of its own, so that each run has a fresh JVM.

The child writes JSON lines to its standard output: one per batch, `{"batch_ms", "rows_out"}`
(with `detail`, where there is something to say of the run so far), and one at the end,
`{"done": {...}}`. The parent keeps what it has read, so a run that exceeds its budget is killed and
still reported, as partial.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import IO, Any

WARM_UP_BATCHES = 2
START_UP_S = 90.0  # until the first line: JVM, session, planning, and the first batch's code

Progress = Callable[[str], None]


def silent(message: str) -> None:
    """The progress callback of those who do not want to know."""


class PeerError(RuntimeError):
    """A peer that failed or miscounted."""


@dataclass
class PeerResult:
    """What one run of one system took and gave.

    `total_s` is the whole run from the start of the query to its end, without the start of the
    JVM; of a partial run it is the time of the finished batches. `read_s` is set by peers that
    measure reading separately. `skipped` says why nothing was measured.
    """

    system: str
    total_s: float | None = None
    batch_ms: list[float] = field(default_factory=list)
    rows_out: int = 0
    partial: bool = False
    skipped: str | None = None
    read_s: float | None = None
    detail: dict[str, Any] = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"{self.system} (partial)" if self.partial else self.system

    @property
    def warm_ms(self) -> float | None:
        """Median batch after the warm-up; of runs that were cut short before it, None."""
        warm = self.batch_ms[WARM_UP_BATCHES:]
        return statistics.median(warm) if warm else None

    @property
    def net_s(self) -> float | None:
        """Run minus read."""
        if self.total_s is None or self.read_s is None:
            return None
        return self.total_s - self.read_s

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "warm_ms": self.warm_ms, "net_s": self.net_s}


def run_child(
    result: PeerResult,
    command: Sequence[str],
    job: dict[str, Any],
    *,
    budget_s: float,
    batch_budget_s: float,
    progress: Progress = silent,
    env: dict[str, str] | None = None,
    tolerant: bool = False,
) -> PeerResult:
    """Run `command` with `job` as its last argument and fill `result` from the lines it prints.

    A run that fails raises; if `tolerant`, one that fails after some batches is partial, like one
    that is over its budget, and `detail["failed"]` says how it ended.
    """
    progress(f"{result.system}: starting")
    with (
        tempfile.TemporaryDirectory(prefix="thalweg-bench-", ignore_cleanup_errors=True) as scratch,
        tempfile.TemporaryFile("w+") as errors,
    ):
        child = subprocess.Popen(
            [*command, json.dumps(job)],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=_surroundings(scratch, env or {}),
            start_new_session=True,
        )
        try:
            done = _follow(child, result, budget_s, batch_budget_s, progress)
        finally:
            _end(child)
        if done is None and not result.partial:
            if not tolerant or not result.batch_ms:
                raise PeerError(f"{result.system} failed:\n{_tail(errors)}")
            result.partial = True
            result.detail["failed"] = _tail(errors)
    _conclude(result, done, progress)
    return result


def _surroundings(scratch: str, extra: dict[str, str]) -> dict[str, str]:
    """Temporary files of the child and its JVM go where a killed run leaves nothing behind."""
    java = f"{os.environ.get('JAVA_TOOL_OPTIONS', '')} -Djava.io.tmpdir={scratch}".strip()
    return {**os.environ, "TMPDIR": scratch, "JAVA_TOOL_OPTIONS": java, **extra}


def _follow(
    child: subprocess.Popen[str],
    result: PeerResult,
    budget_s: float,
    batch_budget_s: float,
    progress: Progress,
) -> dict[str, Any] | None:
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_pump, args=(child.stdout, lines), daemon=True).start()
    deadline: float | None = None
    while True:
        started = deadline is not None
        patience = batch_budget_s if started else batch_budget_s + START_UP_S
        if deadline is not None:
            patience = min(patience, deadline - time.monotonic())
        try:
            line = lines.get(timeout=max(patience, 0.001))
        except queue.Empty:
            result.partial = True
            return None
        if deadline is None:
            deadline = time.monotonic() + budget_s
        if line is None:
            return None
        if not line.startswith("{"):
            continue
        event = json.loads(line)
        if "done" in event:
            return dict(event["done"])
        _note(event, result, progress)


def _note(event: dict[str, Any], result: PeerResult, progress: Progress) -> None:
    if "note" in event:
        progress(f"{result.system}: {event['note']}")
        return
    result.batch_ms.append(float(event["batch_ms"]))
    result.rows_out += int(event["rows_out"])
    result.detail.update(event.get("detail", {}))
    progress(f"{result.system}: batch {len(result.batch_ms)} {event['batch_ms']:,.0f} ms")


def _pump(stream: IO[str] | None, lines: queue.Queue[str | None]) -> None:
    assert stream is not None
    for line in stream:
        lines.put(line)
    lines.put(None)


def _end(child: subprocess.Popen[str]) -> None:
    """End the child and its JVM: they are alone in their session."""
    try:
        child.wait(timeout=0 if child.poll() is not None else 10)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _conclude(result: PeerResult, done: dict[str, Any] | None, progress: Progress) -> None:
    if done is None:
        result.total_s = sum(result.batch_ms) / 1_000
        why = "failed" if "failed" in result.detail else "over its budget"
        progress(f"{result.system}: {why}, partial ({len(result.batch_ms)} batches)")
        return
    for name, value in done.items():
        if name in ("total_s", "read_s", "rows_out"):
            setattr(result, name, value)
        else:
            result.detail[name] = value
    warm = "" if result.warm_ms is None else f", warm {result.warm_ms:,.0f} ms a batch"
    progress(f"{result.system}: {result.total_s:.1f} s in all{warm}")


def _tail(errors: IO[str], lines: int = 20) -> str:
    """The end of what the child said, after the messages of its exceptions (plans are long)."""
    errors.seek(0)
    said = errors.readlines()
    causes = [line for line in said[:-lines] if "Exception:" in line or "Error:" in line]
    return "".join(causes[-5:] + said[-lines:])


def check_count(result: PeerResult, expected: int) -> None:
    """Refuse a run whose results are not exactly the expected ones."""
    if result.rows_out != expected:
        raise PeerError(
            f"{result.system} gave {result.rows_out:,} results where {expected:,} are right"
        )


def emit(**event: Any) -> None:
    """In the child: one line to the parent."""
    print(json.dumps(event), flush=True)
