"""A pipeline in stages: what is joined after each stage is the change of some subresult."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.columns.frame import Changes
from thalweg.plan.pipeline import Pipeline, Probe, Subresult
from thalweg.plan.relations.block import Block


@dataclass(frozen=True, slots=True)
class Stage:
    """Probes, and the subresults that are told of the tuples left after them."""

    probes: tuple[Probe, ...]
    taps: tuple[int, ...]


def stages(block: Block, pipeline: Pipeline, tapped: bool) -> list[Stage]:
    taps: dict[int, list[int]] = {}
    if tapped:
        for number, subresult in enumerate(block.subresults):
            if pipeline.leaf in subresult.members and not _kept_up(subresult, pipeline.leaf):
                place = _joined_after(block, pipeline, set(subresult.members))
                taps.setdefault(place, []).append(number)
    cuts = sorted({*taps, len(pipeline.probes)})
    return [
        Stage(pipeline.probes[a:b], tuple(taps.get(b, ())))
        for a, b in zip([0, *cuts], cuts, strict=False)
    ]


def _kept_up(subresult: Subresult, leaf: int) -> bool:
    return any(p.leaf == leaf for p in subresult.upkeep)


def _joined_after(block: Block, pipeline: Pipeline, members: set[int]) -> int:
    """The number of probes after which exactly these leaves are joined."""
    joined = {pipeline.leaf}
    for place, probe in enumerate(pipeline.probes, 1):
        joined |= set(leaves_of(block, probe))
        if joined == members:
            return place
    raise AssertionError("a subresult whose members are not joined first")


def leaves_of(block: Block, probe: Probe) -> tuple[int, ...]:
    if probe.leaf < len(block.leaves):
        return (probe.leaf,)
    return block.subresults[probe.leaf - len(block.leaves)].members


@dataclass(slots=True)
class Flow:
    """Rows partway through a pipeline: the present tuples and the stages ahead."""

    pipeline: Pipeline
    ahead: list[Stage]
    changes: Changes
    done: list[Probe] = field(default_factory=list)
    tapped: dict[int, Changes] = field(default_factory=dict)

    def at_hand(self, block: Block) -> list[int]:
        """Leaves that are joined already."""
        return [self.pipeline.leaf, *(i for p in self.done for i in leaves_of(block, p))]

    def finish(self, stage: Stage) -> None:
        self.ahead.pop(0)
        self.done += stage.probes
        for number in stage.taps:
            self.tapped[number] = self.changes
