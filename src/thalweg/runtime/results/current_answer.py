"""The current answer of a relation: the sum of all its changes.

Changes are kept as output for as long as results are; what is older is folded into a base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.exec.leaves.subrelation import WEIGHT, summed
from thalweg.exec.relations.emit import SIGN
from thalweg.exec.upkeep.gather_output import EPOCH
from thalweg.instants import BEFORE_TIME, format_instant
from thalweg.runtime.state.query_state import Described
from thalweg.store.packs import TIME, PackMeta, fresh_name, write_pack
from thalweg.store.storage import Storage


@dataclass(slots=True)
class Answer:
    """Rows with weights; `columns` are the answer's own, without time and sign."""

    schema: pa.Schema
    weighted: pa.Table = field(init=False)

    def __post_init__(self) -> None:
        fields = [self.schema.field(n) for n in self.schema.names if n not in (TIME, SIGN)]
        self.schema = pa.schema(fields)
        self.weighted = pa.schema([*fields, pa.field(WEIGHT, pa.int64())]).empty_table()

    def apply(self, changes: pa.Table) -> None:
        """Changes with signs, as a query emits them."""
        self.add(summed(weighted(changes).combine_chunks(), self.schema.names))

    def add(self, rows: pa.Table) -> None:
        """Rows with weights, each of them once."""
        rows = rows.select(self.weighted.column_names)
        if rows.schema != self.weighted.schema:
            rows = rows.cast(self.weighted.schema)
        if self.weighted.num_rows:
            both = pa.concat_tables([self.weighted, rows]).combine_chunks()
            rows = summed(both, self.schema.names)
        self.weighted = rows

    def rows(self) -> pa.Table:
        """The answer as plain rows, as often as each is there."""
        weight = self.weighted.column(WEIGHT).to_numpy()
        if (weight == 1).all():
            return self.weighted.select(self.schema.names)
        picked = np.repeat(np.arange(len(weight)), np.maximum(weight, 0))
        return self.weighted.select(self.schema.names).take(pa.array(picked))


def instant_asked(name: str, now: int, at: int | None) -> int:
    """The instant an answer is for; `now` is the last one that is over."""
    if at is not None and at > now:
        raise ConfigError(
            f"{name} knows nothing of {format_instant(at)} yet",
            remedy=f"ask for {format_instant(now)} or earlier"
            if now > BEFORE_TIME
            else "no instant is over yet: ask when rows have come",
        )
    return now if at is None else at


def weighted(changes: pa.Table) -> pa.Table:
    """Signed changes as rows with weights."""
    weights = changes.column(SIGN).cast(pa.int64())
    names = [n for n in changes.column_names if n not in (TIME, SIGN, EPOCH)]
    return changes.select(names).append_column(WEIGHT, weights)


def base_until(known: int, packs: Sequence[Described]) -> int:
    """The instant up to which changes are in a base, once these packs are."""
    return max([known, BEFORE_TIME, *(PackMeta.from_json(p).max_ts for p in packs)])


def add_to(
    base: Sequence[Described],
    packs: Sequence[Described],
    columns: Sequence[str],
    storage: Storage,
    prefix: str,
) -> tuple[Described, ...]:
    """A base and further changes as one base."""
    tables = [storage.read_table(p[0]).drop_columns([TIME]) for p in base]
    tables += [weighted(storage.read_table(p[0])) for p in packs]
    whole = summed(pa.concat_tables(tables).combine_chunks(), list(columns))
    stamped = whole.append_column(TIME, pa.array(np.zeros(whole.num_rows, np.int64)))
    return (write_pack(storage, fresh_name(prefix, "base"), stamped).to_json(),)
