"""The naive reference evaluator: a query's output straight from the definition of the language.

A relation at instant τ is computed from scratch, by nested loops, at every instant at which it
can change; nothing is carried from one instant to the next but the previous answer. Nothing here
is shared with the engine except the logical algebra it evaluates.

The predicates of a WHERE are judged together on each row of the joined product, wherever a rewrite
has put them, because that is how errors are defined: false or NULL drops the row even if another
predicate fails; otherwise the first failing one, in text order, rejects it. A row that stays from
one instant to the next is judged, and if need be rejected, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from collections.abc import Sequence as Sequence_
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa

from thalweg.plan.expr import Call, Expr, Literal, Predicate, columns_of
from thalweg.plan.logical import (
    Aggregate,
    Count,
    CountRule,
    Emit,
    EmitKind,
    Filter,
    Join,
    NamedAggregate,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    Scan,
    Sequence,
    Union,
    Window,
)
from thalweg.plan.types import BOOLEAN
from thalweg.plan.values import normal_row, order_key
from thalweg.plan.values import row_order_key as sort_key
from thalweg.testing.aggregates import exact, finish
from thalweg.testing.clock import Clock, scan_below
from thalweg.testing.compare import ResultRow, python_rows
from thalweg.testing.contents import Arrival, content, looked_up
from thalweg.testing.scalar import NO_FUNCTIONS, RowError, evaluate
from thalweg.windows.protocol import WindowSpec
from thalweg.windows.range import UNBOUNDED

Rejection = tuple[str, str]
Version = tuple[int, Sequence_[dict[str, Any]]]
Bag = Counter[tuple[Any, ...]]


@dataclass(frozen=True)
class ReferenceStream:
    """A stream without its late rows: `(ts, {column: value})` in any order, columns as declared."""

    rows: tuple[tuple[int, dict[str, Any]], ...]
    order_by: tuple[str, ...] = ()

    @classmethod
    def from_table(
        cls, table: pa.Table, timestamp: str = "ts", order_by: tuple[str, ...] = ()
    ) -> ReferenceStream:
        return cls(tuple((row[timestamp], row) for row in python_rows(table)), order_by)

    def ordered(self) -> list[tuple[int, dict[str, Any]]]:
        """The rows in stream order: ts, the ORDER BY columns, then content."""
        return sorted(
            self.rows,
            key=lambda r: (r[0], sort_key(r[1][c] for c in self.order_by), sort_key(r[1].values())),
        )


@dataclass
class ReferenceResult:
    """What a query emits; `sign` is -1 only for what vanishes from a relation.

    `fewest` is how many rejections there are at least where rows are told apart only by what the
    expression that fails reads of them: a row is rejected anew only if, by that, there are more of
    its kind than at the instant before.
    """

    emitted: list[ResultRow] = field(default_factory=list)
    rejections: list[tuple[int, str, str]] = field(default_factory=list)
    fewest: Counter[Rejection] = field(default_factory=Counter)
    snapshots: dict[int, Bag] = field(default_factory=dict)

    @property
    def rejected(self) -> Counter[Rejection]:
        """How many rows were rejected, by predicate text or column name, and reason."""
        return Counter((label, reason) for _, label, reason in self.rejections)


def evaluate_query(
    root: Emit,
    streams: Mapping[str, ReferenceStream],
    tables: Mapping[str, Sequence_[dict[str, Any]]],
    functions: Mapping[str, Any] = NO_FUNCTIONS,
    *,
    horizon: int | None = None,
    versions: Mapping[str, Sequence_[Version]] | None = None,
) -> ReferenceResult:
    """Everything the query emits and rejects from its first instant up to the horizon. `versions`
    are later contents of tables, each from an instant on."""
    result = ReferenceResult()
    stamps = {name: [ts for ts, _ in stream.rows] for name, stream in streams.items()}
    clock = Clock.of(root, stamps, horizon)
    if clock is None:
        return result
    evaluator = _Evaluator(streams, tables, functions, clock.start)
    evaluator.versions = dict(versions or {})
    switches = {at for found in evaluator.versions.values() for at, _ in found}
    instants = {*clock.instants(), *(at for at in switches if clock.start < at <= clock.horizon)}
    before: Bag = Counter()
    rejected_before: set[tuple[Hashable, str, str]] = set()
    kinds_before: Counter[tuple[Rejection, Hashable]] = Counter()
    for instant in sorted(instants):
        evaluator.rejected = set()
        rows = evaluator.relation(root.input, instant)
        now = Counter(normal_row(row.values.values()) for row in rows)
        result.snapshots[instant] = now
        emits = root.kind is EmitKind.RSTREAM and evaluator.is_due(root.input, instant)
        result.emitted += _emit(root, instant, before, now, emits)
        fresh = sorted(evaluator.rejected - rejected_before, key=lambda r: (r[1:], repr(r[0])))
        result.rejections += [(instant, label, reason) for _, label, reason in fresh]
        kinds = Counter(((r[1], r[2]), evaluator.read.get(r, r[0])) for r in evaluator.rejected)
        for (rejection, _), count in (kinds - kinds_before).items():
            result.fewest[rejection] += count
        before, rejected_before, kinds_before = now, evaluator.rejected, kinds
    return result


def _emit(root: Emit, instant: int, before: Bag, now: Bag, emitting: bool) -> Iterator[ResultRow]:
    kind = root.kind
    signed: list[tuple[int, Bag]] = []
    if kind is EmitKind.RSTREAM:
        rows = _sorted(root, now) if emitting else []
        yield from ((instant, 1, values) for values in rows)
    elif kind is EmitKind.ISTREAM:
        signed = [(1, now - before)]
    elif kind is EmitKind.DSTREAM:
        signed = [(1, before - now)]
    elif kind is EmitKind.RELATION:
        signed = [(-1, before - now), (1, now - before)]
    for sign, bag in signed:
        for values in sorted(bag.elements(), key=sort_key):
            yield instant, sign, values


def _sorted(root: Emit, bag: Bag) -> list[tuple[Any, ...]]:
    """In the order asked for, equal ones by their content; sorting is stable, so last key first."""
    rows = sorted(bag.elements(), key=sort_key)
    names = [f.name for f in root.schema]
    for key in reversed(root.order):
        at = names.index(key.column)
        known = [r for r in rows if r[at] is not None]
        known.sort(key=partial(_key_at, at), reverse=key.descending)
        unknown = [r for r in rows if r[at] is None]
        rows = unknown + known if key.nulls_first else known + unknown
    return rows[: root.limit]


def _key_at(place: int, values: tuple[Any, ...]) -> tuple[Any, ...]:
    return order_key(values[place])


@dataclass(frozen=True)
class RelationRow:
    """A row of a relation; `id` tells it from equal rows and stays while the row does."""

    id: Hashable
    values: dict[str, Any]


@dataclass(frozen=True)
class _Partial:
    """Some members' rows joined, no predicate false so far, with the errors met on the way."""

    id: tuple[Hashable, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    errors: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True)
