"""What model queries answer, by definition: brute force in exact rational arithmetic.

Nothing here knows how Thalweg works. A `Case` is a small description of a query of its own, from
which come the text in SQL, random rows, and the answer at any instant: which row of a key governs
(the newest in the order of (ts, content), D5; for `FOR d` from its ts, 17.16; a NULL coefficient
ends it, 17.19), the value of its polynomial there, conditions on values, joins as nested loops,
aggregates over the keys alive at the instant (17.3) and over what a window covers (17.5).

Within one tick of a root both answers are right (16.3.3), so a condition has a set of possible
truth values, and a row is certain, possible or absent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
from root_oracle import root_integral

S = 1_000_000
MS = 1_000
COLUMNS = ("id", "g", "n", "c0", "c1", "c2")
TYPES = {"id": pa.string(), "g": pa.string(), "n": pa.int64(), "ts": pa.timestamp("us", "UTC")}
END_KEY = "~"
ONE = Fraction(1)
Row = Mapping[str, Any]
Expr = tuple[Any, ...]
Truth = frozenset[bool | None]


# --- rows and segments ------------------------------------------------------------------------


def order_key(row: Row) -> tuple[Any, ...]:
    """The order of a stream: ts, then content, NULL first (D5)."""
    return (row["ts"], *((row[c] is not None, row[c] or 0) if c not in ("id", "g") else
                         (row[c] is not None, row[c] or "") for c in COLUMNS))  # fmt: skip


@dataclass(frozen=True)
class Segment:
    """A row's polynomials, in seconds since `start`, on [start, end)."""

    row: Row
    start: int
    end: int | None
    curves: Mapping[str, tuple[Fraction, ...]]

    def holds(self, at: int) -> bool:
        return self.start <= at and (self.end is None or at < self.end)


@dataclass(frozen=True)
class Modeled:
    """A source `stream AS alias MODEL (attribute = terms, ...) FOR horizon`. A term is what stands
    before a power of t: a column, or a column and a factor."""

    stream: str
    alias: str
    terms: Mapping[str, tuple[tuple[str, Fraction], ...]]
    horizon: int | None
    window: str = ""

    @property
    def sql(self) -> str:
        models = ", ".join(f"{a} = {_polynomial_text(t)}" for a, t in self.terms.items())
        horizon = "" if self.horizon is None else f" FOR {self.horizon // MS} MILLISECONDS"
        return " ".join(
            f"{self.stream} {self.window} AS {self.alias} MODEL ({models}){horizon}".split()
        )

    def segments(self, rows: Iterable[Row]) -> list[Segment]:
        """All pieces that have a length, of all keys."""
        found = []
        by_key: dict[Any, list[Row]] = {}
        for row in sorted(rows, key=order_key):
            by_key.setdefault(row["id"], []).append(row)
        for mine in by_key.values():
            for row, after in itertools.zip_longest(mine, mine[1:]):
                ends = [] if self.horizon is None else [row["ts"] + self.horizon]
                ends += [] if after is None else [after["ts"]]
                end = min(ends, default=None)
                curves = self._curves(row)
                if curves is not None and end != row["ts"]:
                    found.append(Segment(row, row["ts"], end, curves))
        return found

    def absorbing(
        self, rows: Iterable[Row], attribute: str, bound: Fraction, read: Sequence[str]
    ) -> list[Segment]:
        """Pieces under ERROR (17.6): a tuple is absorbed if its attribute is within the bound of
        the living piece and no unmodeled column that is read has changed."""
        found: list[Segment] = []
        by_key: dict[Any, list[Row]] = {}
        for row in sorted(rows, key=order_key):
            by_key.setdefault(row["id"], []).append(row)
        for mine in by_key.values():
            current: Segment | None = None
            for row in mine:
                if current is not None and not current.holds(row["ts"]):
                    found.append(current)
                    current = None
                curves = self._curves(row)
                if current is not None:
                    if curves is not None and _absorbed(current, row, attribute, bound, read):
                        continue
                    found.append(replace(current, end=row["ts"]))
                current = None
                if curves is not None:
                    end = None if self.horizon is None else row["ts"] + self.horizon
                    current = Segment(row, row["ts"], end, curves)
            found += [] if current is None else [current]
        return found

    def _curves(self, row: Row) -> dict[str, tuple[Fraction, ...]] | None:
        curves = {}
        for attribute, terms in self.terms.items():
            if any(row[c] is None for c, _ in terms):
                return None
            curves[attribute] = tuple(Fraction(row[c]) * k for c, k in terms)
        return curves


def _absorbed(
    piece: Segment, row: Row, attribute: str, bound: Fraction, read: Sequence[str]
) -> bool:
    there = evaluated(piece.curves[attribute], Fraction(row["ts"] - piece.start, S))
    same = all(piece.row[c] == row[c] for c in read)
    return same and abs(Fraction(row[attribute]) - there) <= bound


def _polynomial_text(terms: Sequence[tuple[str, Fraction]]) -> str:
    parts = []
    for power, (column, factor) in enumerate(terms):
        text = column if factor == 1 else f"{number(factor)}*{column}"
        parts.append(text + ("", "*t")[power > 0] + (f"^{power}" if power > 1 else ""))
    return " + ".join(parts)


def number(value: Fraction) -> str:
    text = repr(float(value))
    assert Fraction(float(text)) == value, "only values that are doubles"
    return f"({text})" if value < 0 else text


def evaluated(curve: Sequence[Fraction], seconds: Fraction) -> Fraction:
    total = Fraction(0)
    for c in reversed(curve):
        total = total * seconds + c
    return total


# --- expressions and conditions ---------------------------------------------------------------


@dataclass(frozen=True)
class Num:
    """A value, an upper bound of the terms it is made of (for rounding), and whether it moves."""

    v: Fraction
    size: Fraction
    moves: bool


Env = Mapping[tuple[str, str], Any]


def environment(alias: str, segment: Segment, at: int) -> dict[tuple[str, str], Any]:
    """The columns of a segment at an instant, whether it is alive then or not."""
    found: dict[tuple[str, str], Any] = row_environment(alias, segment.row)
    seconds = Fraction(at - segment.start, S)
    for attribute, curve in segment.curves.items():
        sizes = [abs(c) for c in curve]
        moves = any(curve[1:])
        size = evaluated(sizes, abs(seconds))
        found[alias, attribute] = Num(evaluated(curve, seconds), size, moves)
    return found


def row_environment(alias: str, row: Row) -> dict[tuple[str, str], Any]:
    return {(alias, c): _plain(v) for c, v in row.items() if c != "ts"}


def _plain(value: Any) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        exact = Fraction(value)
        return Num(exact, abs(exact), False)
    return value


def value(e: Expr, env: Env) -> Any:
    """A Num, a text or None (NULL)."""
    kind, *rest = e
    if kind == "col":
        return env[rest[0], rest[1]]
    if kind == "num":
        return Num(rest[0], abs(rest[0]), False)
    args = [value(r, env) if isinstance(r, tuple) else r for r in rest]
    if args[0] is None or args[-1] is None:
        return None
    return _applied(kind, *args)


def _applied(kind: str, a: Num, b: Any = None) -> Num:
    if kind == "abs":
        return Num(abs(a.v), a.size, a.moves)
    if kind == "pow":
        return Num(a.v**b, a.size**b, a.moves)
    moves = a.moves or b.moves
    if kind == "*":
        return Num(a.v * b.v, a.size * b.size, moves)
    if kind == "/":
        return Num(a.v / b.v, a.size / abs(b.v), moves)
    return Num(a.v + b.v if kind == "+" else a.v - b.v, a.size + b.size, moves)


