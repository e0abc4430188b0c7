"""A plain line chart as SVG: a few series, a legend, two axes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

WIDTH, HEIGHT = 760, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 40, 48
COLOURS = ("#1b6ca8", "#d1495b", "#edae49", "#66a182", "#5d5179", "#333333")
Series = tuple[np.ndarray, np.ndarray]


def line_chart(
    path: Path, title: str, x_label: str, y_label: str, series: Mapping[str, Series]
) -> None:
    """Write the chart; the y axis begins at the least value shown."""
    xs = np.concatenate([x for x, _ in series.values()])
    ys = np.concatenate([y for _, y in series.values()])
    box = (float(xs.min()), float(xs.max()), float(ys.min()) * 0.97, float(ys.max()) * 1.03)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{title}</text>',
        *_axes(box, x_label, y_label),
    ]
    for i, (name, (x, y)) in enumerate(series.items()):
        parts += _line(box, name, x, y, COLOURS[i % len(COLOURS)], i)
    path.write_text("\n".join([*parts, "</svg>", ""]))


def _tick(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.3g}"


def _place(box: tuple[float, float, float, float], x: float, y: float) -> tuple[float, float]:
    across = (x - box[0]) / (box[1] - box[0] or 1)
    up = (y - box[2]) / (box[3] - box[2] or 1)
    return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)


def _ticks(low: float, high: float) -> np.ndarray:
    """Round numbers between two values, about five of them."""
    rough = (high - low) / 5
    scale = 10 ** np.floor(np.log10(rough))
    step = scale * min((1, 2, 5, 10), key=lambda m: abs(m * scale - rough))
    return np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step


def _axes(box: tuple[float, float, float, float], x_label: str, y_label: str) -> list[str]:
    parts = []
    for x in _ticks(box[0], box[1]):
        at, foot = _place(box, x, box[2])
        parts.append(
            f'<text x="{at:.0f}" y="{foot + 16:.0f}" text-anchor="middle">{_tick(x)}</text>'
        )
    for y in _ticks(box[2], box[3]):
        left, at = _place(box, box[0], y)
        right, _ = _place(box, box[1], y)
        parts.append(f'<path d="M{left:.0f} {at:.0f}H{right:.0f}" stroke="#ddd"/>')
        parts.append(
            f'<text x="{left - 6:.0f}" y="{at + 4:.0f}" text-anchor="end">{_tick(y)}</text>'
        )
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{x_label}</text>')
    parts.append(
        f'<text x="14" y="{HEIGHT / 2:.0f}" text-anchor="middle" '
        f'transform="rotate(-90 14 {HEIGHT / 2:.0f})">{y_label}</text>'
    )
    return parts


def _line(
    box: tuple[float, float, float, float], name: str, x: np.ndarray, y: np.ndarray,
    colour: str, number: int,
) -> list[str]:  # fmt: skip
    points = " ".join(
        "{:.1f},{:.1f}".format(*_place(box, float(a), float(b))) for a, b in zip(x, y, strict=True)
    )
    at = TOP + 16 + 18 * number
    edge = WIDTH - RIGHT + 16
    return [
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>',
        f'<path d="M{edge} {at - 4}h18" stroke="{colour}" stroke-width="2.5"/>',
        f'<text x="{edge + 24}" y="{at}">{name}</text>',
    ]
