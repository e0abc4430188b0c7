"""Definitions of streams and views as text for the manifest."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from thalweg.plan.catalog import SourceSpec, StreamDef, TableDef
from thalweg.plan.logical import Field
from thalweg.plan.types import DataType
from thalweg.secrets import from_json

STREAM, VIEW, TABLE, SOURCE = "STREAM", "VIEW", "TABLE", "SOURCE"
"""Kinds of definitions. Where the rows of a stream come from is a definition of its own: it may
change between runs."""
RESUMED = ("files", "spark")
"""Kinds of sources that a definition says everything about."""


def described(stream: StreamDef) -> str:
    """Everything but where its rows come from, which may change between runs."""
    return json.dumps(asdict(replace(stream, source=SourceSpec("frame"))), sort_keys=True)


def described_source(source: SourceSpec) -> str:
    return json.dumps(asdict(source), sort_keys=True)


def read_source(text: str) -> SourceSpec:
    found: dict[str, Any] = json.loads(text)
    return SourceSpec(options=from_json(found.pop("options")), **found)


def described_table(table: TableDef) -> str:
    """The columns, and where the rows were read from."""
    return json.dumps(asdict(replace(table, changes=False)), sort_keys=True)


def read_table(text: str) -> TableDef:
    found: dict[str, Any] = json.loads(text)
    fields = tuple(_field(f) for f in found["fields"])
    return TableDef(found["name"], fields, read_source(json.dumps(found["source"])))


def described_before(stream: StreamDef) -> str:
    """As the first version wrote it."""
    return repr(replace(stream, source=SourceSpec("frame")))


@dataclass(frozen=True, slots=True)
class KeptView:
    """A view: its text, the names it was made from, and whether it keeps what it emits."""

    text: str
    reads: tuple[str, ...]
    retained: bool = False


def described_view(view: KeptView) -> str:
    kept = {"text": view.text, "reads": sorted(view.reads)}
    return json.dumps({**kept, "retained": True} if view.retained else kept)


def read_view(text: str) -> KeptView:
    found = json.loads(text)
    return KeptView(found["text"], tuple(found["reads"]), bool(found.get("retained")))


def read_stream(text: str) -> StreamDef | None:
    """The stream that a text describes; None for one of the first version."""
    if not text.startswith("{"):
        return None
    found: dict[str, Any] = json.loads(text)
    fields = tuple(_field(f) for f in found.pop("fields"))
    found.pop("source")
    lists = {k: tuple(v) for k, v in found.items() if isinstance(v, list)}
    return StreamDef(fields=fields, **{**found, **lists})


def _field(data: dict[str, Any]) -> Field:
    return Field(data["name"], _type(data["type"]), data["nullable"])


def _type(data: dict[str, Any]) -> DataType:
    element = data["element"]
    return DataType(**{**data, "element": None if element is None else _type(element)})