def text(e: Expr) -> str:
    kind, *rest = e
    if kind == "col":
        return f"{rest[0]}.{rest[1]}"
    if kind == "num":
        return number(rest[0])
    if kind == "abs":
        return f"abs({text(rest[0])})"
    if kind == "pow":
        return f"pow({text(rest[0])}, {rest[1]})"
    return f"({text(rest[0])} {kind} {text(rest[1])})"


COMPARE: dict[str, Callable[[int], bool]] = {
    "<": lambda s: s < 0,
    "<=": lambda s: s <= 0,
    "=": lambda s: s == 0,
    "<>": lambda s: s != 0,
    ">=": lambda s: s >= 0,
    ">": lambda s: s > 0,
}
Moment = Callable[[int], Env]
"""The environment at so many ticks from the instant asked for, with the same governing rows."""


def _sign(x: Fraction) -> int:
    return (x > 0) - (x < 0)


def compared(op: str, a: Expr, b: Expr, moment: Moment) -> Truth:
    """The truth values a comparison may have, given one tick of freedom at roots."""
    left, right = value(a, moment(0)), value(b, moment(0))
    if left is None or right is None:
        return frozenset({None})
    if isinstance(left, str):
        return frozenset({COMPARE[op]((left > right) - (left < right))})
    here = _applied("-", left, right)
    signs = {_sign(here.v)}
    if here.moves or left.moves or right.moves:
        for tick in (-1, 1):
            env = moment(tick)
            signs.add(_sign(_applied("-", value(a, env), value(b, env)).v))
    if len(signs) > 1 or here.moves or {a[0], b[0]} - {"col", "num"}:  # what is rounded
        if abs(here.v) <= here.size * Fraction(1, 10**10):
            signs |= {-1, 0, 1}
        if {-1, 1} <= signs:  # = and <> at the tick nearest a root (17.8)
            signs.add(0)
    return frozenset(COMPARE[op](s) for s in signs)


def truth(c: Expr | None, moment: Moment) -> Truth:
    if c is None:
        return frozenset({True})
    kind, *rest = c
    if kind == "cmp":
        return compared(*rest, moment)
    if kind == "between":
        whole = ("and", ("cmp", ">=", rest[0], rest[1]), ("cmp", "<=", rest[0], rest[2]))
        return truth(whole, moment)
    if kind == "null":
        return frozenset({value(rest[0], moment(0)) is None})
    parts = [truth(r, moment) for r in rest]
    if kind == "not":
        return frozenset(None if p is None else not p for p in parts[0])
    merge = _and if kind == "and" else _or
    return frozenset(merge(p) for p in itertools.product(*parts))


def _and(parts: Sequence[bool | None]) -> bool | None:
    return False if False in parts else None if None in parts else True


def _or(parts: Sequence[bool | None]) -> bool | None:
    return True if True in parts else None if None in parts else False


def condition_text(c: Expr) -> str:
    kind, *rest = c
    if kind == "cmp":
        a, b = (t if isinstance(t, str) else text(t) for t in rest[1:])
        return f"{a} {rest[0]} {b}"
    if kind == "between":
        return f"{text(rest[0])} BETWEEN {text(rest[1])} AND {text(rest[2])}"
    if kind == "null":
        return f"{text(rest[0])} IS NULL"
    if kind == "not":
        return f"NOT ({condition_text(rest[0])})"
    return "(" + f" {kind.upper()} ".join(condition_text(r) for r in rest) + ")"


# --- answers ----------------------------------------------------------------------------------

Ident = tuple[Any, ...]


@dataclass
class Answer:
    """Rows at an instant by identity: those that must be there, those that may be. A value is
    (exact, tolerance), or None where any is right. `loose` idents are not looked at."""

    certain: dict[Ident, dict[str, Any]] = field(default_factory=dict)
    possible: dict[Ident, dict[str, Any]] = field(default_factory=dict)
    loose: set[Ident] = field(default_factory=set)

    def add(self, ident: Ident, values: dict[str, Any], truths: Truth) -> None:
        if True in truths:
            self.possible[ident] = values
            if len(truths) == 1:
                self.certain[ident] = values


@dataclass(frozen=True)
class Case:
    """One query, its rows, and its answer at any instant."""

    seed: int
    family: str
    sql: str
    form: str  # relation, changes, sample, slide, tuples, eager, fit
    rows: Mapping[str, Sequence[Row]]
    tables: Mapping[str, Sequence[Row]]
    ident: tuple[str, ...]
    answer: Callable[[int], Answer]
    since: int
    until: int
    period: int = 0
    instants: tuple[int, ...] = ()
    bound: Fraction = Fraction(0)
    cell: int = 0

    def stream_tables(self) -> dict[str, pa.Table]:
        """Each stream in arrival order, with a last row that makes time pass."""
        end = dict.fromkeys(COLUMNS) | {"id": END_KEY, "ts": self.until}
        return {name: _arrow([*rows, end]) for name, rows in self.rows.items()}

    def table_tables(self) -> dict[str, pa.Table]:
        return {name: pa.Table.from_pylist(list(rows)) for name, rows in self.tables.items()}


def _arrow(rows: Sequence[Row]) -> pa.Table:
    columns = (*COLUMNS, "ts")
    schema = pa.schema([(c, TYPES.get(c, pa.float64())) for c in columns])
    return pa.table({c: [r[c] for r in rows] for c in columns}, schema=schema)


def close_to(got: Any, wanted: Any) -> bool:
    """Whether a value of the engine is the exact one, within its tolerance."""
    if wanted is None or isinstance(wanted, (str, bool)):
        return bool(got == wanted)
    exact, tolerance = wanted
    if exact is None:
        return True
    if got is None:
        return False
    return bool(abs(Fraction(got) - exact) <= tolerance)


def exact_value(found: Any) -> Any:
    """A value as an Answer holds it: a number with 1e-9 of the terms it is made of."""
    if not isinstance(found, Num):
        return found
    return (found.v, Fraction(1, 10**9) * max(found.size, 1))


def difference(case: Case, at: int, rows: Sequence[Mapping[str, Any]]) -> str | None:
    """None, or in what the engine's rows at an instant differ from the answer by definition."""
    answer = case.answer(at)
    seen: set[Ident] = set()
    for row in rows:
        ident = tuple(row[c] for c in case.ident)
        if ident in answer.loose or _is_nothing(case, row):
            continue
        if ident in seen:
            return f"at {at}: {ident} is there twice"
        seen.add(ident)
        wanted = answer.possible.get(ident)
        if wanted is None:
            return f"at {at}: {row} should not be there"
        for column, exact in wanted.items():
            if not close_to(row[column], exact):
                return f"at {at}: {column} of {row} should be {_shown(exact)}"
    missing = set(answer.certain) - seen - answer.loose
    return f"at {at}: {sorted(missing, key=repr)} should be there" if missing else None


def _is_nothing(case: Case, row: Mapping[str, Any]) -> bool:
    """An aggregate without GROUP BY over nothing: a row of NULLs is no row here."""
    return not case.ident and all(v is None for c, v in row.items() if not c.startswith("__"))


