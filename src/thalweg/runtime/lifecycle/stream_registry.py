"""Streams that are known by name."""

from __future__ import annotations

from dataclasses import replace

from thalweg.errors import ConfigError, DuplicateName, UnknownName, did_you_mean
from thalweg.plan.catalog import REJECTS, SYSSTREAM, Catalog, StreamDef
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
        stream = replace(stream, behind=self._others(stream))
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

    def _others(self, stream: StreamDef) -> tuple[tuple[str, int], ...]:
        """The streams that it is declared BEHIND, by their names as they are written there."""
        found = []
        for name, most in stream.behind:
            if name.lower() == stream.name.lower():
                raise ConfigError(
                    f"stream {stream.name} cannot be BEHIND itself",
                    remedy="how far its own rows are out of order is its LATENESS",
                )
            other = self._catalog.relation(name)
            if other is None:
                streams = self._catalog.streams
                raise UnknownName(f"unknown stream {name}", remedy=did_you_mean(name, streams))
            if not isinstance(other, StreamDef) or not self._is_read(other):
                raise ConfigError(
                    f"{other.name} is not a stream whose rows arrive from a source",
                    remedy="BEHIND names a stream that was created before",
                )
            found.append((other.name, most))
        return tuple(found)

    def _is_read(self, stream: StreamDef) -> bool:
        engines = stream.name == SYSSTREAM or stream.name.endswith(REJECTS)
        return not engines and stream.source.kind != "view"

    def forget(self, name: str) -> None:
        """Nothing is known of a stream any more."""
        self.restored.pop(name, None)
        for kind in (STREAM, SOURCE):
            self._definitions.pop(kind, name)
