"""Processes of this session or of a child's, looked up in /proc."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

DAEMON, EXECUTOR = b"thalweg.spark.daemon", b"CoarseGrainedExecutorBackend"


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name: state, parent, group, session, ..."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return []


def of_session(session: int) -> list[int]:
    pids = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()]
    return [p for p in pids if (s := _stat(p)) and int(s[3]) == session and s[0] != "Z"]


def end_session(session: int) -> None:
    """SIGKILL to every process of a session that one of our children leads."""
    for pid in of_session(session):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def executors() -> list[int]:
    """JVMs of executors in our session."""
    return [p for p in of_session(os.getsid(0)) if EXECUTOR in _command(p)]


def workers() -> list[int]:
    """Python workers in our session: children of the daemons that executors start."""
    daemons = {p for p in of_session(os.getsid(0)) if DAEMON in _command(p)}
    return [p for p in daemons if int((_stat(p) or ["", "0"])[1]) in daemons]


def _command(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""