def _shown(exact: Any) -> Any:
    return float(exact[0]) if isinstance(exact, tuple) else exact


# --- joins of sources -------------------------------------------------------------------------


def joined(
    sides: Sequence[tuple[str, Sequence[Segment | Row]]],
    condition: Expr | None,
    columns: Mapping[str, Expr],
    ident: Sequence[str],
    at: int,
) -> Answer:
    """Rows of a join at an instant: nested loops over what is alive."""
    answer = Answer()
    alive = [[s for s in parts if not isinstance(s, Segment) or s.holds(at)] for _, parts in sides]
    for parts in itertools.product(*alive):
        moment = _moment([a for a, _ in sides], parts, at)
        truths = truth(condition, moment)
        if True not in truths:
            continue
        values = {c: exact_value(value(e, moment(0))) for c, e in columns.items()}
        names = tuple(_identity(values[c]) for c in ident)
        answer.add(names, values, truths)
    return answer


def _identity(found: Any) -> Any:
    return int(found[0]) if isinstance(found, tuple) else found


def _moment(aliases: Sequence[str], parts: Sequence[Segment | Row], at: int) -> Moment:
    known: dict[int, Env] = {}

    def moment(tick: int) -> Env:
        if tick not in known:
            env: dict[tuple[str, str], Any] = {}
            for alias, part in zip(aliases, parts, strict=True):
                if isinstance(part, Segment):
                    env.update(environment(alias, part, at + tick))
                else:
                    env.update(row_environment(alias, part))
            known[tick] = _Literals(env)
        return known[tick]

    return moment


class _Literals(dict[tuple[str, str], Any]):
    """Texts stand for themselves."""

    def __missing__(self, key: tuple[str, str]) -> Any:
        if key[0] == "'":
            return key[1]
        raise KeyError(key)


def quoted(word: str) -> Expr:
    return ("col", "'", word)


# --- sure and maybe ---------------------------------------------------------------------------


def sure_and_maybe(c: Expr, moment: Moment, bound: Fraction, tick: int) -> tuple[bool, bool]:
    """Whether a condition may hold for values within the bound, and whether it must (17.7). Of
    comparisons of one attribute with a number."""
    kind, *rest = c
    if kind == "cmp":
        op, a, b = rest
        off = value(a, moment(tick)).v - value(b, moment(tick)).v
        signs = {_sign(off - bound), _sign(off + bound)}
        signs |= {0} if len(signs) > 1 else set()
        ways = {COMPARE[op](s) for s in signs}
        return True in ways, ways == {True}
    if kind == "between":
        parts = [("cmp", ">=", rest[0], rest[1]), ("cmp", "<=", rest[0], rest[2])]
        return sure_and_maybe(("and", *parts), moment, bound, tick)
    each = [sure_and_maybe(r, moment, bound, tick) for r in rest]
    if kind == "not":
        return not each[0][1], not each[0][0]
    every = all if kind == "and" else any
    return every(e[0] for e in each), every(e[1] for e in each)


def within_bounds(
    alias: str,
    segments: Sequence[Segment],
    condition: Expr,
    bound: Fraction,
    columns: Mapping[str, Expr],
    ident: Sequence[str],
    at: int,
) -> Answer:
    """The superset at an instant; `__maybe` marks what is not certain."""
    answer = Answer()
    for piece in segments:
        if not piece.holds(at):
            continue
        moment = _moment([alias], [piece], at)
        ways = {sure_and_maybe(condition, moment, bound, tick) for tick in (-1, 0, 1)}
        values = {c: exact_value(value(e, moment(0))) for c, e in columns.items()}
        sure = {must for may, must in ways if may}
        values["__maybe"] = (None, None) if len(sure) > 1 else sure == {False}
        answer.add(tuple(values[c] for c in ident), values, frozenset(may for may, _ in ways))
    return answer


# --- aggregates at an instant -----------------------------------------------------------------


def grouped(
    sides: Sequence[tuple[str, Sequence[Segment]]],
    where: Expr | None,
    by: str | None,
    aggregates: Mapping[str, tuple[str, Expr]],
    having: Expr | None,
    at: int,
) -> Answer:
    """Aggregates over the keys (or pairs of keys) alive at an instant (17.3)."""
    groups: dict[Ident, list[Moment]] = {}
    answer = Answer()
    alive = [[s for s in parts if s.holds(at)] for _, parts in sides]
    for parts in itertools.product(*alive):
        moment = _moment([alias for alias, _ in sides], parts, at)
        ident = () if by is None else (moment(0)[sides[0][0], by],)
        truths = truth(where, moment)
        if len(truths) > 1:
            answer.loose.add(ident)
        elif True in truths:
            groups.setdefault(ident, []).append(moment)
    for ident, members in groups.items():
        whole = _group_moment(members, aggregates)
        values = {c: exact_value(whole(0)["", c]) for c in aggregates}
        for name, (function, e) in aggregates.items():
            if function in ("min", "max"):  # where curves cross, within one tick
                exact, tolerance = values[name]
                values[name] = (exact, tolerance + _steepest(e, members))
        if by is not None:
            values[by] = ident[0]
        answer.add(ident, values, truth(having, whole))
    return answer


def _steepest(e: Expr, members: Sequence[Moment]) -> Fraction:
    """Twice the most by which a value changes within one tick."""
    steps = [abs(value(e, m(d)).v - value(e, m(0)).v) for m in members for d in (-1, 1)]
    return 2 * max(steps)


def _group_moment(members: Sequence[Moment], aggregates: Mapping[str, tuple[str, Expr]]) -> Moment:
    def moment(tick: int) -> Env:
        env: dict[tuple[str, str], Any] = {}
        for name, (function, e) in aggregates.items():
            env["", name] = combined(function, [value(e, m(tick)) for m in members])
        return env

    return moment


def combined(function: str, values: Sequence[Num]) -> Num:
    """sum, avg, min or max of values at one instant."""
    size = sum((v.size for v in values), Fraction(0))
    moves = True
    if function == "sum":
        return Num(sum((v.v for v in values), Fraction(0)), size, moves)
    if function == "avg":
        return Num(sum((v.v for v in values), Fraction(0)) / len(values), size, moves)
    pick = min if function == "min" else max
    return Num(pick(v.v for v in values), size, moves)


# --- windows ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """A curve on [low, high] (µs, may be fractions), in seconds since `start`."""

    curve: tuple[Fraction, ...]
    start: int
    low: Fraction
    high: Fraction

    @property
    def covered(self) -> Fraction:
        return (self.high - self.low) / S

    def integral(self) -> Fraction:
        whole = [Fraction(0), *(c / (i + 1) for i, c in enumerate(self.curve))]
        ends = [(u - self.start) / S for u in (self.low, self.high)]
        return evaluated(whole, ends[1]) - evaluated(whole, ends[0])

    def extremes(self) -> list[Fraction]:
        """The values at both ends and at the vertex of a curve of degree two."""
        at = [(u - self.start) / S for u in (self.low, self.high)]
        if len(self.curve) > 3:
            raise ValueError("extremes are exact up to degree two")
        if len(self.curve) == 3 and self.curve[2] != 0:
            vertex = -self.curve[1] / (2 * self.curve[2])
            at += [vertex] if at[0] < vertex < at[1] else []
        return [evaluated(self.curve, s) for s in at]

    def slope(self) -> Fraction:
        at = max(abs(u - self.start) / S for u in (self.low, self.high))
        rates = [abs(c) * i for i, c in enumerate(self.curve)][1:]
        return evaluated(rates, Fraction(at)) if rates else Fraction(0)


