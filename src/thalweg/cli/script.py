"""Scripts: reading them, and placing an error of one statement in the whole text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from thalweg.errors import ConfigError, ThalwegError


def read_script(path: Path) -> str:
    """The text of a script; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"there is no script {path}", remedy="check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}",
            remedy="check the path and that the file is UTF-8 text",
        ) from None


@contextmanager
def placed_in(script: str) -> Iterator[None]:
    """Errors that point into one statement point into the script instead."""
    try:
        yield
    except ThalwegError as error:
        _shift(error, script)
        raise


def _shift(error: ThalwegError, script: str) -> None:
    if error.line is None or error.column is None or not error.text or error.text == script:
        return
    at = script.find(error.text)
    if at < 0:
        return
    before = script[:at]
    if error.line == 1:
        error.column += at - (before.rfind("\n") + 1)
    error.line += before.count("\n")
    error.text = script