class _Block:
    """A FROM and its WHERE: members, and beside each the predicates it makes decidable."""

    members: tuple[Node, ...]
    decidable: tuple[tuple[Predicate, ...], ...]

    @classmethod
    def of(cls, node: Node) -> _Block:
        members, predicates = _flatten(node)
        waiting = sorted(predicates, key=lambda p: p.position)
        known: set[str] = set()
        decidable = []
        for member in members:
            known |= {f.name for f in member.schema}
            decidable.append(tuple(p for p in waiting if columns_of(p.expr) <= known))
            waiting = [p for p in waiting if not columns_of(p.expr) <= known]
        if waiting:
            raise ValueError(f"{waiting[0]} reads columns that no input has")
        return cls(tuple(members), tuple(decidable))


def _flatten(node: Node) -> tuple[list[Node], list[Predicate]]:
    if isinstance(node, Filter):
        members, predicates = _flatten(node.input)
        return members, [*predicates, *node.predicates]
    if isinstance(node, Join):
        parts = [_flatten(m) for m in node.members]
        predicates = [p for _, below in parts for p in below]
        return [m for above, _ in parts for m in above], [*predicates, *node.predicates]
    stream_below = isinstance(node, Window) and not isinstance(node.input, (Emit, Sequence))
    if isinstance(node, Window) and stream_below and not node.window.is_ordered:
        # A filter commutes with a time window, though not with a row window.
        return [Window(scan_below(node.input), node.window)], _flatten(node.input)[1]
    return [node], []