def pieces(segments: Iterable[Segment], attribute: str, low: int, high: int) -> Iterator[Piece]:
    """What a window covers of some segments."""
    for s in segments:
        a, b = max(s.start, low), high if s.end is None else min(s.end, high)
        if a < b:
            yield Piece(s.curves[attribute], s.start, Fraction(a), Fraction(b))


def cut(piece: Piece, op: str, level: Fraction) -> Iterator[Piece]:
    """The parts of a piece on which `curve op level` holds; roots to 1e-12 of a second."""
    shifted = (piece.curve[0] - level, *piece.curve[1:])
    inside = [r * S + piece.start for r in real_roots(shifted)]
    ends = [piece.low, *sorted(r for r in inside if piece.low < r < piece.high), piece.high]
    for a, b in itertools.pairwise(ends):
        middle = evaluated(shifted, ((a + b) / 2 - piece.start) / S)
        if a < b and COMPARE[op](_sign(middle)):
            yield replace(piece, low=a, high=b)


def real_roots(curve: Sequence[Fraction]) -> list[Fraction]:
    """Of degree up to two."""
    c = [*curve, Fraction(0), Fraction(0)][:3]
    if c[2] == 0:
        return [] if c[1] == 0 else [-c[0] / c[1]]
    square = c[1] * c[1] - 4 * c[2] * c[0]
    if square < 0:
        return []
    root = square_root(square)
    return sorted({(-c[1] - root) / (2 * c[2]), (-c[1] + root) / (2 * c[2])})


