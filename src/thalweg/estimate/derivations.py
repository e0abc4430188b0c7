"""Bounds of all connected sub-joins by ordered derivations, as a dynamic programme over tensors.

A derivation starts with the rows of one input and adds inputs one at a time, each with its degree
on attributes that are covered already: every input has a term, so bags are bounded, too.

    C[{r}] = counts of r
    C[S]   = elementwise min over r in S with S - r connected of
             contract(C[S - r], D_r), summing out all but the attributes used outside S
    D_r    = elementwise min over attributes a shared with S - r of degrees_r[a],
             and of repeats_r where S - r has all attributes of r

For two inputs there is one more way, a valid inequality of LpBound per bucket (Cauchy-Schwarz):
|R join S on y| <= ||deg_R(y)||_2 * ||deg_S(y)||_2.

Degrees always are those of base inputs; sub-joins keep counts only. All numbers are whole, so sums
below 2^53 are exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from thalweg.estimate.contraction import Contractions, Tensor, minimum
from thalweg.estimate.hypergraph import Hypergraph, members
from thalweg.estimate.rounding import SLACK
from thalweg.estimate.sketch.bound_sketch import BoundSketch

Buckets = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class InputTensors:
    """The statistics of one input over the buckets of its join attributes."""

    counts: Tensor
    degrees: Mapping[str, Tensor]
    repeats: Tensor | None = None
    norms: Mapping[str, Tensor] | None = None

    @staticmethod
    def of(sketch: BoundSketch) -> InputTensors:
        def tensor(values: np.ndarray) -> Tensor:
            return Tensor(sketch.attributes, sketch.dense(values))

        degrees = zip(sketch.attributes, sketch.degrees, strict=True)
        norms = None
        if sketch.squares is not None:
            squares = zip(sketch.attributes, sketch.squares, strict=True)
            norms = {a: tensor(np.sqrt(s)) for a, s in squares}
        return InputTensors(
            tensor(sketch.counts), {a: tensor(d) for a, d in degrees},
            None if sketch.repeats is None else tensor(sketch.repeats), norms,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Derived:
    """The bound of a sub-join as a double, and the formula of the derivation that is lowest in
    all; per bucket others may be lower still."""

    total: float
    formula: str


@dataclass(slots=True)
class Derivations:
    """The dynamic programme for some sets of inputs of a hypergraph, smaller sets first; what to
    combine is found once, however many allocations of buckets are tried."""

    graph: Hypergraph
    sets: Sequence[int]
    _steps: list[tuple[int, int, int, tuple[str, ...], tuple[str, ...]]] = field(init=False)

    def __post_init__(self) -> None:
        known = set(self.sets)
        self._steps = []
        for inputs in self.sets:
            for one in members(inputs):
                rest = inputs & ~(1 << one)
                joined = self.graph.shared(one, rest)
                if rest in known and joined:
                    keep = self.graph.necessary(inputs)
                    self._steps.append((inputs, one, rest, joined, keep))

    def bounds(
        self, inputs: Sequence[InputTensors], contractions: Contractions | None = None
    ) -> dict[int, Derived]:
        """A bound of each set."""
        run = contractions or Contractions()
        counts = {1 << i: one.counts for i, one in enumerate(inputs)}
        found = {
            s: Derived(t.total, f"c_{self.graph.names[s.bit_length() - 1]}")
            for s, t in counts.items()
        }
        for step in self._steps:
            whole, one, rest, joined, keep = step
            added, word = self._added(inputs[one], joined, one)
            fresh = run.contract(counts[rest], added, keep)
            self._note(counts, found, whole, fresh, f"{found[rest].formula}·{word}")
            if whole.bit_count() == 2 and one == whole.bit_length() - 1:
                self._by_norms(inputs, step, run, counts, found)
        return found

    def _added(self, one: InputTensors, joined: tuple[str, ...], number: int) -> tuple[Tensor, str]:
        name = self.graph.names[number]
        if one.repeats is not None and len(joined) == len(self.graph.edges[number]):
            if len(joined) == 1:
                return one.degrees[joined[0]], f"d_{name}^{joined[0]}"
            return one.repeats, f"d_{name}^({', '.join(joined)})"
        if len(joined) == 1:
            return one.degrees[joined[0]], f"d_{name}^{joined[0]}"
        lowest = one.degrees[joined[0]]
        for a in joined[1:]:
            lowest = minimum(lowest, one.degrees[a])
        degrees = ", ".join(f"d_{name}^{a}" for a in joined)
        return lowest, f"min({degrees})"

    def _by_norms(
        self,
        inputs: Sequence[InputTensors],
        step: tuple[int, int, int, tuple[str, ...], tuple[str, ...]],
        run: Contractions,
        counts: dict[int, Tensor],
        found: dict[int, Derived],
    ) -> None:
        whole, one, rest, joined, keep = step
        other = rest.bit_length() - 1
        mine, theirs = inputs[one].norms, inputs[other].norms
        if mine is None or theirs is None:
            return
        for a in joined:
            product = run.contract(theirs[a], mine[a], keep)
            below = Tensor(product.axes, np.floor(product.values * (1 + SLACK)))
            names = self.graph.names[other], self.graph.names[one]
            self._note(counts, found, whole, below, "·".join(f"‖d_{n}^{a}‖₂" for n in names))

    @staticmethod
    def _note(
        counts: dict[int, Tensor],
        found: dict[int, Derived],
        whole: int,
        fresh: Tensor,
        formula: str,
    ) -> None:
        total = fresh.total
        if whole not in counts:
            counts[whole], found[whole] = fresh, Derived(total, formula)
            return
        lowest = minimum(counts[whole], fresh)
        counts[whole] = lowest
        kept = formula if total < found[whole].total else found[whole].formula
        found[whole] = Derived(lowest.total, kept)
