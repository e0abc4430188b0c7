"""What a statement and a kind of managed object are: the two tables of the language.

To add a statement, write a file with a frozen dataclass that has `effect`, `at` and `run`, a rule
that parses it, and a `StatementKind`; list it in `statements/__init__.py`, or hand it to
`Language`. An object that statements create, show, pause and drop is an `ObjectKind`, listed in the
same way: SHOW, PAUSE, RESUME and DROP read that table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol

from thalweg.lang.parsing.cursor import Cursor
from thalweg.statements.services import Reading, Services


class Effect(Enum):
    """READ only looks, SOURCE reads rows or makes a source known, CHANGE changes what is registered
    and is run between two epochs, COMMIT is a change that is committed when it returns."""

    READ = "read"
    SOURCE = "source"
    CHANGE = "change"
    COMMIT = "commit"


class Statement(Protocol):
    """A statement as it was parsed. What READ statements are run on may be a `Reading` alone."""

    effect: ClassVar[Effect]

    @property
    def at(self) -> int:
        """Where it begins in the script."""
        ...

    def run(self, on: Any, script: str) -> Any:
        """Do it; `script` is the text that places point into."""
        ...


@dataclass(frozen=True, slots=True)
class StatementKind:
    """`starts` are the words it may begin with; of several kinds the longest match is taken. Its
    rule parses the whole statement, these words among it."""

    starts: tuple[str, ...]
    grammar: str
    parse: Callable[[Cursor, int], Statement]
    examples: tuple[str, ...] = ()

    @property
    def phrases(self) -> list[list[str]]:
        return [start.split() for start in self.starts]


Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """Something that has a name and is managed by it. What an object cannot do is None.

    `drop`, `pause` and `resume` are called between two epochs, with the name; `listed` gives the
    rows of SHOW. What must outlive the process is kept under the word (`Definitions`): when an
    engine goes on with an earlier run, `resume_from` gets each name with what was kept.
    """

    word: str
    plural: str
    listed: Callable[[Reading], Rows] | None = None
    drop: Callable[[Services, str], None] | None = None
    pause: Callable[[Services, str], None] | None = None
    resume: Callable[[Services, str], None] | None = None
    resume_from: Callable[[Services, str, str], None] | None = None


@dataclass(frozen=True, slots=True)
class Language:
    """All statements and objects that can be named."""

    statements: tuple[StatementKind, ...]
    objects: tuple[ObjectKind, ...]

    def plus(
        self, statements: Sequence[StatementKind] = (), objects: Sequence[ObjectKind] = ()
    ) -> Language:
        return Language((*self.statements, *statements), (*self.objects, *objects))

    def object(self, word: str) -> ObjectKind:
        return next(kind for kind in self.objects if kind.word == word)
