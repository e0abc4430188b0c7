"""Window kinds, one per file. `WINDOW_KINDS` is what the parser offers, in the order it asks."""

from thalweg.windows import landmark, range, rows, session, size
from thalweg.windows.protocol import WindowKind

WINDOW_KINDS: list[WindowKind] = [
    *range.KINDS,
    *rows.KINDS,
    *session.KINDS,
    *landmark.KINDS,
    *size.KINDS,
]
