"""FROM SPARK 'format': any of Spark's streaming sources as a stream.

Without FORMAT the source's own columns are taken. With FORMAT json or csv each record's `value` (as
Kafka has it) is read as text in that format; a record that does not fit is a reject.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from thalweg.errors import SourceError, TypeMismatch
from thalweg.plan.catalog import StreamDef
from thalweg.plan.logical import Field, Schema
from thalweg.plan.types import type_named
from thalweg.secrets import with_values
from thalweg.spark.ingest import MALFORMED

NEED_SCHEMA = ("json", "csv", "parquet", "orc", "avro", "text", "xml")
_CORRUPT = "__corrupt"


def spark_stream(spark: SparkSession, stream: StreamDef) -> DataFrame:
    """The streaming DataFrame of a stream declared with FROM SPARK."""
    spec = stream.source
    reader = spark.readStream.format(spec.target)
    for key, value in with_values(spec.options):
        reader = reader.option(key, str(value).lower() if isinstance(value, bool) else value)
    if spec.target in NEED_SCHEMA and spec.format is None:
        reader = reader.schema(ddl(stream.fields))
    try:
        frame = reader.load()
    except AnalysisException as error:
        raise SourceError(
            f"FROM SPARK '{spec.target}' cannot be followed: {str(error).splitlines()[0]}",
            remedy="check the options; Kafka and other connectors bring a package of their own, "
            "which the session must have (spark.jars.packages)",
        ) from error
    if spec.format is not None:
        return _decoded(frame, stream, spec.format)
    return _checked(frame, stream)


def ddl(fields: Schema) -> str:
    return ", ".join(f"`{f.name}` {f.type}" for f in fields)


def _checked(frame: DataFrame, stream: StreamDef) -> DataFrame:
    """The declared columns, which must be there with the declared types."""
    given = {f.name.lower(): f for f in frame.schema.fields}
    for field in stream.fields:
        found = given.get(field.name.lower())
        if found is None:
            raise SourceError(
                f"stream {stream.name}: the source has no column {field.name}",
                remedy=f"it has {', '.join(f.name for f in frame.schema.fields)}",
            )
        actual = _spark_field(found.name, found.dataType.simpleString(), True).type
        if actual != field.type:
            raise TypeMismatch(
                f"stream {stream.name}: column {field.name} is {actual} in the source, "
                f"declared {field.type}",
                remedy=f"declare it {actual}, and CAST in the queries",
            )
    return frame.select([F.col(f"`{f.name}`") for f in stream.fields])


def _decoded(frame: DataFrame, stream: StreamDef, form: str) -> DataFrame:
    """Each record's value read as JSON or CSV; what does not fit says so."""
    if "value" not in frame.columns:
        raise SourceError(
            f"stream {stream.name}: the source has no column value to read as {form}",
            remedy="drop FORMAT: the source has columns of its own",
        )
    text = F.col("value").cast("string")
    wanted = f"{ddl(stream.fields)}, {_CORRUPT} STRING"
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    schema = StructType.fromDDL(wanted)
    read = F.from_json if form == "json" else F.from_csv
    parsed = frame.select(
        text.alias("text"),
        read(text, schema if form == "json" else F.lit(wanted), options).alias("row"),
    )
    shown = F.concat(F.lit("malformed record: "), F.substring(F.col("text"), 1, 200))
    bad = F.col(f"row.{_CORRUPT}").isNotNull() | F.col("row").isNull()
    why = F.when(F.col("text").isNull(), F.lit("malformed record: no value")).when(bad, shown)
    columns = [F.col(f"row.`{f.name}`").alias(f.name) for f in stream.fields]
    return parsed.select(*columns, why.alias(MALFORMED))


def spark_fields(df: DataFrame) -> Schema:
    """The columns of a DataFrame in our types."""
    return tuple(_spark_field(f.name, f.dataType.simpleString(), f.nullable) for f in df.schema)


def _spark_field(name: str, text: str, nullable: bool) -> Field:
    word, _, rest = text.partition("(")
    numbers = [int(n) for n in rest.rstrip(")").split(",") if n.isdigit()]
    found = type_named(word, *numbers)
    if found is None:
        raise TypeMismatch(
            f"column {name} is of Spark type {text}, which Thalweg cannot read",
            remedy="select the columns you need, flatten or cast nested ones first",
        )
    return Field(name, found, nullable)
