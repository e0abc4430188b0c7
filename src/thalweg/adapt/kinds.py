"""The kinds of watches, in the order in which their choices are put into the plan: caches depend on
the orders of pipelines."""

from __future__ import annotations

from thalweg.adapt.filters.watch import FILTERS
from thalweg.adapt.joins.caching import CACHES
from thalweg.adapt.joins.pipeline_watch import PIPELINES
from thalweg.adapt.joins.tree_watch import TREES
from thalweg.adapt.watch import WatchKind

WATCH_KINDS: list[WatchKind] = [FILTERS, PIPELINES, TREES, CACHES]
