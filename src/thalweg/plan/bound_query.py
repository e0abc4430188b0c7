"""A bound query: its logical plan and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.plan.logical import Emit, Scan, Schema, scans

SHARE = "auto"


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """WITH (...) of a query. Options change how a query runs, never its answer, except `history`,
    which says how much of the past the query reads. `profile` is the share of rows on which all
    predicates of a conjunction are evaluated. With `materialize` a query gives an answer only when
    it is invoked. A query that only filters a stream may be run together with others of the kind:
    `share` is on, off, or auto, which is when there are many. The past is pushed through a query in
    slices or pulled at once (`backfill`). `fit` is how FIT fits; with `release` eager, predictions
    are put out as they are made. A join of more than `max_rows` rows is refused when the query is
    registered, as far as that can be known then."""

    filters: str = "auto"
    joins: str = "auto"
    materialize: str | None = None
    constraints: str = "exact"
    history: str | None = None
    unbounded: bool = False
    state_limit: int | None = None
    profile: float | None = None
    share: str = SHARE
    backfill: str = "auto"
    fit: str = "auto"
    release: str = "watermark"
    max_rows: int | None = None


ALLOWED_OPTIONS: dict[str, tuple[Any, ...] | type] = {
    "filters": ("auto", "a-greedy", "sweep", "independent", "local-swaps", "fixed"),
    "joins": ("auto", "mjoin", "xjoin", "cached"),
    "materialize": ("auto", "none", "p", "c"),
    "constraints": ("exact", "adaptive", "off"),
    "history": ("replay", "seed", "none"),
    "unbounded": bool,
    "state_limit": int,
    "profile": float,
    "share": ("auto", "on", "off"),
    "backfill": ("auto", "push", "pull"),
    "fit": ("auto", "mid-range", "swing", "hull", "least squares"),
    "release": ("watermark", "eager"),
    "max_rows": int,
}


LIVE_OPTIONS = ("filters", "joins", "materialize", "state_limit", "profile", "share")
"""Options that ALTER QUERY may set."""


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """INTO: `files`, `changelog`, `table` (a path), `spark` (a format) or `console`."""

    kind: str
    target: str = ""
    format: str | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        target = f" '{self.target}'" if self.target else ""
        form = f" FORMAT {self.format}" if self.format else ""
        return f"{self.kind.upper()}{target}{form}"


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A continuous query with every name, type and window resolved."""

    root: Emit
    options: QueryOptions
    text: str
    sink: SinkSpec | None = None

    @property
    def schema(self) -> Schema:
        return self.root.schema

    @property
    def scans(self) -> tuple[Scan, ...]:
        return scans(self.root)

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams read, each once, in FROM order."""
        return tuple(dict.fromkeys(s.relation for s in self.scans if not s.is_table))