def square_root(x: Fraction) -> Fraction:
    """To 30 digits."""
    from math import isqrt

    scale = 10**30
    return Fraction(isqrt(x.numerator * scale * scale // x.denominator), scale)


def over_window(function: str, parts: Mapping[Any, Sequence[Piece]], width: int) -> tuple[Any, Any]:
    """A window's aggregate over the pieces of each key, and its tolerance (one tick at each end
    of each piece)."""
    every = [p for mine in parts.values() for p in mine]
    sizes = [max(map(abs, p.extremes())) for p in every]
    largest = max(sizes, default=Fraction(0))
    covered = sum((p.covered for p in every), Fraction(0))
    rounding = Fraction(1, 10**9) * max(largest * max(covered, 1), 1)
    edges = Fraction(2 * len(every), S)
    if function in ("integral", "sum"):
        total = sum((p.integral() for p in every), Fraction(0))
        return total, rounding + edges * largest
    if function == "time":
        return covered, rounding + edges
    if function == "coverage":
        whole = Fraction(width, S) * sum(1 for mine in parts.values() if mine)
        return covered / whole, rounding + edges / Fraction(width, S)
    if function == "avg":
        total = sum((p.integral() for p in every), Fraction(0))
        return total / covered, rounding + 2 * edges * largest / covered
    slope = max(p.slope() for p in every)
    pick = min if function == "min" else max
    return pick(v for p in every for v in p.extremes()), rounding + 2 * slope / S


@dataclass(frozen=True)
class Windowed:
    """An aggregate over a window of length `width`, of a filtered source, per group."""

    source: Modeled
    segments: Sequence[Segment]
    width: int
    by: str | None
    functions: Mapping[str, tuple[str, str]]  # name -> (function, attribute)
    where: tuple[str, str, Fraction] | None = None
    having: tuple[str, str, Fraction] | None = None
    closed: bool = False

    def answer(self, at: int) -> Answer:
        answer = Answer()
        low = at - self.width
        for ident, members in self._groups(low, at).items():
            if self.closed and self._at_an_edge(members, low, at):
                answer.loose.add(ident)
                continue
            values, truths = self._values(members, low, at)
            if values is None:
                continue
            if self.by is not None:
                values[self.by] = ident[0]
            answer.add(ident, values, truths)
        return answer

    def _groups(self, low: int, at: int) -> dict[Ident, list[Segment]]:
        groups: dict[Ident, list[Segment]] = {}
        for s in self.segments:
            if s.start <= at + 2 and (s.end is None or s.end >= low - 2):
                ident = () if self.by is None else (s.row[self.by],)
                groups.setdefault(ident, []).append(s)
        return groups

    def _at_an_edge(self, members: Sequence[Segment], low: int, at: int) -> bool:
        """Whether the window begins or ends within two ticks of where a segment does, or the
        condition: its equality holds at the tick nearest a root (17.8), here at the root."""
        marks: set[Any] = {s.start for s in members}
        marks |= {s.end for s in members if s.end is not None}
        if self.where is not None:
            attribute = self.where[0]
            for s in members:
                for p in pieces([s], attribute, low - 3, at + 3):
                    marks |= {u for q in self._passing(s, p) for u in (q.low, q.high)}
            marks -= {low - 3, at + 3}
        return any(abs(m - edge) <= 2 for m in marks for edge in (low, at))

    def _values(self, members: Sequence[Segment], low: int, at: int) -> tuple[Any, Truth]:
        values: dict[str, Any] = {}
        shortest = None
        for name, (function, attribute) in self.functions.items():
            parts: dict[Any, list[Piece]] = {}
            for s in members:
                found = [q for p in pieces([s], attribute, low, at) for q in self._passing(s, p)]
                parts.setdefault(s.row["id"], []).extend(found)
            parts = {k: mine for k, mine in parts.items() if mine}
            if not parts:
                return None, frozenset()
            covered = sum((p.covered for mine in parts.values() for p in mine), Fraction(0))
            shortest = covered if shortest is None else min(shortest, covered)
            values[name] = over_window(function, parts, self.width)
        tiny = shortest is not None and shortest <= Fraction(5, S)
        truths = frozenset({True}) if self.having is None else self._having(values)
        return values, truths | frozenset({False}) if tiny else truths

    def _passing(self, s: Segment, p: Piece) -> Iterator[Piece]:
        if self.where is None:
            yield p
            return
        attribute, op, level = self.where
        mask = replace(p, curve=s.curves[attribute])
        for part in cut(mask, op, level):
            yield replace(p, low=part.low, high=part.high)

    def _having(self, values: Mapping[str, Any]) -> Truth:
        assert self.having is not None
        name, op, level = self.having
        exact, tolerance = values[name]
        signs = {_sign(exact - level)}
        if abs(exact - level) <= tolerance + Fraction(1, 10**6):
            signs = {-1, 0, 1}
        return frozenset(COMPARE[op](s) for s in signs)


@dataclass(frozen=True)
class Rooted:
    """The mean or the integral of a square root over a window that slides, per group: at each of
    its boundaries, and until the next. `q` of a segment is what stands under the root."""

    segments: Sequence[Segment]
    width: int
    slide: int
    by: tuple[str, ...]
    function: str
    having: tuple[str, Fraction] | None = None

    def answer(self, at: int) -> Answer:
        answer, at = Answer(), at - at % self.slide
        groups: dict[Ident, list[Piece]] = {}
        for s in self.segments:
            ident = tuple(s.row[c] for c in self.by)
            for piece in pieces([s], "q", at - self.width, at):
                groups.setdefault(ident, []).append(piece)
        for ident, mine in groups.items():
            covered = sum((p.covered for p in mine), Fraction(0))
            total = sum((_root_integral(p) for p in mine), Fraction(0))
            found = total / covered if self.function == "avg" else total
            tolerance = Fraction(1, 10**9) * max(found, 1)
            values = dict(zip(self.by, ident, strict=True)) | {"u": (found, tolerance)}
            answer.add(ident, values, self._having(found))
        return answer

    def _having(self, found: Fraction) -> Truth:
        if self.having is None:
            return frozenset({True})
        op, level = self.having
        near = abs(found - level) <= Fraction(1, 10**6)
        return frozenset(COMPARE[op](s) for s in ((-1, 0, 1) if near else (_sign(found - level),)))


def _root_integral(p: Piece) -> Fraction:
    return root_integral(p.curve, *(Fraction(u - p.start) / S for u in (p.low, p.high)))


def moved(curve: Sequence[Fraction], seconds: Fraction) -> tuple[Fraction, ...]:
    """The same curve, counted from so many seconds later."""
    c0, c1, c2 = [*curve, Fraction(0), Fraction(0)][:3]
    return (evaluated((c0, c1, c2), seconds), c1 + 2 * c2 * seconds, c2)


def squares(lines: Iterable[Sequence[Fraction]]) -> tuple[Fraction, ...]:
    """The sum of squares of lines."""
    found = [Fraction(0)] * 3
    for a, b, *_ in lines:
        found = [x + y for x, y in zip(found, (a * a, 2 * a * b, b * b), strict=True)]
    return tuple(found)


def distances(segments: Sequence[Segment], op: str) -> Iterator[Segment]:
    """The squares of those of pairs of keys, while both are there."""
    for a, b in itertools.product(segments, repeat=2):
        start, ends = max(a.start, b.start), [s.end for s in (a, b) if s.end is not None]
        apart = COMPARE[op]((a.row["id"] > b.row["id"]) - (a.row["id"] < b.row["id"]))
        if not apart or start >= min(ends, default=start + 1):
            continue
        lines = []
        for attribute in ("x", "y"):
            left, right = (moved(s.curves[attribute], Fraction(start - s.start, S)) for s in (a, b))
            lines.append([p - q for p, q in zip(left, right, strict=True)])
        row = {"i": a.row["id"], "j": b.row["id"]}
        yield Segment(row, start, min(ends, default=None), {"q": squares(lines)})


# --- random cases -----------------------------------------------------------------------------

SPAN = 20 * S
FAMILIES = (
    "filter",
    "map",
    "unmodeled",
    "join",
    "key join",
    "three",
    "tuples",
    "table",
    "group",
    "group of pairs",
    "nested",
    "window",
    "window filter",
    "fit",
    "eager",
    "error",
    "distance",
)


FROM_LONG_AGO = {"filter", "map", "join", "key join", "three"}


def random_case(seed: int, family: str | None = None) -> Case:
    """The case of a seed: families take turns."""
    name = family or FAMILIES[seed % len(FAMILIES)]
    return _Writer(seed, name).case()


class _Writer:
    def __init__(self, seed: int, family: str) -> None:
        self.seed, self.family = seed, family
        self.rng = Random(f"model query {seed} {family}")
        self.base = self.rng.choice((0, 0, 1_700_000_000)) * S
        self.rows: dict[str, list[Row]] = {}
        self.tables: dict[str, list[Row]] = {}

    # - data

    def stream(self, name: str, count: int | None = None) -> list[Row]:
        rng = self.rng
        keys = "abcd"[: rng.randint(1, 4)]
        count = rng.randint(3, 22) if count is None else count
        rows = [self.row(keys) for _ in range(count)]
        for i in range(count):
            if rng.random() < 0.12:  # an equal stamp
                rows[i] = {**rows[i], "ts": rng.choice(rows)["ts"]}
        if self.family in FROM_LONG_AGO and rng.random() < 0.15:
            rows[0] = {**rows[0], "ts": self.base - 3600 * S}
        rng.shuffle(rows)
        self.rows[name] = sorted(rows, key=lambda r: r["ts"])
        return self.rows[name]

    def row(self, keys: str) -> Row:
        rng = self.rng
        stamp = self.base + rng.randint(0, SPAN // MS) * MS
        if rng.random() < 0.25:
            stamp -= stamp % S
        spread = (5, 2, 0.5)
        found: dict[str, Any] = {"id": rng.choice(keys), "ts": stamp}
        found["g"] = None if rng.random() < 0.08 else rng.choice("pq")
        found["n"] = None if rng.random() < 0.08 else rng.randint(0, 4)
        for i, width in enumerate(spread):
            found[f"c{i}"] = round(rng.uniform(-width, width), 1 + (i > 1))
            if rng.random() < 0.04:
                found[f"c{i}"] = None
            elif rng.random() < 0.15:
                found[f"c{i}"] = 0.0
        return found

    def model(self, stream: str, alias: str, window: str = "", plain: bool = False) -> Modeled:
        rng = self.rng
        x = [("c0", Fraction(1)), ("c1", Fraction(1)), ("c2", Fraction(1))][: rng.randint(1, 3)]
        if len(x) > 1 and rng.random() < 0.3:
            x[1] = ("c1", self.decimal(2))
        terms = {"x": tuple(x)}
        if not plain and rng.random() < 0.5:
            terms["y"] = (("c1", Fraction(2)), ("c0", Fraction(-1, 2)))
        horizon = rng.choice((None, 2 * S, 5 * S, 12 * S, 1500 * MS))
        return Modeled(stream, alias, terms, horizon, window)

    def decimal(self, width: float) -> Fraction:
        tenths = self.rng.randint(1, int(width * 10))
        return Fraction(tenths * self.rng.choice((-1, 1)) / 10)

    # - expressions

    def attribute(self, sides: Sequence[Modeled]) -> Expr:
        side = self.rng.choice(sides)
        return ("col", side.alias, self.rng.choice(sorted(side.terms)))

    def moving(self, sides: Sequence[Modeled]) -> Expr:
        """An expression over modeled columns, of degree up to four."""
        rng, a = self.rng, self.attribute(sides)
        constant = ("num", self.decimal(3))
        shapes: list[Expr] = [
            a,
            a,
            ("+", a, constant),
            ("*", constant, a),
            ("-", constant, a),
            ("/", a, ("num", Fraction(rng.choice((2, 4, -5))))),
            (rng.choice("+-"), a, self.attribute(sides)),
            ("*", a, self.attribute(sides)),
            ("pow", a, 2),
        ]
        return rng.choice(shapes)

    def atom(self, sides: Sequence[Modeled], points: bool) -> Expr:
        rng = self.rng
        ops = ["<", "<=", ">", ">="] * 2 + (["=", "<>"] if points else [])
        draw = rng.random()
        if draw < 0.12:
            low, high = sorted((self.decimal(4), self.decimal(4)))
            return ("between", self.moving(sides), ("num", low), ("num", high))
        if draw < 0.24:
            inner = ("abs", ("-", self.attribute(sides), ("num", self.decimal(3))))
            return ("cmp", rng.choice(ops[:8]), inner, ("num", abs(self.decimal(3))))
        if draw < 0.34:
            inner = ("pow", self.attribute(sides), rng.choice((2, 3)))
            return ("cmp", rng.choice(ops[:8]), inner, ("num", self.decimal(6)))
        if draw < 0.5 and len(sides) > 1:
            a, b = (self.attribute([s]) for s in sides[:2])
            return ("cmp", rng.choice(ops), a, b)
        return ("cmp", rng.choice(ops), self.moving(sides), ("num", self.decimal(4)))

    def plain_atom(self, sides: Sequence[Modeled]) -> Expr:
        side = self.rng.choice(sides)
        if self.rng.random() < 0.15:
            return ("cmp", "<>", ("col", side.alias, "id"), quoted("p"))
        if self.rng.random() < 0.5:
            return ("cmp", self.rng.choice(("=", "<>")), ("col", side.alias, "g"), quoted("p"))
        level = ("num", Fraction(self.rng.randint(1, 3)))
        return ("cmp", self.rng.choice(("<", ">=", "=")), ("col", side.alias, "n"), level)

    def condition(
        self, sides: Sequence[Modeled], points: bool, plain: float = 0.0, depth: int = 2
    ) -> Expr:
        rng = self.rng
        if depth == 0 or rng.random() < 0.35:
            if rng.random() < plain:
                return self.plain_atom(sides)
            return self.atom(sides, points)
        if rng.random() < 0.2:
            return ("not", self.condition(sides, points, plain, depth - 1))
        parts = [
            self.condition(sides, points, plain, depth - 1) for _ in range(rng.choice((2, 2, 3)))
        ]
        return (rng.choice(("and", "or")), *parts)

    # - families

    def case(self) -> Case:
        made: dict[str, Callable[[], Case]] = {
            "filter": lambda: self.over_one(0.0, moving=False),
            "map": lambda: self.over_one(0.1, moving=True),
            "unmodeled": lambda: self.over_one(0.45, moving=False),
            "join": lambda: self.over_several(2, keyed=False),
            "key join": lambda: self.over_several(2, keyed=True),
            "three": lambda: self.over_several(3, keyed=True),
            "tuples": self.with_tuples,
            "table": self.with_a_table,
            "group": self.groups,
            "group of pairs": lambda: self.groups(paired=True),
            "nested": self.nested,
            "window": lambda: self.windows(filtered=False),
            "window filter": lambda: self.windows(filtered=True),
            "fit": self.fit,
            "eager": self.eager,
            "error": self.error,
            "distance": self.distance,
        }
        return made[self.family]()

    def forms(self) -> tuple[str, int]:
        form = self.rng.choice(("relation", "relation", "changes", "sample"))
        return form, self.rng.choice((S, 500 * MS, 2 * S)) if form == "sample" else 0

    def finish(
        self,
        items: Mapping[str, Expr],
        source: str,
        where: Expr | None,
        sides: Sequence[tuple[str, Sequence[Segment | Row]]],
        ident: tuple[str, ...],
        form: tuple[str, int],
        condition: Expr | None,
        options: str = "",
    ) -> Case:
        listed = ", ".join(f"{text(e)} AS {c}" for c, e in items.items())
        sql = f"SELECT {listed} FROM {source}"
        sql += f" WHERE {condition_text(where)}" if where is not None else ""
        sql += f" SAMPLE EVERY {form[1] // MS} MILLISECONDS" if form[0] == "sample" else ""
        answer = lambda at: joined(sides, condition, items, ident, at)  # noqa: E731
        return self.made(sql + options, form, ident, answer)

    def made(
        self,
        sql: str,
        form: tuple[str, int],
        ident: tuple[str, ...],
        answer: Callable[[int], Answer],
        **more: Any,
    ) -> Case:
        until = self.base + SPAN + 15 * S + 1
        return Case(
            self.seed, self.family, _unquoted(sql), form[0], self.rows, self.tables, ident, answer,
            self.base, until, form[1], **more,
        )  # fmt: skip

    def items(self, sides: Sequence[Modeled], moving: bool) -> tuple[dict[str, Expr], list[str]]:
        ident = [f"id{i}" for i in range(len(sides))]
        items: dict[str, Expr] = {
            name: ("col", s.alias, "id") for name, s in zip(ident, sides, strict=True)
        }
        if self.rng.random() < 0.4:
            items["g"] = ("col", sides[0].alias, "g")
        if moving or self.rng.random() < 0.75:
            items["u"] = self.moving(sides) if moving else self.attribute(sides)
        if moving:
            items["w"] = self.moving(sides)
        return items, ident

    def over_one(self, plain: float, moving: bool) -> Case:
        source = self.model("s", "a")
        segments = source.segments(self.stream("s"))
        form = self.forms()
        where = self.condition([source], form[0] != "sample", plain)
        if moving and self.rng.random() < 0.4:
            where = None  # type: ignore[assignment]
        items, ident = self.items([source], moving)
        sides = [("a", segments)]
        return self.finish(items, source.sql, where, sides, tuple(ident), form, where)

    def over_several(self, count: int, keyed: bool) -> Case:
        rng = self.rng
        mine = [self.model("s" if i and rng.random() < 0.3 else "sru"[i], "abc"[i])
                for i in range(count)]  # fmt: skip
        for m in mine:
            if m.stream not in self.rows:
                self.stream(m.stream, rng.randint(3, 12))
        form = self.forms()
        on = [self.key_term(mine[i], mine[i + 1], keyed) for i in range(count - 1)]
        where = self.condition(mine, form[0] != "sample", 0.1, 1)
        source = mine[0].sql
        for m, term in zip(mine[1:], on, strict=True):
            source += f", {m.sql}" if term is None else f" JOIN {m.sql} ON {condition_text(term)}"
        if None in on:
            source = ", ".join(m.sql for m in mine)
            where = ("and", *(t for t in on if t is not None), where)
            on = []
        items, ident = self.items(mine, rng.random() < 0.5)
        sides = [(m.alias, m.segments(self.rows[m.stream])) for m in mine]
        condition = ("and", *(t for t in on if t is not None), where)
        return self.finish(items, source, where, sides, tuple(ident), form, condition)

    def key_term(self, a: Modeled, b: Modeled, keyed: bool) -> Expr | None:
        ids = [("col", m.alias, "id") for m in (a, b)]
        if keyed:
            return ("cmp", "=", *ids)
        return self.rng.choice((None, ("cmp", "<>", *ids), ("cmp", "<", *ids)))

    def with_tuples(self) -> Case:
        """A tuple stream reads a model at its own instants (17.17)."""
        rng = self.rng
        source = self.model("s", "m")
        segments = source.segments(self.stream("s"))
        tuples = self.stream("r", rng.randint(4, 15))
        tuples = [{**r, "n": i} for i, r in enumerate(tuples)]  # each with an identity
        self.rows["r"] = tuples
        term = ("cmp", rng.choice(("=", "=", "<>")), ("col", "r", "id"), ("col", "m", "id"))
        other = ("cmp", rng.choice("<>"), ("col", "m", "x"), ("col", "r", "c0"))
        where = other if rng.random() < 0.5 else None
        items = {"n": ("col", "r", "n"), "id1": ("col", "m", "id"), "u": self.moving([source])}
        word = rng.choice(("ISTREAM", "RSTREAM"))
        condition = term if where is None else ("and", term, where)

        def answer(at: int) -> Answer:
            now = [r for r in tuples if r["ts"] == at]
            return joined([("r", now), ("m", segments)], condition, items, ("n", "id1"), at)

        listed = ", ".join(f"{text(e)} AS {c}" for c, e in items.items())
        sql = f"SELECT {word} {listed} FROM r [NOW] r JOIN {source.sql} ON {condition_text(term)}"
        sql += "" if where is None else f" WHERE {condition_text(where)}"
        stamps = tuple(sorted({r["ts"] for r in tuples}))
        return self.made(sql, ("tuples", 0), ("n", "id1"), answer, instants=stamps)

    def with_a_table(self) -> Case:
        rng = self.rng
        source = self.model("s", "a")
        segments = source.segments(self.stream("s"))
        limits = [
            {"key": rng.choice("abcd"), "name": i, "lim": float(self.decimal(4))} for i in range(5)
        ]
        self.tables["lim"] = limits
        term = ("cmp", "=", ("col", "a", "id"), ("col", "l", "key"))
        form = self.forms()
        where = ("cmp", rng.choice(("<", ">=")), self.attribute([source]), ("col", "l", "lim"))
        items = {
            "id0": ("col", "a", "id"),
            "name": ("col", "l", "name"),
            "u": ("-", ("col", "a", "x"), ("col", "l", "lim")),
        }
        text_ = f"{source.sql} JOIN lim l ON {condition_text(term)}"
        sides: list[tuple[str, Sequence[Segment | Row]]] = [("a", segments), ("l", limits)]
        condition = ("and", term, where)
        return self.finish(items, text_, where, sides, ("id0", "name"), form, condition)

    def nested(self) -> Case:
        """A modeled subquery, and a condition on what it gives."""
        source = self.model("s", "a")
        segments = source.segments(self.stream("s"))
        form = self.forms()
        points = form[0] != "sample"
        inner, e = self.condition([source], points, 0.2, 1), self.moving([source])
        op, level = self.rng.choice(("<", "<=", ">", ">=")), ("num", self.decimal(4))
        outer = ("cmp", op, ("col", "d", "u"), level)
        items = {"id0": ("col", "a", "id"), "u": e}
        below = f"SELECT a.id AS id0, {text(e)} AS u FROM {source.sql}"
        sql = f"SELECT d.id0 AS id0, d.u AS u FROM ({below} WHERE {condition_text(inner)}) AS d"
        sql += f" WHERE {condition_text(outer)}"
        sql += f" SAMPLE EVERY {form[1] // MS} MILLISECONDS" if form[0] == "sample" else ""
        both = ("and", inner, ("cmp", op, e, level))

        def answer(at: int) -> Answer:
            return joined([("a", segments)], both, items, ("id0",), at)

        return self.made(sql, form, ("id0",), answer)

    def groups(self, paired: bool = False) -> Case:
        """Aggregates over the keys that are alive at an instant."""
        rng = self.rng
        mine = [self.model("s", "a")]
        self.stream("s", rng.randint(3, 22) if not paired else rng.randint(3, 10))
        text_, on = mine[0].sql, None
        if paired:
            mine.append(self.model("s", "b"))
            on = ("cmp", "<>", ("col", "a", "id"), ("col", "b", "id"))
            text_ = f"{mine[0].sql} JOIN {mine[1].sql} ON {condition_text(on)}"
        sides = [(m.alias, m.segments(self.rows["s"])) for m in mine]
        form = self.forms()
        by = rng.choice((None, "g", "n")) if not paired else rng.choice((None, "id", "g"))
        written = rng.choice((None, self.condition(mine, False, 0.3, 1)))
        parts = [c for c in (on, written) if c is not None]
        where = ("and", *parts) if parts else None
        function = rng.choice(("sum", "avg", "min", "max"))
        e = rng.choice((("col", "a", "x"), self.moving(mine)))
        if function in ("min", "max"):
            e = ("-", ("col", "b", "x"), ("col", "a", "x")) if paired else ("col", "a", "x")
        aggregates = {"u": (function, e)}
        having = None
        if rng.random() < 0.35:
            level = ("num", self.decimal(4))
            having = ("cmp", rng.choice("<>"), ("col", "", "u"), level)
        listed = f"{function}({text(e)}) AS u"
        sql = f"SELECT {'' if by is None else f'a.{by} AS {by}, '}{listed} FROM {text_}"
        sql += f" WHERE {condition_text(written)}" if written is not None else ""
        sql += "" if by is None else f" GROUP BY a.{by}"
        if having is not None:
            sql += f" HAVING {function}({text(e)}) {having[1]} {text(having[3])}"
        sql += f" SAMPLE EVERY {form[1] // MS} MILLISECONDS" if form[0] == "sample" else ""

        def answer(at: int) -> Answer:
            return _whole(grouped(sides, where, by, aggregates, having, at))

        return self.made(sql, form, () if by is None else (by,), answer)

    def windows(self, filtered: bool) -> Case:
        """Aggregates over what a window covers (17.5)."""
        rng = self.rng
        width = rng.choice((S, 2 * S, 3500 * MS, 6 * S))
        how = rng.choice(("slide", "slide", "sample", "relation"))
        step = rng.choice((S, 500 * MS, 2 * S))
        seconds = f"{width // MS} MILLISECONDS"
        window = f"[RANGE {seconds}]"
        if how == "slide":
            window = f"[SIZE {seconds} ADVANCE {step // MS} MILLISECONDS]"
        source = self.model("s", "a", window, plain=True)
        segments = source.segments(self.stream("s"))
        by = rng.choice((None, "id", "id", "g"))
        functions = ["integral", "sum", "min", "max"]
        functions += ["avg"] if how != "relation" else []
        functions += ["coverage"] if not filtered else []
        function = rng.choice(functions)
        if filtered and rng.random() < 0.4:
            function = "time"
        where = ("x", rng.choice("<>"), self.decimal(3)) if filtered else None
        having = None
        if how != "relation" and rng.random() < 0.3:
            having = ("u", rng.choice("<>"), self.decimal(3))
        whole = Windowed(
            source, segments, width, by, {"u": (function, "x")}, where, having, how != "slide"
        )
        call = "integral(1)" if function == "time" else f"{function}(a.x)"
        word = "RSTREAM " if how == "slide" else ""
        sql = f"SELECT {word}{'' if by is None else f'a.{by} AS {by}, '}{call} AS u"
        sql += f" FROM {source.sql}"
        sql += f" WHERE a.x {where[1]} {number(where[2])}" if where is not None else ""
        sql += "" if by is None else f" GROUP BY a.{by}"
        sql += f" HAVING {call} {having[1]} {number(having[2])}" if having is not None else ""
        sql += f" SAMPLE EVERY {step // MS} MILLISECONDS" if how == "sample" else ""
        ident = () if by is None else (by,)
        return self.made(sql, (how, step if how != "relation" else 0), ident, whole.answer)

    def distance(self) -> Case:
        """Means and integrals of square roots over windows that slide (17.21, 16.4)."""
        rng = self.rng
        width = rng.choice((S, 2 * S, 3500 * MS, 6 * S))
        step = rng.choice((S, 500 * MS, 2 * S))
        window = f"[SIZE {width // MS} MILLISECONDS ADVANCE {step // MS} MILLISECONDS]"
        shape = rng.choice(("pairs", "pairs", "below", "origin", "curve"))
        inside = "" if shape == "below" else window
        source = self.model("s", "a", inside, plain=True)
        if shape != "curve":
            line = (("c0", ONE), ("c1", ONE))
            across = (("c1", Fraction(2)), ("c0", Fraction(-1, 2)))
            source = replace(source, terms={"x": line, "y": across})
        count = rng.randint(3, 10) if shape in ("pairs", "below") else rng.randint(3, 22)
        segments = source.segments(self.stream("s", count))
        function = rng.choice(("avg", "avg", "integral", "sum"))
        having = (rng.choice("<>"), abs(self.decimal(9))) if rng.random() < 0.4 else None
        op = rng.choice(("<", "<>"))
        if shape in ("pairs", "below"):
            by: tuple[str, ...] = rng.choice((("i", "j"), ("i",), ()))
            root = "sqrt(pow(a.x - b.x, 2) + pow(a.y - b.y, 2))"
            other = replace(source, alias="b")
            from_, found = (
                f"{source.sql} JOIN {other.sql} ON a.id {op} b.id",
                distances(segments, op),
            )
            keys = {"i": "a.id", "j": "b.id"}
        else:
            by = rng.choice(((), ("id",), ("g",)))
            root = "sqrt(a.x)" if shape == "curve" else "sqrt(a.x * a.x + a.y * a.y)"
            from_, keys = source.sql, {c: f"a.{c}" for c in by}
            curves = [
                s.curves["x"] if shape == "curve" else squares(s.curves.values()) for s in segments
            ]
            found = (replace(s, curves={"q": q}) for s, q in zip(segments, curves, strict=True))
        if shape == "below":
            listed = ", ".join(f"{e} AS {c}" for c, e in keys.items())
            from_ = f"(SELECT {listed}, {root} AS d FROM {from_}) {window} AS p"
            root, keys = "p.d", {c: f"p.{c}" for c in keys}
        form = rng.choice(("slide", "slide", "relation", "changes"))
        columns = "".join(f"{keys[c]} AS {c}, " for c in by)
        call = f"{function}({root})"
        sql = f"SELECT {'RSTREAM ' if form == 'slide' else ''}{columns}{call} AS u FROM {from_}"
        sql += f" GROUP BY {', '.join(keys[c] for c in by)}" if by else ""
        sql += f" HAVING {call} {having[0]} {number(having[1])}" if having is not None else ""
        whole = Rooted(tuple(found), width, step, by, function, having)
        return self.made(sql, (form, step), by, whole.answer)

    def fit(self) -> Case:
        """Only the contract: within the bound at tuples, pieces in cells (17.4, 17.11)."""
        rng = self.rng
        rows = self.stream("s", rng.randint(10, 40))
        bound, cell = abs(self.decimal(2)), rng.choice((2 * S, 5 * S, 60 * S))
        degree = rng.choice((0, 1, 1, 2, 3))
        option = " WITH (fit = 'swing')" if degree == 1 and rng.random() < 0.5 else ""
        sql = f"SELECT a.id AS id0, a.c0 AS u FROM s AS a MODEL (FIT c0 DEGREE {degree} "
        sql += f"WITHIN {number(bound)} EVERY {cell // S} SECONDS){option}"
        mine = replace(self.made(sql, ("fit", 0), ("id0",), lambda at: Answer()))
        stamps = tuple(sorted({r["ts"] for r in rows}))
        until = mine.until + 61 * S
        return replace(mine, instants=stamps, bound=bound, cell=cell, until=until)

    def eager(self) -> Case:
        """Predictions as a stream (17.1): what the newest prediction of a key says of an instant is
        what the answer is then."""
        rng = self.rng
        horizon = rng.choice((3 * S, 8 * S))
        if rng.random() < 0.5:
            source = replace(self.model("s", "a", plain=True), horizon=horizon)
            segments = source.segments(self.stream("s"))
            where = self.condition([source], False, 0.2, 1)
            items = {"id0": ("col", "a", "id")}
            sides: Any = [("a", segments)]
            return self.finish(items, source.sql, where, sides, ("id0",), ("eager", 0), where,
                               " WITH (release = 'eager')")  # fmt: skip
        mine = [replace(self.model("sr"[i], "ab"[i], plain=True), horizon=horizon) for i in (0, 1)]
        for m in mine:
            self.stream(m.stream, rng.randint(3, 10))
        term = ("cmp", rng.choice(("=", "<>")), ("col", "a", "id"), ("col", "b", "id"))
        where = ("cmp", rng.choice("<>"), ("col", "a", "x"), ("col", "b", "x"))
        items = {"id0": ("col", "a", "id"), "id1": ("col", "b", "id")}
        text_ = f"{mine[0].sql} JOIN {mine[1].sql} ON {condition_text(term)}"
        sides = [(m.alias, m.segments(self.rows[m.stream])) for m in mine]
        return self.finish(items, text_, where, sides, ("id0", "id1"), ("eager", 0),
                           ("and", term, where), " WITH (release = 'eager')")  # fmt: skip

    def error(self) -> Case:
        """Tuples that are absorbed, and rows that are sure or maybe."""
        rng = self.rng
        terms = {"c0": (("c0", ONE), ("c1", ONE), ("c2", ONE))[: rng.randint(1, 3)]}
        source = replace(self.model("s", "a"), terms=terms)
        rows = {(r["id"], r["ts"]): r for r in self.stream("s", rng.randint(8, 30))}
        self.rows["s"] = sorted(map(self.smooth, rows.values()), key=lambda r: r["ts"])
        bound = Fraction(rng.choice((0.37, 1.23, 3.017)))
        items: dict[str, Expr] = {"id0": ("col", "a", "id"), "u": ("col", "a", "c0")}
        if rng.random() < 0.4:
            items["g"] = ("col", "a", "g")
        segments = source.absorbing(self.rows["s"], "c0", bound, ["g"] if "g" in items else [])
        level = ("num", self.decimal(4))
        ops = ["<", "<=", ">", ">=", "=", "<>"]
        low, high = sorted((self.decimal(4), self.decimal(4)))
        condition = rng.choice((
            ("cmp", rng.choice(ops), items["u"], level),
            ("not", ("cmp", rng.choice(ops), items["u"], level)),
            ("between", items["u"], ("num", low), ("num", high)),
        ))  # fmt: skip
        form = (rng.choice(("relation", "changes")), 0)

        def answer(at: int) -> Answer:
            return within_bounds("a", segments, condition, bound, items, ("id0",), at)

        listed = ", ".join(f"{text(e)} AS {c}" for c, e in items.items())
        sql = f"SELECT {listed} FROM {source.sql} WHERE {condition_text(condition)} "
        return self.made(sql + f"ERROR a.c0 WITHIN {number(bound)}", form, ("id0",), answer)

    def smooth(self, row: Row) -> Row:
        """Values that do not jump, so that some tuples are absorbed."""
        if row["c0"] is None or self.rng.random() < 0.2:
            return row
        return {**row, "c0": round(1 + row["c0"] / 5, 2), "c1": self.rng.choice((0.0, 0.1, -0.1))}


def _whole(answer: Answer) -> Answer:
    """Groups are known by plain values."""
    for rows in (answer.certain, answer.possible):
        for ident in list(rows):
            values = rows.pop(ident)
            rows[_plain_ident(ident)] = {c: exact_or_plain(v) for c, v in values.items()}
    answer.loose = {_plain_ident(i) for i in answer.loose}
    return answer


def _plain_ident(ident: Ident) -> Ident:
    return tuple(int(i.v) if isinstance(i, Num) else i for i in ident)


def exact_or_plain(found: Any) -> Any:
    return exact_value(found) if isinstance(found, Num) else found


def _unquoted(sql: str) -> str:
    """Texts are written with quotes: `'.p` is 'p'."""
    return sql.replace("'.p", "'p'")