class _Evaluator:
    """Computes relations from scratch; what it remembers are verdicts on rows that stay."""

    def __init__(
        self,
        streams: Mapping[str, ReferenceStream],
        tables: Mapping[str, Sequence_[dict[str, Any]]],
        functions: Mapping[str, Any],
        start: int,
    ) -> None:
        self.start = start
        self.versions: dict[str, Sequence_[Version]] = {}
        self.ordered = {name: stream.ordered() for name, stream in streams.items()}
        self.tables = tables
        self.functions = functions
        self.rejected: set[tuple[Hashable, str, str]] = set()
        self.read: dict[tuple[Hashable, str, str], Hashable] = {}
        self.blocks: dict[int, _Block] = {}
        self.known: dict[Hashable, Any] = {}
        self.emitted: dict[int, _Emission] = {}

    def relation(self, node: Node, instant: int) -> list[RelationRow]:
        """The rows of a node at an instant."""
        own: list[RelationRow] | None = node.by_definition(self, instant)
        if own is not None:
            return own
        if isinstance(node, Project):
            return self.project(node, instant)
        if isinstance(node, Aggregate):
            return self.aggregate(node, instant)
        if isinstance(node, Scan):
            if node.is_table:
                return self.table(node, instant)
            return self.window(node, UNBOUNDED, instant)
        if isinstance(node, Window) and isinstance(node.input, Scan):
            if node.input.is_table:
                return self.table(node.input, instant)
            return self.window(node.input, node.window, instant)
        if isinstance(node, Window) and isinstance(node.input, Emit):
            return self.emission(node.input, node.window, instant)
        if isinstance(node, Window) and isinstance(node.input, Sequence):
            arrived = [a for a in self.sequence(node.input, instant) if a.ts <= instant]
            held = content(arrived, node.window, instant, lambda name: name)
            return [RelationRow(a.id, a.columns) for a in held]
        if isinstance(node, Union):
            return self.union(node, instant)
        if isinstance(node, Count):
            return self.count(node, instant)
        if isinstance(node, OuterJoin):
            return self.outer(node, instant)
        if isinstance(node, Window) and node.window.is_ordered:
            kept = {row.id for row in self.block(node.input, instant)}
            return self.window(scan_below(node.input), node.window, instant, kept)
        return self.block(node, instant)

    def table(self, scan: Scan, instant: int) -> list[RelationRow]:
        rows, number = self.tables[scan.relation], 0
        for at, later in self.versions.get(scan.relation, ()):
            if at <= instant:
                rows, number = later, number + 1
        return [
            RelationRow((scan.alias, number, i), _qualified(scan, row))
            for i, row in enumerate(rows)
        ]

    def window(
        self, scan: Scan, spec: WindowSpec, instant: int, kept: set[Hashable] | None = None
    ) -> list[RelationRow]:
        """The content of a window, over all rows of the stream or over those of `kept`."""
        numbered = enumerate(self.ordered[scan.relation])
        arrived = [Arrival((scan.alias, i), ts, row) for i, (ts, row) in numbered if ts <= instant]
        if kept is not None:
            arrived = [a for a in arrived if (a.id,) in kept]
        held = content(arrived, spec, instant, lambda name: _bare(scan, name))
        return [RelationRow(a.id, _qualified(scan, a.columns)) for a in held]

    def emission(self, node: Emit, spec: WindowSpec, instant: int) -> list[RelationRow]:
        """A window over the stream that a subquery emits, asked instant by instant."""
        history = self.emitted.setdefault(id(node), _Emission())
        if history.instant != instant:
            names = [f.name for f in node.schema]
            rows = self.relation(node.input, instant)
            now = Counter(normal_row(row.values.values()) for row in rows)
            if node.kind is EmitKind.RSTREAM:
                fresh = now if self.is_due(node.input, instant) else Counter()
            else:
                fresh = now - history.last if node.kind is EmitKind.ISTREAM else history.last - now
            for values in sorted(fresh.elements(), key=sort_key):
                at = (id(node), len(history.rows))
                row = dict(zip(names, values, strict=True))
                history.rows.append(Arrival(at, instant, row))  # type: ignore[arg-type]
            history.last, history.instant = now, instant
        held = content(history.rows, spec, instant, lambda name: name)
        return [RelationRow(a.id, a.columns) for a in held]

    def sequence(self, node: Sequence, instant: int) -> list[Arrival]:
        """The rows of a stream up to the instant, with columns over their order."""
        parts: dict[tuple[Any, ...], list[Arrival]] = {}
        for arrival in self.stream_rows(node.input, instant):
            by = normal_row(arrival.columns[c] for c in node.partition_by)
            parts.setdefault(by, []).append(arrival)
        ahead = max((c.offset for c in node.columns if c.function == "lead"), default=0)
        found = []
        for rows in parts.values():
            for i, row in enumerate(rows[: len(rows) - ahead]):
                extra = {c.name: looked_up(c, rows, i) for c in node.columns}
                found.append(Arrival(row.id, rows[i + ahead].ts, row.columns | extra))
        return sorted(found, key=lambda a: (a.ts, sort_key(a.columns.values())))

    def stream_rows(self, node: Node, instant: int) -> list[Arrival]:
        """The rows of a stream up to the instant, in its order."""
        if isinstance(node, Sequence):  # columns with OVER all follow the stream they are of
            return sorted(self.sequence(node, instant), key=lambda a: a.id)
        if isinstance(node, Emit):
            self.emission(node, UNBOUNDED, instant)
            return self.emitted[id(node)].rows
        if isinstance(node, Filter):
            below = self.stream_rows(node.input, instant)
            return [a for a in below if self.passes(node, a)]
        assert isinstance(node, Scan)
        numbered = enumerate(self.ordered[node.relation])
        return [
            Arrival((node.alias, i), ts, _qualified(node, row))
            for i, (ts, row) in numbered
            if ts <= instant
        ]

    def passes(self, node: Filter, arrival: Arrival) -> bool:
        errors = self.judge(node.predicates, arrival.columns)
        if errors:
            _, label, reason = min(errors, key=lambda e: e[0])
            self.rejected.add((arrival.id, label, reason))
        return errors == []

    def is_due(self, node: Node, instant: int) -> bool:
        """Whether RSTREAM emits: a row arrives on one of the query's sources, or, where the source
        has a window that slides or holds sessions, there is a boundary or a session ends."""
        if isinstance(node, Scan):
            return not node.is_table and any(ts == instant for ts, _ in self.ordered[node.relation])
        if not isinstance(node, Window):
            return any(self.is_due(child, instant) for child in node.inputs)
        if node.window.waits:
            return bool(self.window_content(node, instant))
        boundaries = node.window.boundaries(instant, instant + 1)
        if boundaries is not None:
            return instant > self.start and len(boundaries) > 0
        stream = node.input
        while isinstance(stream, Filter):
            stream = stream.input
        if isinstance(stream, Scan):
            return self.is_due(stream, instant)
        return any(a.ts == instant for a in self.stream_rows(stream, instant))

    def window_content(self, node: Window, instant: int) -> list[RelationRow]:
        """What a window over an unfiltered stream holds."""
        stream = node.input
        while isinstance(stream, Filter):
            stream = stream.input
        return self.relation(Window(stream, node.window), instant)

    def union(self, node: Union, instant: int) -> list[RelationRow]:
        names = [f.name for f in node.schema]
        return [
            RelationRow((i, row.id), dict(zip(names, row.values.values(), strict=True)))
            for i, member in enumerate(node.members)
            for row in self.relation(member, instant)
        ]

    def count(self, node: Count, instant: int) -> list[RelationRow]:
        names = [f.name for f in node.schema]
        bags = [
            Counter(normal_row(r.values.values()) for r in self.relation(m, instant))
            for m in node.members
        ]
        found = []
        for values in dict.fromkeys(v for bag in bags for v in bag):
            copies = _copies(node.rule, [bag[values] for bag in bags])
            row = dict(zip(names, values, strict=True))
            found += [RelationRow((values, i), row) for i in range(copies)]
        return found

    def outer(self, node: OuterJoin, instant: int) -> list[RelationRow]:
        left, right = self.relation(node.left, instant), self.relation(node.right, instant)
        pairs = [(a, b) for a in left for b in right if self.partners(node, a, b)]
        with_left = {a.id for a, _ in pairs}
        with_right = {b.id for _, b in pairs}
        if node.kind is OuterKind.SEMI:
            return [a for a in left if a.id in with_left]
        if node.kind is OuterKind.ANTI:
            return [a for a in left if a.id not in with_left]
        found = [RelationRow((a.id, b.id), {**a.values, **b.values}) for a, b in pairs]
        nothing = {f.name: None for f in node.right.schema}
        found += [
            RelationRow((a.id, None), a.values | nothing) for a in left if a.id not in with_left
        ]
        if node.kind is OuterKind.FULL:
            nothing = {f.name: None for f in node.left.schema}
            rest = [b for b in right if b.id not in with_right]
            found += [RelationRow((None, b.id), nothing | b.values) for b in rest]
        return found

    def partners(self, node: OuterJoin, left: RelationRow, right: RelationRow) -> bool:
        """Whether ON holds; a pair on which it fails is rejected and is none."""
        key = (id(node), left.id, right.id)
        if key not in self.known:
            self.known[key] = self.judge(node.predicates, {**left.values, **right.values})
        errors: list[tuple[int, str, str]] | None = self.known[key]
        if errors:
            _, label, reason = min(errors, key=lambda e: e[0])
            self.rejected.add(((left.id, right.id), label, reason))
        return errors == []

    def block(self, node: Node, instant: int) -> list[RelationRow]:
        """The product of the members without the rows on which some predicate is not true."""
        if id(node) not in self.blocks:
            self.blocks[id(node)] = _Block.of(node)
        block = self.blocks[id(node)]
        partials = [_Partial()]
        for member, predicates in zip(block.members, block.decidable, strict=True):
            rows = self.relation(member, instant)
            pairs = [(left, right) for left in partials for right in rows]
            extended = [self.extend(block, left, right, predicates) for left, right in pairs]
            partials = [p for p in extended if p is not None]
        for failed in partials:
            if failed.errors:
                _, label, reason = min(failed.errors, key=lambda e: e[0])
                self.rejected.add((failed.id, label, reason))
        return [RelationRow(p.id, p.values) for p in partials if not p.errors]

    def extend(
        self, block: _Block, left: _Partial, right: RelationRow, predicates: Sequence_[Predicate]
    ) -> _Partial | None:
        """Both joined, or None as soon as a predicate is false or NULL, whatever else fails."""
        joined = (*left.id, right.id)
        key = (id(block), joined)
        if key not in self.known:
            values = {**left.values, **right.values}
            errors = self.judge(predicates, values)
            merged = None if errors is None else (*left.errors, *errors)
            self.known[key] = None if merged is None else _Partial(joined, values, merged)
        partial: _Partial | None = self.known[key]
        return partial

    def judge(
        self, predicates: Sequence_[Predicate], values: dict[str, Any]
    ) -> list[tuple[int, str, str]] | None:
        """None if any predicate is false or NULL, else the errors. One that is made of several,
        such as BETWEEN, is false or NULL if one of them is."""
        errors = []
        dropped = False
        for predicate in predicates:
            for part in _parts(predicate.expr):
                try:
                    dropped |= evaluate(part, values, self.functions) is not True
                except RowError as error:
                    errors.append((predicate.position, str(predicate), error.reason))
        return None if dropped else errors

    def compute(
        self, owner: Node, row: RelationRow, labelled: Sequence_[tuple[str, Expr]]
    ) -> list[Any] | None:
        """The expressions' values, or None and a rejection under the first that fails."""
        key = (id(owner), row.id)
        if key not in self.known:
            self.known[key] = self.attempt(row, labelled)
        values, rejection = self.known[key]
        if rejection is not None:
            self.rejected.add((row.id, *rejection))
            expr = dict(labelled)[rejection[0]]
            read = normal_row(row.values[c] for c in sorted(columns_of(expr)))
            self.read[(row.id, *rejection)] = read
            return None
        return list(values)

    def attempt(
        self, row: RelationRow, labelled: Sequence_[tuple[str, Expr]]
    ) -> tuple[list[Any], Rejection | None]:
        values = []
        for label, expr in labelled:
            try:
                values.append(evaluate(expr, row.values, self.functions))
            except RowError as error:
                return [], (label, error.reason)
        return values, None

    def project(self, node: Project, instant: int) -> list[RelationRow]:
        labelled = [(c.name, c.expr) for c in node.columns]
        names = [c.name for c in node.columns]
        output = []
        for row in self.relation(node.input, instant):
            values = self.compute(node, row, labelled)
            if values is not None:
                output.append(RelationRow(row.id, dict(zip(names, values, strict=True))))
        return output

    def aggregate(self, node: Aggregate, instant: int) -> list[RelationRow]:
        labelled = [(str(k.expr), k.expr) for k in node.keys]
        labelled += [(str(e), e) for a in node.aggregates for e in _arguments(a)]
        groups: dict[tuple[Any, ...], list[list[Any]]] = {} if node.keys else {(): []}
        for row in self.relation(node.input, instant):
            values = self.compute(node, row, labelled)
            if values is not None:
                key = normal_row(values[: len(node.keys)])
                groups.setdefault(key, []).append(values[len(node.keys) :])
        rows = [self.group(node, key, members) for key, members in groups.items()]
        return [row for row in rows if row is not None]

    def group(
        self, node: Aggregate, key: tuple[Any, ...], members: list[list[Any]]
    ) -> RelationRow | None:
        exacts = []
        at = 0
        for named in node.aggregates:
            width = len(_arguments(named))
            exacts.append(exact(named.call, [tuple(m[at : at + width]) for m in members]))
            at += width
        values = dict(zip((k.name for k in node.keys), key, strict=True))
        for named, total in zip(node.aggregates, exacts, strict=True):
            try:
                values[named.name] = finish(named.call, total)
            except RowError as error:
                self.rejected.add(((id(node), key, tuple(exacts)), str(named.call), error.reason))
                return None
        return RelationRow((id(node), key, normal_row(list(values.values()))), values)


