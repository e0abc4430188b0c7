"""Secrets in OPTIONS: `SECRET 'name'` stands for a value that no file of a path holds, and values
that are written out are never shown.

A secret is read where it is used: from the environment variable of its name, else from the file of
its name in the folder that THALWEG_SECRETS names (as containers mount them).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thalweg.errors import ConfigError

FOLDER = "THALWEG_SECRETS"
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Secret:
    """A value that is known by its name only."""

    name: str

    def __str__(self) -> str:
        return f"SECRET '{self.name}'"

    def value(self) -> str:
        found = os.environ.get(self.name)
        return _from_file(self.name) if found is None else found


def _from_file(name: str) -> str:
    folder = os.environ.get(FOLDER)
    if folder is not None and _PLAIN_NAME.fullmatch(name):
        try:
            return (Path(folder) / name).read_text().rstrip("\r\n")
        except OSError:
            pass  # told below
    raise ConfigError(
        f"there is no secret {name}",
        remedy=f"set the environment variable {name}, or put a file {name} into the folder that "
        f"{FOLDER} names",
    )


def with_values(options: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Options as they are handed over: secrets as their values."""
    for name, value in options:
        yield name, value.value() if isinstance(value, Secret) else value


def from_json(options: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Options as they were before they were written down; of secrets that has the names."""
    return tuple((str(n), Secret(**v) if isinstance(v, dict) else v) for n, v in options)
