"""Random choices of a writer of statements, and texts that can be said in two ways."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

T = TypeVar("T")

_OPEN, _PLAIN, _CLOSE = "\ue000", "\ue001", "\ue002"
_NO_MEANING = "\ue003"
_INNERMOST = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_PLAIN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")


@dataclass
class Choices:
    """Chances of one statement: how often an operand is of a wrong type (`wrong`), and how often
    something is written as other dialects have it (`foreign`)."""

    rng: Random
    wrong: float = 0.0
    foreign: float = 0.0
    features: set[str] = field(default_factory=set)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def pick(self, options: Sequence[T]) -> T:
        return self.rng.choice(options)

    def note(self, feature: str) -> None:
        self.features.add(feature)

    def maybe(self, probability: float, text: str) -> str:
        return text if self.chance(probability) else ""


def either(text: str, plain: str | None) -> str:
    """What another dialect writes, and the same in documented words: None if it has no meaning
    here and must be refused."""
    return f"{_OPEN}{text}{_PLAIN}{_NO_MEANING if plain is None else plain}{_CLOSE}"


def as_written(text: str) -> str:
    return _resolved(text, 1)


def in_plain_words(text: str) -> str | None:
    """The same in documented words, None if some part has no meaning."""
    plain = _resolved(text, 2)
    return None if _NO_MEANING in plain else plain


def _resolved(text: str, way: int) -> str:
    count = 1
    while count:
        text, count = _INNERMOST.subn(lambda found: found[way], text)
    return text
