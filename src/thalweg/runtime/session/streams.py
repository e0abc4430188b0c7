"""Streams that are known by name: resumed with where their rows come from, and dropped."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.plan.catalog import REJECTS, SYSSTREAM, Catalog
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog
from thalweg.runtime.lifecycle.stream_registry import StreamRegistry
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.stream_definitions import SOURCE, read_source, read_stream


class Droppable(Protocol):
    """What reads the source of a stream."""

    def drop_stream(self, name: str) -> None: ...


class Streams:
    """Resumes and drops streams, between two epochs."""

    def __init__(
        self,
        catalog: Catalog,
        state: EngineState,
        definitions: Definitions,
        registry: StreamRegistry,
        queries: QueryCatalog,
        files: PendingFiles,
        sources: Droppable,
    ) -> None:
        self._catalog = catalog
        self._state = state
        self._definitions = definitions
        self._registry = registry
        self._queries = queries
        self._files = files
        self._sources = sources

    def resume_from(self, name: str, text: str) -> None:
        """Know a stream of an earlier run by its definition, if that says where its rows come
        from; what Python hands over has to be handed over again."""
        stream, source = read_stream(text), self._definitions.get(SOURCE, name)
        if stream is not None and source is not None:
            self._registry.restore(replace(stream, source=read_source(source)))

    def drop(self, name: str) -> None:
        known = self._catalog.relation(name)
        name = name if known is None else known.name
        self._refuse(name)
        for read in (name, f"{name}{REJECTS}"):
            self._queries.refuse_while_read(read, "dropped")
        self._state.dropped[name] = self._state.next_seq
        self._sources.drop_stream(name)
        self._registry.forget(name)
        for kept in (name, f"{name}{REJECTS}"):
            self._catalog.streams.pop(kept, None)
            stream = self._state.streams.pop(kept, None)
            if stream is not None:
                self._files.drop(p.name for p in stream.packs)
                self._files.drop(p[0] for p in stream.rejects)

    def _refuse(self, name: str) -> None:
        streams = self._catalog.streams
        if name == SYSSTREAM or name.endswith(REJECTS):
            raise ConfigError(
                f"{name} belongs to the engine and cannot be dropped",
                remedy="it goes when nothing reads it",
            )
        if name not in streams:
            raise UnknownName(f"unknown stream {name}", remedy=did_you_mean(name, streams))
        if streams[name].source.kind == "view":
            raise ConfigError(f"{name} is a view", remedy=f"say DROP VIEW {name}")
        behind = [s.name for s in streams.values() if name in dict(s.behind)]
        if behind:
            raise ConfigError(
                f"stream {behind[0]} is declared BEHIND {name}", remedy=f"drop {behind[0]} first"
            )
