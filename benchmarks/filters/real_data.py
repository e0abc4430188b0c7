"""Real data: the orders that `auto` chooses, what they save, and the return on adapting.

Rows come in the order of their times, cut into epochs, without Spark; predicates are what a user
would ask of such a stream, in the order of the text.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.json as pajson

from common.harness import Report
from thalweg.testing import Runner

EPOCHS = 20


@dataclass(frozen=True)
class Case:
    name: str
    table: pa.Table
    where: str


def run(report: Report) -> None:
    folder = Path(os.environ.get("THALWEG_SHARED_DATA", Path(__file__).parents[3] / "shared/data"))
    if not folder.exists():
        report.progress(f"real data: skipped, there is no {folder.name} folder")
        return
    for case in (_flights(folder), _edits(folder), _taxi(folder)):
        report.progress(f"real data: {case.name}")
        _compare(report, case)


def _compare(report: Report, case: Case) -> None:
    found = {}
    for option in ("auto", "fixed"):
        runner = Runner(epochs=EPOCHS)
        runner.stream("s", case.table)
        sql = f"SELECT ts FROM s WHERE {case.where} WITH (filters = '{option}')"
        query = runner.query(sql, "q")
        runner.run()
        found[option] = query.stats()
        rows = query.results().num_rows
        report.row(case.name, _system(option), "results", "rows", rows)
        spent = sum(v for k, v in found[option]["counts"].items() if k.startswith("evaluations:"))
        extra = sum(v for k, v in found[option]["counts"].items() if k.startswith("profiled:"))
        per_row = (spent + extra) / case.table.num_rows
        report.row(case.name, _system(option), "evaluations per row", "", per_row)
        seconds = found[option]["adapt"]["filters"][0]["seconds"]
        report.row(case.name, _system(option), "filter time", "ms", 1e3 * seconds)
    learned = found["auto"]["adapt"]["filters"][0]
    report.progress(f"  order: {' → '.join(learned['order'])}")
    report.progress(f"  best static: {' → '.join(learned['best_static_order'])}")
    report.row(case.name, "thalweg auto", "switches", "", found["auto"]["adapt"]["switches"])
    gain = learned["return_on_adapting"]
    report.row(case.name, "thalweg auto", "return on adapting (estimate)", "x", gain)


def _system(option: str) -> str:
    return "thalweg auto" if option == "auto" else "order of the text"


def _flights(folder: Path) -> Case:
    with gzip.open(folder / "nycflights13/flights.csv.gz") as file:
        table = pacsv.read_csv(file, convert_options=pacsv.ConvertOptions(null_values=["NA", ""]))
    table = _stamped(table, table["time_hour"].cast(pa.timestamp("us", "UTC")))
    where = (
        "dest LIKE '%A%' AND upper(carrier) <> 'WN' AND distance > 500 "
        "AND sqrt(distance * air_time) > 300 AND dep_delay > 15 AND arr_delay > 15 "
        "AND hour >= 17 AND origin = 'EWR'"
    )
    return Case("flights", table, where)


def _edits(folder: Path) -> Case:
    with gzip.open(folder / "wikiticker/edits-2015-09-12.json.gz") as file:
        table = pajson.read_json(file)
    stamps = pc.strptime(
        pc.utf8_slice_codeunits(table["time"].cast(pa.string()), 0, 19),
        format="%Y-%m-%dT%H:%M:%S", unit="us",
    ) if not pa.types.is_timestamp(table["time"].type) else table["time"]  # fmt: skip
    table = _stamped(table, stamps.cast(pa.timestamp("us", "UTC")))
    where = (
        "lower(comment) LIKE '%revert%' AND length(page) > 12 AND NOT isRobot AND delta < 0 "
        "AND namespace = 'Main' AND channel = '#en.wikipedia'"
    )
    return Case("edits", table, where)


def _taxi(folder: Path) -> Case:
    tables = [pacsv.read_csv(f) for f in sorted((folder / "taxi").glob("*.csv"))]
    table = pa.concat_tables(tables, promote_options="permissive")
    pickup = next(n for n in table.column_names if "pickup_datetime" in n)
    table = _stamped(table, table[pickup].cast(pa.timestamp("us", "UTC")))
    where = (
        "tip_amount / total_amount > 0.1 AND total_amount > 0 AND trip_distance > 2 "
        "AND passenger_count >= 2 AND payment_type = 1 AND hour(ts) >= 22"
    )
    return Case("taxi", table, where)


def _stamped(table: pa.Table, stamps: pa.ChunkedArray) -> pa.Table:
    """With `ts`, in its order, without columns that have no type we know."""
    kept = [f.name for f in table.schema if not pa.types.is_null(f.type) and f.name != "ts"]
    plain = [n for n in kept if not pa.types.is_timestamp(table.schema.field(n).type)]
    return table.select(plain).append_column("ts", stamps).sort_by("ts")
