"""What a commit has written, by name: a read-only view of a manifest's JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thalweg.instants import BEFORE_TIME
from thalweg.runtime.state.output_keys import keys_of, last_epoch_of
from thalweg.runtime.state.query_state import Described
from thalweg.store.manifest import State
from thalweg.store.packs import PackMeta


@dataclass(slots=True)
class CommittedQuery:
    """A query as it is committed. It is not read into values: answers ask for little of it, and
    often."""

    json: Mapping[str, Any]
    frontier: int
    behind: bool

    @property
    def mode(self) -> str:
        mode: str = self.json.get("mode", "")
        return mode

    @property
    def condition(self) -> str:
        return str(self.json.get("condition", ""))

    @property
    def pending(self) -> Sequence[Described]:
        return tuple(self.json.get("pending", ()))

    @property
    def base(self) -> Sequence[Described]:
        return tuple(self.json.get("base", ()))

    def packs_in(self, slot: str) -> list[str]:
        """The packs of a slot of its state, oldest first."""
        return [pack[0][0] for pack in self.json.get("slots", {}).get(slot, ())]

    @property
    def ended(self) -> int | None:
        """The first instant after its data, if a final run has let time go on beyond it."""
        return self.json.get("ended")

    @property
    def base_until(self) -> int:
        return int(self.json.get("base_until", BEFORE_TIME))


@dataclass(slots=True)
class CommittedState:
    """Queries that were asked for are remembered: the same few are invoked again and again."""

    json: State
    _queries: dict[str, CommittedQuery | None] = field(default_factory=dict)

    @property
    def epoch(self) -> int:
        return int(self.json["epoch"])

    def query(self, name: str) -> CommittedQuery | None:
        """A query, dormant or not; one that is has the frontier of its leader."""
        if name not in self._queries:
            self._queries[name] = self._query(name)
        return self._queries[name]

    def _query(self, name: str) -> CommittedQuery | None:
        own = self.json.get("dormant", {}).get(name)
        if own is not None:
            leader = self.json["queries"][self.json["leaders"][own["dormant_group"]]]
            return CommittedQuery(own, leader["frontier"], False)
        found = self.json.get("queries", {}).get(name)
        return None if found is None else CommittedQuery(found, found["frontier"], found["behind"])

    def output(self, owner: str, after: int = 0) -> list[list[PackMeta]]:
        """Output of an owner, in the order of epochs; packs in which some is of an epoch after
        that one."""
        outputs = self.json.get("outputs", {})
        keys = keys_of(outputs, owner)
        return [metas(outputs[key]) for key in keys if last_epoch_of(key) > after]

    def table(self, name: str) -> list[PackMeta]:
        return metas(self.json["tables"][name])

    def stream_packs(self, name: str) -> list[PackMeta]:
        return metas(self.json["streams"][name]["packs"])

    def kept_since(self, stream: str) -> int:
        """Rows of a stream from this instant on are all there."""
        return int(self.json["streams"][stream]["kept_since"])

    def rejects_of_stream(self, name: str) -> list[PackMeta]:
        return self._rejects("streams", name)

    def rejects_of_query(self, name: str) -> list[PackMeta]:
        return self._rejects("queries", name)

    def _rejects(self, kind: str, name: str) -> list[PackMeta]:
        found: Mapping[str, Any] = self.json.get(kind, {}).get(name, {})
        return metas(found.get("rejects", ()))


def metas(packs: Iterable[list[Any]]) -> list[PackMeta]:
    return [PackMeta.from_json(p) for p in packs]
