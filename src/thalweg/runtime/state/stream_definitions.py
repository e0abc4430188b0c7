"""Definitions of streams as text for the manifest: whoever opens the path knows their columns."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from thalweg.plan.catalog import SourceSpec, StreamDef
from thalweg.plan.logical import Field
from thalweg.plan.types import DataType

STREAM, VIEW = "stream:", "view:"


def described(stream: StreamDef) -> str:
    """Everything but where its rows come from, which may change between runs."""
    return json.dumps(asdict(replace(stream, source=SourceSpec("frame"))), sort_keys=True)


def described_before(stream: StreamDef) -> str:
    """As the first version wrote it."""
    return repr(replace(stream, source=SourceSpec("frame")))


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
