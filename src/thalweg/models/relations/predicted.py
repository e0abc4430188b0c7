"""`release = 'eager'`: when a condition will hold, told as soon as a tuple decides it.

Each tuple that changes what is known of an output key (the keys of all sources that are joined)
brings a row for each span of time ahead in which the condition is to hold. Of several predictions
of a key the newest counts. If nothing is left of one that has not passed, a row without validity
says that it is off.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Changes, Frame, concat_changes, empty_frame
from thalweg.columns.runs import Runs, sort_into_runs
from thalweg.columns.vector import Mask, Vector
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.aggregate.group_state import look_up, state_table
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import AFTER_TIME, BEFORE_TIME, Ints
from thalweg.models.functions.conditions import Condition, holding
from thalweg.models.functions.curve import Curves
from thalweg.models.functions.formulas import Rows
from thalweg.models.relations.endings import Ending, ends_of
from thalweg.models.relations.solved import MAYBE, MAYBE_FIELD, Solve, beginning, parted, unsure
from thalweg.models.spans import Spans, joined, within
from thalweg.plan.logical import Field, Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.plan.types import BOOLEAN, TIMESTAMP

FROM, UNTIL = "valid_from", "valid_until"
VALIDITY = (Field(FROM, TIMESTAMP, True), Field(UNTIL, TIMESTAMP, True))
IN_FORCE = SlotKind("in_force", SlotRule.NEWEST, "how far predictions go")


@dataclass(frozen=True, slots=True)
class Predict(Node):
    """The rows of the input, with the spans of time ahead in which the condition is to hold (None:
    as long as they are there), parted by whether that is `sure`."""

    input: Node
    condition: Condition | None
    curves: Curves
    key: tuple[str, ...]
    endings: tuple[Ending, ...]
    sure: Condition | None = None
    text: str = field(compare=False, default="")

    @property
    def schema(self) -> Schema:
        marks = () if self.sure is None else (MAYBE_FIELD,)
        return (*self.input.schema, *VALIDITY, *marks)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        yield from self.key
        yield from (e.start for e in self.endings)
        if self.condition is not None:
            yield from Solve(self.input, self.condition, self.curves, self.sure).reads()


@dataclass(frozen=True, slots=True)
class Predicted(Relation):
    slots = (IN_FORCE,)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    condition: Condition | None = field()
    curves: Curves = field()
    key: tuple[str, ...] = field()
    endings: tuple[Ending, ...] = field()
    sure: Condition | None = None
    text: str = field(compare=False, default="")
    """The condition as it is written."""

    @property
    def only_grows(self) -> bool:
        return True

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.KEYS, frozenset(self.key)),)

    def explained(self, show: Describer) -> list[str]:
        rows, keys = show.inputs(self.inputs), ", ".join(self.key)
        holds = f"rows of {rows} are there"
        if self.condition is not None:
            holds = f"{self.text or self.condition} will hold for rows of {rows}"
        return [
            f"  predictions of when {holds}, as soon as a row decides it",
            f"    of each {keys} the newest counts; NULL in {FROM} says that it is off",
            *([] if self.sure is None else unsure(self)),
        ]


@lowers(Predict)
def _lower(drafts: Drafts, node: Predict) -> int:
    below = drafts.relation(node.input)
    return drafts.append(
        Predicted(
            (below,),
            node.schema,
            node.condition,
            node.curves,
            node.key,
            node.endings,
            node.sure,
            node.text,
        )
    )


@runs(Predicted)
def run_predicted(step: RelationStep, relation: Predicted) -> Changes:
    (changes,) = step.raw_inputs()
    if not len(changes):
        return Changes(empty_frame(relation.schema), changes.ts, changes.signs)
    keys = [normalized(changes.frame.columns[c]) for c in relation.key]
    runs_ = sort_into_runs(keys, changes.ts)
    run = np.empty(len(changes), np.int64)
    run[runs_.order] = runs_.run
    new = np.flatnonzero(changes.signs > 0)
    appeared = changes.take(new)
    spans, maybe = _ahead(step, relation, appeared)
    reaches = np.full(runs_.runs, BEFORE_TIME)
    np.maximum.at(reaches, run[new][spans.row], spans.end)
    off = _off(step, runs_, reaches)
    withdrawn = changes.take(runs_.order[np.searchsorted(runs_.run, off)])
    withdrawn.signs[:] = 1
    made = appeared.take(spans.row)
    return concat_changes(
        [
            _with_validity(made, spans.start, spans.end, maybe),
            _with_validity(withdrawn, withdrawn.ts, withdrawn.ts, off < 0, valid=False),
        ],
        relation.schema,
    )


def _ahead(step: RelationStep, relation: Predicted, changes: Changes) -> tuple[Spans, Mask]:
    """Spans of rows that appear, from their instants on, and which of them are not sure."""
    until = ends_of(changes.frame, relation.endings)
    if relation.condition is None:
        found = within(changes.ts, until)
        return found, np.zeros(len(found), np.bool_)
    rows = Rows(changes.frame.columns, len(changes), dict(relation.curves), step.ctx.functions)
    since = beginning(rows)
    spans, equations = holding(relation.condition, rows, since, until)
    maybe = np.zeros(len(spans), np.bool_)
    if relation.sure is not None:
        sure, more = holding(relation.sure, rows, since, until)
        equations += more
        both = parted(spans, sure, len(changes))
        maybe = np.repeat([False, True], [len(part) for part in both])
        spans = joined(both)
    step.ctx.counts["equations solved"] += equations
    start = np.maximum(spans.start, changes.ts[spans.row])
    end = np.minimum(spans.end, until[spans.row])
    ahead = np.flatnonzero(start < end)
    return Spans(spans.row, start, end).take(ahead), maybe[ahead]


def _off(step: RelationStep, runs_: Runs, reaches: Ints) -> Ints:
    """The changes of keys that leave nothing of a prediction that had not passed; how far
    predictions go now is stored."""
    loaded = look_up(step.ctx, step.stored(IN_FORCE), runs_, {})
    before = np.empty(runs_.runs, np.int64)
    before[1:] = reaches[:-1]
    before[runs_.heads] = np.where(loaded.rows >= 0, loaded.ints("until"), BEFORE_TIME)
    last = reaches[runs_.last_versions - runs_.groups]
    there = (last > BEFORE_TIME).astype(np.int64)
    step.keep(IN_FORCE, state_table(runs_, there, {"until": last}))
    return np.flatnonzero((reaches == BEFORE_TIME) & (before > runs_.instants))


def _with_validity(
    changes: Changes, start: Ints, end: Ints, maybe: Mask, *, valid: bool = True
) -> Changes:
    known = np.full(len(changes), valid)
    columns = {
        FROM: Vector(TIMESTAMP, start, known),
        UNTIL: Vector(TIMESTAMP, end, known & (end < AFTER_TIME)),
        MAYBE: Vector(BOOLEAN, maybe),
    }
    frame = Frame({**changes.frame.columns, **columns}, len(changes))
    return Changes(frame, changes.ts, changes.signs)
