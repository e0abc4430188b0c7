"""Streams that are known by name."""

from __future__ import annotations

from thalweg.errors import DuplicateName
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.stream_definitions import (
    RESUMED,
    SOURCE,
    STREAM,
    described,
    described_before,
    described_source,
)


class StreamRegistry:
    """Definitions outlive the process: a different one on the same path is refused. Those in
    `restored` are of an earlier run and have not been given again: they may say another source."""

    def __init__(self, catalog: Catalog, definitions: Definitions) -> None:
        self._catalog = catalog
        self._definitions = definitions
        self.restored: dict[str, StreamDef] = {}

    def restore(self, stream: StreamDef) -> None:
        """Know a stream of an earlier run."""
        self.restored[stream.name] = self._catalog.streams[stream.name] = stream

    def define(self, stream: StreamDef) -> StreamDef:
        """Add a stream, or attach to the same one defined before."""
        known = self._catalog.relation(stream.name)
        if known is not None and known != stream and stream.name not in self.restored:
            raise DuplicateName(
                f"{stream.name} is already defined differently",
                remedy="use another name, or the same definition",
            )
        kept = self._definitions.get(STREAM, stream.name)
        if kept not in (None, described(stream), described_before(stream)):
            raise DuplicateName(
                f"this path knows another definition of stream {stream.name}",
                remedy="use the same definition, another name or another path",
            )
        self._definitions.put(STREAM, stream.name, described(stream))
        self._definitions.pop(SOURCE, stream.name)
        if stream.source.kind in RESUMED:
            self._definitions.put(SOURCE, stream.name, described_source(stream.source))
        self.restored.pop(stream.name, None)
        self._catalog.streams[stream.name] = stream
        return stream

    def forget(self, name: str) -> None:
        """Nothing is known of a stream any more."""
        self.restored.pop(name, None)
        for kind in (STREAM, SOURCE):
            self._definitions.pop(kind, name)
