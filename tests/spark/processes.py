"""Processes, looked up in /proc."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name: state, parent, group, session, ..."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return []


def _pids() -> list[int]:
    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]


def of_session(session: int) -> list[int]:
    return [p for p in _pids() if (s := _stat(p)) and int(s[3]) == session and s[0] != "Z"]


def end_session(session: int) -> None:
    """SIGKILL to every process of a session that one of our children leads."""
    for pid in of_session(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def spark_workers() -> list[int]:
    """Python workers of this process's Spark: children of the daemons its JVM started."""
    parents = {p: int(s[1]) for p in _pids() if (s := _stat(p)) and s[0] != "Z"}

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    daemons = {p for p in parents if _is_daemon(p) and not _is_daemon(parents[p]) and is_ours(p)}
    return [p for p, parent in parents.items() if parent in daemons]


def _is_daemon(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return b"thalweg.spark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return False
