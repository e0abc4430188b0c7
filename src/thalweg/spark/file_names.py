"""FROM FILES: Spark tracks the names, tasks read the content with pyarrow."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from thalweg.errors import SourceError
from thalweg.plan.catalog import SourceSpec
from thalweg.runtime.sources.found_files import is_single_file, pattern_of

FOR_EVER = "36500d"
BINARY_FILE = "path STRING, modificationTime TIMESTAMP, length BIGINT, content BINARY"


def file_names(spark: SparkSession, spec: SourceSpec) -> DataFrame:
    """A streaming DataFrame of file names; the content is not read by Spark."""
    options = {k.lower(): str(v) for k, v in spec.options}
    reader = spark.readStream.format("binaryFile").schema(BINARY_FILE)  # streams infer nothing
    # Spark forgets, and then ignores, files a week older than the newest; every file counts here
    reader = reader.option("maxFileAge", FOR_EVER)
    folder, pattern = _watched(spec)
    reader = reader.option("pathGlobFilter", pattern)
    if "max_files_per_trigger" in options:
        reader = reader.option("maxFilesPerTrigger", options["max_files_per_trigger"])
    try:
        return reader.load(folder).select("path")
    except AnalysisException as error:
        raise SourceError(
            f"FROM FILES '{spec.target}' cannot be followed: {str(error).splitlines()[0]}",
            remedy="create the folder first, or mend the path",
        ) from error


def _watched(spec: SourceSpec) -> tuple[str, str]:
    """The folder and the names in it; of a single file its folder, and its name alone."""
    if not is_single_file(spec):
        return spec.target, pattern_of(spec)
    folder, _, name = spec.target.rpartition("/")
    folder = folder or ("/" if spec.target.startswith("/") else ".")
    return folder, "".join(f"\\{c}" if c in "{}[]*?^\\" else c for c in name)
