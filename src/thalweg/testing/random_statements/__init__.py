"""Random statements of the language, written from docs/language.md, and of its neighbours.

`random_statement(seed)` always gives the same statement. About half can be answered. The others
hold an operand of a wrong type, a bad value, or a form of another dialect. `Statement.plain` says
the same in documented words; it is None where the text holds something that has no meaning in the
language, which must be refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from thalweg.testing.random_statements.choices import as_written, in_plain_words
from thalweg.testing.random_statements.definitions import Definitions
from thalweg.testing.random_statements.selects import Selects

__all__ = ["Statement", "random_statement"]


@dataclass(frozen=True)
class Statement:
    """One statement; `plain` is what it must mean, `features` name what it has."""

    seed: int
    text: str
    plain: str | None
    is_query: bool
    features: frozenset[str]


def random_statement(seed: int) -> Statement:
    """The statement of a seed."""
    rng = Random(f"statement {seed}")
    wrong, foreign = rng.choices(((0.0, 0.0), (0.12, 0.0), (0.0, 0.15)), (60, 15, 25))[0]
    is_query = rng.random() < 0.88
    features: set[str] = set()
    if is_query:
        text = Selects(rng, wrong, foreign, features).query(2)
    else:
        text = Definitions(rng, wrong, foreign, features).statement()
    words = as_written(text)
    return Statement(seed, words, in_plain_words(text), is_query, frozenset(features))
