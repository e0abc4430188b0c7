"""A picture of segments, as SVG: functions of time, the bounds around them, tuples beneath."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.errors import ConfigError, ThalwegError, did_you_mean
from thalweg.instants import Ints
from thalweg.models.polynomials import Floats, offset, value
from thalweg.models.segments import SegmentSource, sources_of
from thalweg.plan.physical import QueryPlan
from thalweg.store.packs import TIME

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 960, 420, 76, 150, 44, 48
MOST_KEYS, MOST_SEGMENTS, MOST_TUPLES, POINTS = 8, 2_000, 4_000, 24
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#555555")


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG image."""

    svg: str

    def save(self, path: str | Path) -> Path:
        """Write it to a file."""
        target = Path(path)
        target.write_text(self.svg, encoding="utf-8")
        return target

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True)
class _Piece:
    """A segment as points of its curve, and how far from it tuples may be."""

    at: Ints
    values: Floats
    bound: float


@dataclass(slots=True)
class _Line:
    """What is drawn of one key."""

    label: str
    pieces: list[_Piece]
    tuples: tuple[Ints, Floats] = (np.empty(0, np.int64), np.empty(0))


Kept = Callable[[str], pa.Table]
"""The rows that are kept of a stream."""


def picture_of(
    name: str, plan: QueryPlan, segments: pa.Table, kept: Kept, column: str | None
) -> Picture:
    """The segments of one modeled column of a query, at most of so many keys."""
    sources = [source for _, source in sources_of(plan)]
    if not sources:
        raise ConfigError(
            f"query {name} reads no source with MODEL", remedy="plot a query over models"
        )
    source, attribute = _chosen(sources, column)
    alias = source.leaf.alias
    bare = attribute.split(".", 1)[1]
    mine = segments.filter(pc.equal(segments.column("source"), alias))
    keys = [k.split(".", 1)[1] for k in source.key]
    number = [a.name for a in source.attributes].index(attribute)
    rows = _rows(source, bare, kept)
    lines, others = _lines(mine, keys, bare, number, _newest(rows))
    _add_tuples(lines, keys, bare, rows)
    shown = f"{alias}.{bare} of {len(lines)} key{'' if len(lines) == 1 else 's'}"
    if others:
        shown += f", those with most segments ({others} more are not drawn)"
    return Picture(_drawn(f"{name}: {shown}", bare, lines))


def _chosen(sources: Sequence[SegmentSource], column: str | None) -> tuple[SegmentSource, str]:
    """The modeled column of this name, with or without its source's."""
    found = {a.name: s for s in sources for a in s.attributes}
    wanted = next(iter(found)) if column is None else column
    for name, source in found.items():
        if wanted in (name, name.split(".", 1)[1]):
            return source, name
    raise ConfigError(f"no modeled column {wanted}", remedy=did_you_mean(wanted, list(found)))


