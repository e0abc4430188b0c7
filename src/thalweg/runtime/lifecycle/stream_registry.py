"""Streams that are known by name."""

from __future__ import annotations

from thalweg.errors import DuplicateName
from thalweg.plan.catalog import Catalog, StreamDef
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.stream_definitions import STREAM, described, described_before


class StreamRegistry:
    """Definitions outlive the process: a different one on the same path is refused."""

    def __init__(self, catalog: Catalog, definitions: Definitions) -> None:
        self._catalog = catalog
        self._definitions = definitions

    def define(self, stream: StreamDef) -> StreamDef:
        """Add a stream, or attach to the same one defined before."""
        known = self._catalog.relation(stream.name)
        if known is not None and known != stream:
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
        self._catalog.streams[stream.name] = stream
        return stream
