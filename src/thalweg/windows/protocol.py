"""What every window kind answers, and how it enters the language.

A window turns a stream into a relation: each row has a lifetime [start, end) during which it is in
the window's content. A *time window* knows both from the row's own event time; in an *ordered
window* rows that come later decide, so its content is state of the query and filters do not
commute with it.

A kind is one file: the clause as parsed, the value a plan holds, the reference meaning, and its
`WindowKind`, which is listed in `windows/__init__.py`. What a kind needs from the parser, the
binder and the writer of query text is handed to it as a narrow protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Protocol, Self, TypeVar

import numpy as np

from thalweg.errors import ThalwegError
from thalweg.instants import BEFORE_TIME, Ints


class Row(Protocol):
    """A row of a stream, as reference meanings see it."""

    @property
    def ts(self) -> int: ...


R = TypeVar("R", bound=Row)


class WindowSpec(ABC):
    """A window of a plan: a frozen dataclass, comparable and picklable.

    `partition_by` holds unique column names (`alias.column`). A subclass that makes a field of a
    property declared here writes `name: type = field()`, or the property becomes its default.
    """

    __slots__ = ()
    is_ordered: ClassVar[bool] = False
    """Whether later rows decide about lifetimes."""
    waits: ClassVar[bool] = False
    """Whether rows appear by time alone, later than they arrive, and for one instant."""

    @property
    def partition_by(self) -> tuple[str, ...]:
        return ()

    @property
    def expires(self) -> bool:
        """Whether time alone takes rows out."""
        return not self.is_endless

    @property
    def is_endless(self) -> bool:
        """Whether rows never leave again."""
        return False

    @property
    def grows(self) -> bool:
        """Whether the content grows for ever."""
        return self.is_endless

    @property
    def only_grows(self) -> bool:
        """Whether rows appear as they arrive and never leave."""
        return False

    @property
    def longest_stay(self) -> int | None:
        """The longest time a row is in the window; None if that cannot be told."""
        return None

    def complete_from(self, instant: int) -> int | None:
        """The first event time of what it may hold at an instant; None if that cannot be told."""
        return None

    @property
    def most_rows(self) -> int | None:
        """The most rows that it ever holds; None if that depends on the stream."""
        return None

    def bound(self) -> str:
        """What limits the content, in words."""
        return "not kept" if self.grows else str(self)

    def settled(self, last: int) -> int:
        """The instant a close must reach so that rows up to `last` have appeared."""
        return last

    def emptied(self, last: int) -> int:
        """The last instant at which time alone changes what is there of rows up to `last`."""
        return self.settled(last)

    def boundaries(self, since: int, until: int) -> Ints | None:
        """Instants in [since, until) at which RSTREAM emits; None: whenever rows arrive."""
        return None

    def reached_from(self, frontier: int) -> int:
        """The first event time that still matters once all instants before the frontier are over;
        BEFORE_TIME where that cannot be told."""
        return BEFORE_TIME

    @abstractmethod
    def content(self, rows: Sequence[R], instant: int) -> list[R]:
        """The reference meaning: which rows are in the window at an instant, of the rows of one
        partition that have arrived by then, in stream order. Independent of lifetimes."""

    @abstractmethod
    def changes(self, ts: int) -> Iterator[int]:
        """For the reference: instants at which a row may appear, or vanish by time."""


class TimeWindow(WindowSpec):
    """Lifetimes follow from a row's own event time, and both ends are monotone in it: the rows
    alive at an instant are a range of event times."""

    __slots__ = ()

    @property
    def since(self) -> int | None:
        """Rows before this never enter."""
        return None

    @property
    def until(self) -> int | None:
        """Rows after this never enter."""
        return None

    @property
    def grows(self) -> bool:
        return self.is_endless and self.until is None

    @property
    def has_empty_lifetimes(self) -> bool:
        """Whether some rows are never in the window."""
        return False

    def emptied(self, last: int) -> int:
        if self.is_endless:
            return self.settled(last)
        return int(self.ends(np.array([last]))[0])

    @abstractmethod
    def starts(self, ts: Ints) -> Ints: ...

    @abstractmethod
    def ends(self, ts: Ints) -> Ints:
        """The first instants at which the rows are no longer there."""

    @abstractmethod
    def latest_started(self, instant: Ints) -> Ints:
        """The largest event times whose rows have started by the instants."""

    @abstractmethod
    def earliest_alive(self, instant: Ints) -> Ints:
        """The smallest event times whose rows have not ended by the instants."""

    def complete_at(self, since: int) -> int | None:
        """When the content is complete if rows are known from `since` on; None: cannot be told."""
        return None

    def reached_from(self, frontier: int) -> int:
        if frontier == BEFORE_TIME:
            return BEFORE_TIME
        return int(self.earliest_alive(_one(frontier - 1))[0])

    def starting_between(self, since: int, until: int) -> tuple[int, int]:
        """Event times [low, high) whose rows start at instants in [since, until)."""
        low = BEFORE_TIME
        if since > BEFORE_TIME:
            low = int(self.latest_started(_one(since - 1))[0]) + 1
        if self.since is not None:
            low = max(low, self.since)
        return low, int(self.latest_started(_one(until - 1))[0]) + 1

    def ending_between(self, since: int, until: int) -> tuple[int, int]:
        """Event times [low, high) whose rows end at instants in [since, until)."""
        if self.is_endless:
            return 0, 0
        low = BEFORE_TIME
        if since > BEFORE_TIME:
            low = int(self.earliest_alive(_one(since - 1))[0])
        return low, int(self.earliest_alive(_one(until - 1))[0])

    def complete_from(self, instant: int) -> int | None:
        return self.alive_at(instant)[0]

    def alive_at(self, instant: int) -> tuple[int, int]:
        """Event times [low, high) whose rows are there at an instant."""
        at = _one(instant)
        return int(self.earliest_alive(at)[0]), int(self.latest_started(at)[0]) + 1


class OrderedWindow(WindowSpec):
    """Lifetimes that later rows decide. The content is kept as state, by this query or by a store
    that several queries share: `name` is part of the store's key, and is written to disk."""

    __slots__ = ()
    is_ordered = True
    name: ClassVar[str] = ""

    @property
    def expires(self) -> bool:
        return False

    @abstractmethod
    def lifetimes(self, partition: Ints, ts: Ints, until: int) -> tuple[Ints, Ints]:
        """Starts and ends, of rows sorted by partition (numbered) and stream order; what is not
        known from rows before `until` is AFTER_TIME or later."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How far it reaches back, comparable among windows of one name and partition."""

    @abstractmethod
    def reaching(self, reach: int) -> Self:
        """The same window with another reach: its content includes that of all shorter ones."""

    def is_full(self, rows: int) -> bool:
        """Whether, holding so many rows, it needs nothing that came before."""
        return False


