"""Statistics of tables held in memory, up to a total size: those used longest ago leave first."""

from __future__ import annotations

from cachetools import LRUCache

from thalweg.estimate.cached.table_statistics import TableStatistics


class StatisticsCache:
    """Table statistics by the name of their relation, at most `limit_bytes` of them together."""

    def __init__(self, limit_bytes: int) -> None:
        self._kept: LRUCache[str, TableStatistics] = LRUCache(limit_bytes, lambda s: s.nbytes)

    def put(self, relation: str, statistics: TableStatistics) -> bool:
        """Replaces those of the relation; False if they alone are larger than the limit."""
        self._kept.pop(relation, None)
        if statistics.nbytes > self._kept.maxsize:
            return False
        self._kept[relation] = statistics
        return True

    def get(self, relation: str, version: str | None) -> TableStatistics | None:
        """Those made from this version of the relation; those of another one are dropped, as they
        guarantee nothing of it."""
        found = self._kept.get(relation)
        if found is None or found.version == version:
            return found
        del self._kept[relation]
        return None

    def drop(self, relation: str) -> None:
        self._kept.pop(relation, None)

    @property
    def nbytes(self) -> int:
        return int(self._kept.currsize)

    def __contains__(self, relation: str) -> bool:
        return relation in self._kept
