"""Following a query of this engine from Spark."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession

from thalweg.runtime.session.core import EngineCore
from thalweg.spark.datasource import NAME


def followed_stream(spark: SparkSession, core: EngineCore, path: str, name: str) -> DataFrame:
    """The results of a query as a streaming DataFrame. One that is run together with others gets
    output of its own from now on."""
    name = core.queries.find(name).name
    if core.admission.is_shared(name):
        apart = partial(core.alteration.set_options, name, {"share": "off"})
        core.changes.between_epochs(apart)
    if not core.changes.is_running:
        core.changes.commit()  # the reader looks for the query on the path
    return spark.readStream.format(NAME).option("query", name).load(path)
