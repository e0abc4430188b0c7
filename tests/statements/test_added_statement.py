"""A statement and a managed object, added from this file alone: CREATE NOTE, and notes that are
shown, paused, dropped, and there again after a restart."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
import pytest

from thalweg.errors import NotAvailableYet, ParseError, UnknownName
from thalweg.lang.parsing.cursor import Cursor
from thalweg.runtime.session.client import Client
from thalweg.statements import (
    LANGUAGE,
    Effect,
    Language,
    ObjectKind,
    StatementKind,
    parse,
)
from thalweg.statements.services import Reading, Services
from thalweg.testing import Runner

WORD = "NOTE"


@dataclass(frozen=True, slots=True)
class CreateNote:
    effect: ClassVar[Effect] = Effect.COMMIT
    name: str
    text: str
    at: int

    def run(self, on: Services, script: str) -> str:
        on.definitions.put(WORD, self.name, json.dumps({"text": self.text, "paused": False}))
        return self.name


def parse_note(c: Cursor, at: int) -> CreateNote:
    c.need("CREATE", "NOTE")
    return CreateNote(c.name("a name"), c.string("a text"), at)


@dataclass
class Board:
    """What is resumed is pinned here."""

    pinned: list[str] = field(default_factory=list)

    def listed(self, on: Reading) -> list[dict[str, object]]:
        notes = on.definitions.of(WORD).items()
        return [{"name": name, **json.loads(text)} for name, text in notes]

    def change(self, on: Services, name: str, paused: bool) -> None:
        text = on.definitions.get(WORD, name)
        if text is None:
            raise UnknownName(f"unknown note {name}", remedy="SHOW NOTES lists them")
        on.definitions.put(WORD, name, json.dumps({**json.loads(text), "paused": paused}))

    def resumed(self, on: Services, name: str, text: str) -> None:
        self.pinned.append(json.loads(text)["text"])


@pytest.fixture
def board() -> Board:
    return Board()


@pytest.fixture
def runner(board: Board) -> Runner:
    note = ObjectKind(
        WORD,
        "NOTES",
        listed=board.listed,
        drop=lambda on, name: on.definitions.pop(WORD, name),
        pause=lambda on, name: board.change(on, name, True),
        resume=lambda on, name: board.change(on, name, False),
        resume_from=board.resumed,
    )
    kind = StatementKind(("CREATE NOTE",), "CREATE NOTE name 'text'", parse_note)
    return Runner(language=LANGUAGE.plus([kind], [note]))


def notes(runner: Runner) -> list[tuple[str, str, bool]]:
    rows: pa.Table = runner.sql("SHOW NOTES")
    return [(r["name"], r["text"], r["paused"]) for r in rows.to_pylist()]


def test_a_note_is_created_shown_paused_and_dropped(runner: Runner) -> None:
    assert runner.sql("CREATE NOTE a 'one'; CREATE NOTE b 'two'") == "b"
    assert notes(runner) == [("a", "one", False), ("b", "two", False)]
    runner.sql("PAUSE NOTE a")
    assert notes(runner)[0] == ("a", "one", True)
    runner.sql("RESUME NOTE a; DROP NOTE b")
    assert notes(runner) == [("a", "one", False)]
    with pytest.raises(UnknownName, match="unknown note b"):
        runner.sql("PAUSE NOTE b")


def test_notes_are_there_again_after_a_restart(runner: Runner, board: Board) -> None:
    runner.sql("CREATE NOTE a 'one'; CREATE NOTE b 'two'; PAUSE NOTE a; DROP NOTE b")
    assert board.pinned == []
    runner.restart()
    assert board.pinned == ["one"]
    assert notes(runner) == [("a", "one", True)]


def test_a_client_shows_them(runner: Runner) -> None:
    runner.sql("CREATE NOTE a 'one'")
    client = Client(runner.storage, runner.language)
    assert client.sql("SHOW NOTES").to_pylist() == [{"name": "a", "text": "one", "paused": False}]


def test_what_could_stand_there_is_told_from_the_tables(runner: Runner) -> None:
    with pytest.raises(ParseError, match="expected STREAM, TABLE, QUERY, VIEW, ALERT or NOTE"):
        runner.sql("CREATE NOTHING x")
    with pytest.raises(ParseError, match="STREAMS, QUERIES, TABLES, VIEWS, NOTES, PLANS q or STA"):
        runner.sql("SHOW NOTHING")


def test_other_engines_know_nothing_of_it() -> None:
    with pytest.raises(ParseError):
        parse("CREATE NOTE a 'one'")
    with pytest.raises(ParseError):
        Runner().sql("SHOW NOTES")


def test_what_an_object_cannot_do_is_refused(runner: Runner) -> None:
    with pytest.raises(NotAvailableYet, match="PAUSE VIEW is not available yet"):
        runner.sql("PAUSE VIEW v")


@pytest.mark.parametrize("text", [t for kind in LANGUAGE.statements for t in kind.examples])
def test_examples_parse_as_their_kind(text: str) -> None:
    (statement,) = parse(text)
    (kind,) = (k for k in LANGUAGE.statements if text in k.examples)
    assert any(text.startswith(start) for start in kind.starts)
    only_this = Language((kind,), LANGUAGE.objects)
    assert parse(text, only_this) == (statement,)


def test_every_kind_has_examples_and_a_grammar() -> None:
    assert all(kind.examples and kind.grammar for kind in LANGUAGE.statements)