def _copies(rule: CountRule, counts: Sequence_[int]) -> int:
    first, second = counts[0], counts[-1]
    return {
        CountRule.DISTINCT: min(first, 1),
        CountRule.EXCEPT: int(first > 0 and second == 0),
        CountRule.EXCEPT_ALL: max(first - second, 0),
        CountRule.INTERSECT: int(first > 0 and second > 0),
        CountRule.INTERSECT_ALL: min(first, second),
        CountRule.SEMI: first if second else 0,
        CountRule.ANTI: 0 if second else first,
    }[rule]


@dataclass
class _Emission:
    """What a subquery has emitted so far, and its relation at the last instant."""

    rows: list[Arrival] = field(default_factory=list)
    last: Bag = field(default_factory=Counter)
    instant: int | None = None


def _bare(scan: Scan, name: str) -> str:
    return name.removeprefix(f"{scan.alias}.")


def _qualified(scan: Scan, columns: dict[str, Any]) -> dict[str, Any]:
    return {f.name: columns[_bare(scan, f.name)] for f in scan.fields}


def _parts(expr: Expr) -> list[Expr]:
    if isinstance(expr, Call) and expr.function == "and":
        return [part for arg in expr.args for part in _parts(arg)]
    return [expr]


def _arguments(aggregate: NamedAggregate) -> tuple[Expr, ...]:
    """count(*) counts rows as count(TRUE) does."""
    return aggregate.call.arguments or (Literal(BOOLEAN, False, True),)
