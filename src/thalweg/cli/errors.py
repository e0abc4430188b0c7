"""Failures on their way to the terminal: what went wrong, where, what to do; never a traceback."""

from __future__ import annotations

import os
import sys

from rich.console import Console
from rich.text import Text

from thalweg.errors import ConfigError, ThalwegError
from thalweg.spark.terminal import Terminated, spark_refusal

FAILED = 1
INTERRUPTED, TERMINATED = 130, 143


def exit_code(error: BaseException) -> int:
    """Say what happened on stderr; the exit code. Errors of our own making are re-raised."""
    if isinstance(error, KeyboardInterrupt):
        return interrupted(error)
    known = typed(error)
    if known is None or os.environ.get("THALWEG_TRACEBACK"):
        raise error
    print_error(known)
    return FAILED


def interrupted(error: KeyboardInterrupt) -> int:
    """The exit code of a run that was stopped from outside."""
    return TERMINATED if isinstance(error, Terminated) else INTERRUPTED


def typed(error: BaseException) -> ThalwegError | None:
    """The refusal behind an exception: ours, Spark's, or the operating system's."""
    if isinstance(error, ThalwegError):
        return error
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("pyspark"):
        return ConfigError("pyspark is not installed", remedy="pip install 'thalweg[spark]'")
    if isinstance(error, OSError):
        return ConfigError(str(error), remedy="check the file or folder that is named")
    return spark_refusal(error)


def print_error(error: ThalwegError) -> None:
    """Red message, the place with its caret, the remedy."""
    console = Console(file=sys.stderr, highlight=False)
    first, *rest = str(error).splitlines()
    text = Text.assemble((f"{_kind(error)}: ", "bold red"), (first, "red"))
    for line in rest:
        text.append("\n" + line, "green" if line.startswith("  → ") else "")
    console.print(text, soft_wrap=True)


def print_note(message: str, remedy: str) -> None:
    """What is no error yet, and what to do about it, on stderr."""
    console = Console(file=sys.stderr, highlight=False)
    console.print(Text(message, "yellow").append(f"\n  → {remedy}", "green"), soft_wrap=True)


def _kind(error: ThalwegError) -> str:
    words = "".join(f" {c.lower()}" if c.isupper() else c for c in type(error).__name__)
    return words.strip()
