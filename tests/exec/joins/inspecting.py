"""Looks into subresults after every epoch: do they hold what the definition says?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from thalweg.exec.joins.cache.cache_reader import SubresultReader, key_hashes
from thalweg.exec.joins.nway_join import Joined
from thalweg.plan.joins.join_caches import _Builder
from thalweg.plan.pipeline import Pipeline
from thalweg.plan.relations.block import Block


def entries(reader: SubresultReader) -> dict[int, Counter[tuple[Any, ...]]]:
    """Per present key hash its combinations that are there at the end of the epoch, as values."""
    kept, block = reader.kept, reader.block
    found: dict[int, Counter[tuple[Any, ...]]] = {
        int(h): Counter() for h, s in zip(kept._keys, kept._stamps, strict=True) if s
    }
    names = [f.name for i in reader.subresult.members for f in block.leaves[i].untracked]
    for part in kept.parts:
        rows = np.flatnonzero(part.ends > kept.until - 1)
        rows = rows[kept.valid(part, rows)]
        columns: dict[str, list[Any]] = {}
        for i in reader.subresult.members:
            leaf = reader.leaves[i]
            frame = leaf.at(leaf.after(part.references[i][rows]), frozenset(names))
            columns |= {n: v.to_arrow().to_pylist() for n, v in frame.columns.items()}
        for at, row in enumerate(rows):
            key = int(part.hashes[row])
            if kept.subresult.whole:
                found.setdefault(key, Counter())
            found[key][tuple(columns[n][at] for n in names)] += 1
    return found


class Inspector:
    """Checks after every epoch that entries hold what a fresh fill would find."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checked = self.empty = 0
        usual = Joined.settle

        def settle(joined: Joined) -> None:
            usual(joined)
            for reader in joined._readers:
                self.check(joined, reader)

        monkeypatch.setattr(Joined, "settle", settle)

    def check(self, joined: Joined, reader: SubresultReader) -> None:
        block, subresult = joined.block, reader.subresult
        members = [block.leaves[i] for i in subresult.members]
        names = [f.name for leaf in members for f in leaf.untracked]
        truth = self.truth(joined, reader, names)
        for key, found in entries(reader).items():
            assert found == truth.get(key, Counter()), (subresult.alias, key)
            self.checked += 1
            self.empty += not found
        if subresult.whole:
            assert set(entries(reader)) == set(truth)

    def truth(
        self, joined: Joined, reader: SubresultReader, names: list[str]
    ) -> dict[int, Counter[tuple[Any, ...]]]:
        """The join of the members at the epoch's last instant, computed anew."""
        subresult, at = reader.subresult, joined.ctx.until - 1
        rows = reader.leaves[min(subresult.members)].standing(at)
        wanted = frozenset(names) | frozenset(subresult.key)
        found = joined._filled(joining(joined.block, subresult.members), rows, wanted)
        if not len(found):
            return {}
        hashes, _ = key_hashes(found.frame, subresult.key)
        values = [found.frame.columns[n].to_arrow().to_pylist() for n in names]
        truth: dict[int, Counter[tuple[Any, ...]]] = {}
        for i, key in enumerate(hashes):
            truth.setdefault(int(key), Counter())[tuple(v[i] for v in values)] += 1
        return truth


def joining(block: Block, members: tuple[int, ...]) -> Pipeline:
    """The pipeline that joins some leaves from the rows of the first."""
    return _Builder(block, [None] * len(block.leaves))._fill(set(members), [])
