"""Aircraft of the shared data: positions of a day, in metres around the middle of the country.

Longitudes shrink by the cosine of the middle latitude (an error of at most 1 % of a distance within
2 degrees of it); speeds are those over ground, by track.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import thalweg

METRES_A_DEGREE = 111_195.0
KNOT = 0.514444
ABSENT = "the shared data is not here"


def shared_data() -> Path | None:
    """Where real data is, if it is: beside the checkout, or where the variable says."""
    named = os.environ.get("THALWEG_DATA")
    places = [Path(named)] if named else []
    places += [p / "shared" / "data" for p in Path(thalweg.__file__).resolve().parents]
    return next((p for p in places if (p / "adsb/switzerland.parquet").exists()), None)


def positions(folder: Path) -> pa.Table:
    """In the order of time: id, x, y, vx, vy, latitude, ts; rows without a position are left out,
    so is what an aircraft said twice at an instant."""
    table = pq.read_table(folder / "adsb/switzerland.parquet")
    ts = table["timestamp"].cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_numpy()
    ids = pc.dictionary_encode(table["icao24"].combine_chunks()).indices.to_numpy()
    columns = {
        n: table[n].cast(pa.float64()).to_numpy(zero_copy_only=False)
        for n in ("latitude", "longitude", "groundspeed", "track")
    }
    known = np.all([np.isfinite(v) for v in columns.values()], axis=0)
    order = np.lexsort((ids, ts))
    order = order[known[order]]
    same = (np.diff(ts[order], prepend=-1) == 0) & (np.diff(ids[order], prepend=-1) == 0)
    order = order[~same]
    latitude, longitude, speed, track = (v[order] for v in columns.values())
    middle = np.median(latitude)
    angle = np.radians(track)
    return pa.table(
        {
            "id": ids[order].astype(np.int64),
            "x": (longitude - np.median(longitude)) * METRES_A_DEGREE * np.cos(np.radians(middle)),
            "y": (latitude - middle) * METRES_A_DEGREE,
            "vx": speed * KNOT * np.sin(angle),
            "vy": speed * KNOT * np.cos(angle),
            "latitude": latitude,
            "ts": pa.array(ts[order], pa.timestamp("us", "UTC")),
        }
    )
