"""PAUSE, RESUME and DROP of anything that is managed: what an object can do, its kind says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from thalweg.errors import NotAvailableYet
from thalweg.lang.parsing.cursor import Cursor
from thalweg.statements.protocol import Effect, Language, StatementKind
from thalweg.statements.services import Services

USUAL = "QUERY"
"""What is meant where no kind is named."""


@dataclass(frozen=True, slots=True)
class Manage:
    """A verb, the kind of an object, and its name."""

    effect: ClassVar[Effect] = Effect.COMMIT
    verb: str
    kind: str
    name: str
    at: int

    def run(self, on: Services, script: str) -> None:
        manage(on, self.verb, self.kind, self.name)


def manage(on: Services, verb: str, word: str, name: str) -> None:
    """Let an object pause, resume, or end."""
    language: Language = on.language
    kind = language.object(word)
    rule = {"PAUSE": kind.pause, "RESUME": kind.resume, "DROP": kind.drop}[verb]
    if rule is None:
        raise NotAvailableYet(
            f"{verb} {word} is not available yet",
            remedy=f"{verb} is for {_managed(language, verb)}",
        )
    rule(on, name)


def _managed(language: Language, verb: str) -> str:
    """The kinds of objects that a verb is for."""
    rules = {"PAUSE": "pause", "RESUME": "resume", "DROP": "drop"}
    able = [k.plural for k in language.objects if getattr(k, rules[verb]) is not None]
    return " and ".join(filter(None, (", ".join(able[:-1]), able[-1])))


def _parse(c: Cursor, at: int) -> Manage:
    verb = next(v for v in ("PAUSE", "RESUME", "DROP") if c.word(v))
    kind = next((word for word in c.object_words if c.word(word)), USUAL)
    return Manage(verb, kind, c.name("a name"), at)


PAUSE = StatementKind(("PAUSE",), "PAUSE [QUERY] name", _parse, ("PAUSE QUERY q",))
RESUME = StatementKind(("RESUME",), "RESUME [QUERY] name", _parse, ("RESUME QUERY q",))
DROP = StatementKind(
    ("DROP",), "DROP [QUERY | VIEW | TABLE | STREAM] name", _parse, ("DROP QUERY q", "DROP VIEW v")
)
