"""The joins of a block's leaves: pipelines of probes, and results kept between them."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.plan.expr import Predicate
from thalweg.plan.logical import OuterKind, Schema


@dataclass(frozen=True, slots=True)
class Check:
    """How drop probing looks a leaf up: by columns of one leaf, the one it depends on. `is_all`
    says that these are all its keys; otherwise the others are tested when results are
    enumerated."""

    parent: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    is_all: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """One step of a pipeline: look up rows of `leaf` whose `target` equals `source`.

    `verify` repeats the equality where the hash alone does not imply it (`exact` says that it does,
    for keys without NULLs). `residual` are predicates that can be evaluated here. With `outer` rows
    without a match are passed on beside NULLs (LEFT), or only they are, or only the others. Without
    a `check` a leaf is not probed before results are enumerated.
    """

    leaf: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    exact: bool
    verify: tuple[Predicate, ...] = ()
    residual: tuple[Predicate, ...] = ()
    outer: OuterKind | None = None
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The path of a change of one leaf. `order` are the other leaves as they are joined, also where
    a probe meets several of them at once in a subresult."""

    leaf: int
    probes: tuple[Probe, ...]
    order: tuple[int, ...] = ()

    @property
    def branches(self) -> bool:
        """Whether several leaves depend on one leaf, so that rows can be dropped by one before they
        meet the others."""
        parents = [p.check.parent for p in self.probes if p.check is not None]
        return len(set(parents)) < len(parents)


@dataclass(frozen=True, slots=True)
class Subresult:
    """The join of some leaves, kept so that others need not compute it again.

    It is looked up by the `key` columns of its members. As a cache (not `whole`) it has some keys
    and adds others by `fill`, a pipeline that starts from a key instead of a row; `buckets` keys at
    most, and no more than `limit` bytes. A whole one, as in a tree of binary joins, has all. Where
    the pipeline of a member joins just the other members first, changes are taken from there; for
    the other members `upkeep` has pipelines of its own.
    """

    members: tuple[int, ...]
    key: tuple[str, ...]
    fields: Schema
    fill: Pipeline
    whole: bool = False
    buckets: int = 0
    limit: int = 0
    upkeep: tuple[Pipeline, ...] = ()

    @property
    def alias(self) -> str:
        names = dict.fromkeys(f.name.split(".", 1)[0] for f in self.fields)
        return "⋈".join(names)

    @property
    def is_standing(self) -> bool:
        return False

    def full(self, name: str) -> str:
        return name