def _one(instant: int) -> Ints:
    return np.array([instant], np.int64)


Expression = Any
"""An expression as parsed: windows pass it on, and never look inside."""


class WindowCursor(Protocol):
    """The parser, behind the opening bracket."""

    def word(self, *texts: str) -> bool: ...
    def need(self, *texts: str) -> None: ...
    def duration(self) -> int: ...
    def integer(self, what: str) -> int: ...
    def expression_(self) -> Expression: ...


class WindowBinder(Protocol):
    """The binder, at one source of FROM."""

    def instant(self, written: Expression) -> int:
        """A point in time."""
        ...

    def columns(self, written: Sequence[Expression]) -> tuple[str, ...]:
        """Columns of the source, for PARTITION BY."""
        ...

    def grouped(self) -> tuple[Expression, ...]:
        """What GROUP BY names of this source."""
        ...

    def fail(self, error: ThalwegError) -> NoReturn: ...


class WindowWriter(Protocol):
    """Query text in the making."""

    def duration(self, micros: int) -> str: ...
    def expression(self, written: Expression) -> str: ...
    def listed(self, written: Sequence[Expression]) -> str: ...
    def name(self, plain: str) -> str: ...


class WindowClause(Protocol):
    """A window as parsed: a frozen dataclass."""

    def bind(self, binder: WindowBinder) -> WindowSpec: ...
    def text(self, writer: WindowWriter) -> str: ...


def partition_text(writer: WindowWriter, by: Sequence[Expression]) -> str:
    return f"PARTITION BY {writer.listed(by)} " if by else ""


def named_partition(by: Sequence[str]) -> str:
    return f"PARTITION BY {', '.join(by)} " if by else ""


@dataclass(frozen=True, slots=True)
class WindowKind:
    """How a kind enters the language: its grammar for messages, its parser (None: not this kind,
    and nothing consumed), and examples of its text for the tests that all kinds share. Kinds that
    take PARTITION BY are asked after it, with its columns."""

    grammar: str
    parse: Callable[[WindowCursor, tuple[Expression, ...]], WindowClause | None]
    examples: tuple[str, ...]
    takes_partition: bool = False