def _lines(
    segments: pa.Table, keys: Sequence[str], column: str, number: int, newest: int
) -> tuple[list[_Line], int]:
    """The keys with the most segments, and how many others there are. Segments that last are drawn
    as far as something is known."""
    rows = segments.to_pylist()
    by_key: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        by_key.setdefault(tuple(row[k] for k in keys), []).append(row)
    chosen = sorted(by_key.items(), key=lambda item: (-len(item[1]), str(item[0])))[:MOST_KEYS]
    last = max((_micros(r["end"] or r["start"]) for r in rows), default=0)
    last = max(last, newest)
    most = max(MOST_SEGMENTS // max(len(chosen), 1), 1)
    lines = [
        _Line(", ".join(map(str, key)), [_piece(r, column, number, last) for r in some[-most:]])
        for key, some in sorted(chosen, key=lambda item: str(item[0]))
    ]
    return lines, len(by_key) - len(chosen)


def _piece(row: dict[str, Any], column: str, number: int, last: int) -> _Piece:
    start = _micros(row["start"])
    end = last if row["end"] is None else _micros(row["end"])
    coefficients = np.array([row[column]])
    points = 2 if coefficients.shape[1] <= 2 else POINTS
    at = np.linspace(start, max(end, start), points).astype(np.int64)
    shape = (points, coefficients.shape[1])
    values = value(np.broadcast_to(coefficients, shape), offset(np.full(points, start), at))
    return _Piece(at, values, row["bound"][number] or 0.0)


def _micros(instant: datetime) -> int:
    return int(pa.scalar(instant, pa.timestamp("us", "UTC")).value)


def _rows(source: SegmentSource, column: str, kept: Kept) -> pa.Table | None:
    """The tuples that the stream still has, where the column is one of it."""
    if not source.leaf.is_stored:
        return None
    try:
        rows = kept(source.leaf.relation)
    except ThalwegError:
        return None
    return rows if column in rows.column_names and rows.num_rows else None


def _newest(rows: pa.Table | None) -> int:
    return 0 if rows is None else int(pc.max(rows.column(TIME).cast(pa.int64())).as_py())


def _add_tuples(
    lines: list[_Line], keys: Sequence[str], column: str, rows: pa.Table | None
) -> None:
    if rows is None:
        return
    for line in lines:
        mask = np.ones(rows.num_rows, np.bool_)
        for key, text in zip(keys, line.label.split(", "), strict=True):
            same = pc.equal(rows.column(key).cast(pa.string()), text)
            mask &= same.fill_null(False).to_numpy(zero_copy_only=False)
        some = rows.filter(pa.array(mask)).select([column, TIME])
        values = some.column(column).cast(pa.float64()).to_numpy()
        at = some.column(TIME).cast(pa.int64()).to_numpy()
        good = np.flatnonzero(np.isfinite(values))[-MOST_TUPLES // max(len(lines), 1) :]
        line.tuples = (at[good], values[good])


# -- drawing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Axes:
    since: int
    until: int
    low: float
    high: float

    def x(self, at: Any) -> Any:
        span = max(self.until - self.since, 1)
        return LEFT + (np.asarray(at) - self.since) / span * (WIDTH - LEFT - RIGHT)

    def y(self, values: Any) -> Any:
        span = (self.high - self.low) or 1.0
        return HEIGHT - BOTTOM - (np.asarray(values) - self.low) / span * (HEIGHT - TOP - BOTTOM)

    def inside(self, at: Ints, values: Floats) -> Iterator[tuple[float, float]]:
        """Points that are on the picture."""
        known = (at >= self.since) & (at <= self.until)
        known &= (values >= self.low) & (values <= self.high)
        return zip(self.x(at[known]), self.y(values[known]), strict=True)


def _drawn(title: str, column: str, lines: Sequence[_Line]) -> str:
    axes = _axes(lines)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
        *_grid(axes, column),
    ]
    for number, line in enumerate(lines):
        parts += _of_line(axes, line, COLORS[number % len(COLORS)])
    return "\n".join([*parts, *_legend(lines), "</svg>"])


def _axes(lines: Sequence[_Line]) -> _Axes:
    pieces = [p for line in lines for p in line.pieces]
    if not pieces:
        return _Axes(0, 1, 0.0, 1.0)
    since = min(int(p.at[0]) for p in pieces)
    until = max(int(p.at[-1]) for p in pieces)
    low = min(float(p.values.min()) - p.bound for p in pieces)
    high = max(float(p.values.max()) + p.bound for p in pieces)
    room = 0.04 * ((high - low) or abs(high) or 1.0)
    return _Axes(since, until, low - room, high + room)


def _grid(axes: _Axes, column: str) -> Iterator[str]:
    bottom = HEIGHT - BOTTOM
    for share in np.linspace(0, 1, 6):
        at = int(axes.since + share * (axes.until - axes.since))
        x = float(axes.x(at))
        yield f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{bottom}" stroke="#eee"/>'
        shown = _time(at, axes.until - axes.since)
        yield f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{shown}</text>'
        level = axes.low + share * (axes.high - axes.low)
        y = float(axes.y(level))
        yield f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#eee"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{level:.5g}</text>'
    yield f'<text x="{LEFT}" y="{TOP - 8}" fill="#555">{escape(column)}</text>'
    yield (
        f'<text x="{WIDTH - RIGHT}" y="{bottom + 36}" text-anchor="end" fill="#555">'
        f"time (UTC), from {datetime.fromtimestamp(axes.since / 1e6, UTC):%Y-%m-%d}</text>"
    )


def _time(at: int, span: int) -> str:
    moment = datetime.fromtimestamp(at / 1e6, UTC)
    if span > 3 * 86_400_000_000:
        return f"{moment:%m-%d %H:%M}"
    return f"{moment:%H:%M:%S}" if span > 5_000_000 else f"{moment:%M:%S.%f}"[:-3]


def _of_line(axes: _Axes, line: _Line, color: str) -> Iterator[str]:
    for piece in line.pieces:
        x = axes.x(piece.at)
        if piece.bound:
            up, down = axes.y(piece.values + piece.bound), axes.y(piece.values - piece.bound)
            corners = _points(np.append(x, x[::-1]), np.append(up, down[::-1]))
            yield f'<polygon points="{corners}" fill="{color}" fill-opacity="0.15"/>'
    for at, found in axes.inside(*line.tuples):
        yield f'<circle cx="{at:.1f}" cy="{found:.1f}" r="1.4" fill="{color}" fill-opacity="0.6"/>'
    for piece in line.pieces:
        x, y = axes.x(piece.at), axes.y(piece.values)
        style = f'fill="none" stroke="{color}" stroke-width="1.5"'
        yield f'<polyline points="{_points(x, y)}" {style}/>'
        yield f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="2.4" fill="white" stroke="{color}"/>'


def _points(x: Floats, y: Floats) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _legend(lines: Sequence[_Line]) -> Iterator[str]:
    x = WIDTH - RIGHT + 14
    for number, line in enumerate(lines):
        y, color = TOP + 12 + 18 * number, COLORS[number % len(COLORS)]
        yield f'<line x1="{x}" y1="{y}" x2="{x + 16}" y2="{y}" stroke="{color}" stroke-width="2"/>'
        yield f'<text x="{x + 22}" y="{y + 4}">{escape(line.label[:18])}</text>'
    y = TOP + 26 + 18 * len(lines)
    notes = ["○ a segment begins"]
    if any(p.bound for line in lines for p in line.pieces):
        notes.append("▒ within its bound")
    if any(len(line.tuples[0]) for line in lines):
        notes.append("· tuples")
    for number, note in enumerate(notes):
        yield f'<text x="{x}" y="{y + 16 * number}" fill="#555">{note}</text>'
