"""Objects that move in straight lines: positions and speeds, a tuple of each object every step.

Every `tuples_a_segment` tuples an object chooses another velocity, objects at different times; in
between positions stray by less than a bound. Objects keep within a square, from whose edges they
bounce. Objects that follow another have its track, a little aside.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from models.trades import SECOND, START

SIDE = 10_000.0
"""Metres."""
BOUND = 1.0
SPEED = 100.0
"""Metres a second at most, in each direction."""


def moving_objects(
    objects: int,
    steps: int,
    step: int,
    tuples_a_segment: int,
    *,
    following: int = 0,
    seed: int = 0,
) -> pa.Table:
    """In the order of time: id, x, y, vx, vy, ts; `step` is in µs."""
    rng = np.random.default_rng(seed)
    seconds = step / SECOND
    phase = rng.integers(0, tuples_a_segment, objects)
    turns = (np.arange(steps)[:, np.newaxis] + phase) % tuples_a_segment == 0
    turns[0] = True
    fresh = rng.uniform(-SPEED, SPEED, (2, steps, objects))
    last = np.maximum.accumulate(np.where(turns, np.arange(steps)[:, np.newaxis], 0), axis=0)
    velocity = np.take_along_axis(fresh, np.broadcast_to(last, fresh.shape), axis=1)
    moved = np.cumsum(velocity * seconds, axis=1) - velocity * seconds
    place = rng.uniform(0, SIDE, (2, 1, objects)) + moved
    folded = np.mod(place, 2 * SIDE)
    back = folded > SIDE  # a mirror at each edge
    place = np.where(back, 2 * SIDE - folded, folded)
    velocity = np.where(back, -velocity, velocity)
    for i in range(following):
        leader, follower = 2 * i, 2 * i + 1
        place[:, :, follower] = place[:, :, leader] + 100.0
        velocity[:, :, follower] = velocity[:, :, leader]
    place = place + rng.uniform(-BOUND / 2, BOUND / 2, place.shape)
    ts = START + np.repeat(np.arange(steps) * step, objects)
    columns = {"x": place[0], "y": place[1], "vx": velocity[0], "vy": velocity[1]}
    return pa.table(
        {
            "id": np.tile(np.arange(objects), steps),
            **{name: values.ravel() for name, values in columns.items()},
            "ts": pa.array(ts, pa.timestamp("us", "UTC")),
        }
    )
