"""The catalog's objects: streams, tables and user functions, as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from thalweg.errors import ConfigError
from thalweg.plan.logical import Field, Schema
from thalweg.plan.types import BIGINT, DOUBLE, STRING, TIMESTAMP, DataType

DEFAULT_IDLE = 10_000_000


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """Where rows are read from: `files`, `spark`, or `frame` (handed over as an object)."""

    kind: str
    target: str = ""
    format: str | None = None
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class StreamDef:
    """A stream. `timestamp` None means arrival time; `unit` is µs per tick of an integer column.

    `idle` None waits for ever. `retain` keeps history for that long beyond what queries need.
    `behind` names other streams and how far (µs) rows may arrive behind theirs at most.
    """

    name: str
    fields: Schema
    timestamp: str | None
    unit: int = 1
    order_by: tuple[str, ...] = ()
    lateness: int = 0
    idle: int | None = DEFAULT_IDLE
    ahead: int | None = None
    key: tuple[str, ...] = ()
    unique: tuple[str, ...] = ()
    retain: int | None = None
    retain_rows: int | None = None
    source: SourceSpec = SourceSpec("frame")
    behind: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    @property
    def is_retained(self) -> bool:
        """Whether rows are kept beyond what queries need."""
        return self.retain is not None or self.retain_rows is not None

    def __post_init__(self) -> None:
        names = {f.name for f in self.fields}
        named = [*self.order_by, *self.key, *self.unique]
        if self.timestamp is not None:
            named.append(self.timestamp)
        missing = [n for n in named if n not in names]
        if missing:
            raise ConfigError(
                f"stream {self.name} has no column {missing[0]}",
                remedy=f"its columns are {', '.join(sorted(names))}",
            )
        if self.timestamp is not None:
            dtype = next(f.type for f in self.fields if f.name == self.timestamp)
            if dtype != TIMESTAMP and not dtype.is_integer:
                raise ConfigError(
                    f"column {self.timestamp} of stream {self.name} is {dtype}, not a time",
                    remedy="use a TIMESTAMP column, or an integer column with UNIT",
                )


def refuse_without_unit(stream: StreamDef, unit: str | None) -> StreamDef:
    """The stream, unless its event time is a number without a unit."""
    types = {f.name: f.type for f in stream.fields}
    if unit is None and stream.timestamp is not None and types[stream.timestamp].is_integer:
        raise ConfigError(
            f"column {stream.timestamp} of stream {stream.name} is {types[stream.timestamp]}: "
            "what does it count?",
            remedy="say UNIT MILLISECONDS (in Python unit='milliseconds'), or another unit, "
            "counted since 1970",
        )
    return stream


REJECTS = ".rejects"


def rejects_of(stream: StreamDef) -> StreamDef:
    """The stream of a stream's rejects: its columns as far as they could be read, and the reason.
    Its event time is the time of the rejection."""
    reason = Field(reason_column([f.name for f in stream.fields]), STRING, False)
    fields = tuple(replace(f, nullable=True) for f in stream.fields)
    return StreamDef(f"{stream.name}{REJECTS}", (*fields, reason), None, idle=stream.idle)


SYSSTREAM = "SysStream"


def system_stream() -> StreamDef:
    """The stream of the engine's own metrics; its event time is the clock of the epoch."""
    columns = (
        ("entity", STRING), ("kind", STRING), ("property", STRING), ("value", DOUBLE),
        ("epoch", BIGINT),
    )  # fmt: skip
    return StreamDef(SYSSTREAM, tuple(Field(n, t, False) for n, t in columns), None)


def reason_column(names: Sequence[str]) -> str:
    """A name for the reason column that differs from all columns of the stream."""
    return next(n for n in ("reason", "reject_reason", "rejected_because") if n not in names)


@dataclass(frozen=True, slots=True)
class TableDef:
    """A table; `changes` once it has had more than one version."""

    name: str
    fields: Schema
    source: SourceSpec = SourceSpec("frame")
    changes: bool = False


@dataclass(frozen=True, slots=True)
class ViewDef:
    """A named query that other queries may read; it runs as a part of each of them."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class FunctionDef:
    """Signature of a registered Python function; the code itself is kept by the engine."""

    name: str
    returns: DataType
    arguments: tuple[DataType, ...] | None = None
    deterministic: bool = True
    movable: bool = True
    raises: bool | None = None


Relation = StreamDef | TableDef | ViewDef
T = TypeVar("T")


class Names(dict[str, T], Generic[T]):
    """A dictionary that is also indexed by its keys in lower case."""

    def __init__(self, known: Mapping[str, T] | None = None) -> None:
        super().__init__(known or {})
        self.lowered = {name.lower(): name for name in self}

    def __setitem__(self, name: str, value: T) -> None:
        super().__setitem__(name, value)
        self.lowered[name.lower()] = name

    def setdefault(self, name: str, value: T) -> T:
        if name not in self:
            self[name] = value
        return self[name]

    def pop(self, name: str, default: Any = None) -> Any:
        self.lowered.pop(name.lower(), None)
        return super().pop(name, default)


@dataclass(slots=True)
class Catalog:
    """All names known to one engine; look-ups ignore case."""

    streams: Names[StreamDef] = field(default_factory=lambda: Names())
    tables: Names[TableDef] = field(default_factory=lambda: Names())
    views: Names[ViewDef] = field(default_factory=lambda: Names())
    functions: dict[str, FunctionDef] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for group in ("streams", "tables", "views"):
            given = getattr(self, group)
            if not isinstance(given, Names):
                setattr(self, group, Names(given))

    def relation(self, name: str) -> Relation | None:
        lowered = name.lower()
        if lowered == SYSSTREAM.lower():
            return system_stream()
        if lowered.endswith(REJECTS):
            stream = self.relation(name[: -len(REJECTS)])
            return rejects_of(stream) if isinstance(stream, StreamDef) else None
        for group in (self.streams, self.tables, self.views):
            if lowered in group.lowered:
                return group[group.lowered[lowered]]
        return None

    def stream(self, name: str) -> StreamDef:
        """The stream of this name, which must exist."""
        found = self.relation(name)
        assert isinstance(found, StreamDef), name
        return found

    def relation_names(self) -> list[str]:
        return [*self.streams, *self.tables, *self.views]


@dataclass(slots=True)
class NotedCatalog(Catalog):
    """A catalog that records which names were looked up, and the objects found."""

    asked: dict[str, Relation] = field(default_factory=dict)

    @staticmethod
    def of(catalog: Catalog) -> NotedCatalog:
        return NotedCatalog(catalog.streams, catalog.tables, catalog.views, catalog.functions)

    def relation(self, name: str) -> Relation | None:
        found = Catalog.relation(self, name)
        if found is not None:
            self.asked[found.name] = found
        return found
