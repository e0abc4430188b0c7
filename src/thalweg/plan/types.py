"""The SQL types of the language and their Arrow counterparts.

Time is microseconds since 1970 UTC everywhere: a TIMESTAMP is an int64 count of them, an INTERVAL
is a difference of two.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from thalweg.errors import TypeMismatch


@dataclass(frozen=True, slots=True)
class DataType:
    """A SQL type; precision and scale matter to DECIMAL only, `element` to ARRAY only."""

    name: str
    precision: int = 0
    scale: int = 0
    element: DataType | None = None

    def __str__(self) -> str:
        if self.element is not None:
            return f"{self.name}<{self.element}>"
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        return self.name

    @property
    def is_integer(self) -> bool:
        return self.name in _INTEGER_BITS

    @property
    def is_float(self) -> bool:
        return self.name in ("FLOAT", "DOUBLE")

    @property
    def is_numeric(self) -> bool:
        return self.is_integer or self.is_float or self.name == "DECIMAL"

    @property
    def is_ordered(self) -> bool:
        """Whether one value is less than another; arrays and structs are only equal or not."""
        return self.element is None

    @property
    def bits(self) -> int:
        """Width of an integer type."""
        return _INTEGER_BITS[self.name]


@dataclass(frozen=True, slots=True)
class StructType(DataType):
    """STRUCT: named fields. Results may have it, streams and tables may not."""

    fields: tuple[tuple[str, DataType], ...] = ()

    def __str__(self) -> str:
        return f"STRUCT<{', '.join(f'{name}: {one}' for name, one in self.fields)}>"

    @property
    def is_ordered(self) -> bool:
        return False


_INTEGER_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}

LONGEST_TEXT = 1_000_000
"""How many characters functions that repeat text may give for one row."""

NULL = DataType("NULL")
BOOLEAN = DataType("BOOLEAN")
TINYINT = DataType("TINYINT")
SMALLINT = DataType("SMALLINT")
INT = DataType("INT")
BIGINT = DataType("BIGINT")
FLOAT = DataType("FLOAT")
DOUBLE = DataType("DOUBLE")
STRING = DataType("STRING")
BINARY = DataType("BINARY")
DATE = DataType("DATE")
TIMESTAMP = DataType("TIMESTAMP")
INTERVAL = DataType("INTERVAL")


def decimal(precision: int, scale: int) -> DataType:
    return DataType("DECIMAL", precision, scale)


def array_of(element: DataType) -> DataType:
    return DataType("ARRAY", element=element)


def struct_of(*fields: tuple[str, DataType]) -> StructType:
    return StructType("STRUCT", fields=fields)


_TO_ARROW = {
    NULL: pa.null(),
    BOOLEAN: pa.bool_(),
    TINYINT: pa.int8(),
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    TIMESTAMP: pa.timestamp("us", "UTC"),
    INTERVAL: pa.duration("us"),
}

_NAMES = {
    "BOOL": BOOLEAN,
    "BOOLEAN": BOOLEAN,
    "BYTE": TINYINT,
    "TINYINT": TINYINT,
    "SHORT": SMALLINT,
    "SMALLINT": SMALLINT,
    "INT": INT,
    "INTEGER": INT,
    "LONG": BIGINT,
    "BIGINT": BIGINT,
    "REAL": FLOAT,
    "FLOAT": FLOAT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "TEXT": STRING,
    "VARCHAR": STRING,
    "CHAR": STRING,
    "BINARY": BINARY,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
    "TIMESTAMP_LTZ": TIMESTAMP,
    "TIMESTAMPLTZ": TIMESTAMP,
    "TIMESTAMPTZ": TIMESTAMP,
    "TIMESTAMP_NTZ": TIMESTAMP,
    "TIMESTAMPNTZ": TIMESTAMP,
}


DECIMALS = ("DECIMAL", "NUMERIC", "DEC")


def type_named(name: str, precision: int = 10, scale: int = 0) -> DataType | None:
    """The type a SQL name stands for, None if there is none."""
    upper = name.upper()
    if upper in DECIMALS:
        return decimal(precision, scale)
    return _NAMES.get(upper)


def to_arrow(dtype: DataType) -> pa.DataType:
    if dtype.name == "DECIMAL":
        return pa.decimal128(dtype.precision, dtype.scale)
    if dtype.element is not None:
        return pa.list_(to_arrow(dtype.element))
    if isinstance(dtype, StructType):
        return pa.struct([(name, to_arrow(one)) for name, one in dtype.fields])
    return _TO_ARROW[dtype]


def of_result(dtype: pa.DataType) -> DataType:
    """The SQL type of a column of results, which may be a struct."""
    if pa.types.is_struct(dtype):
        return struct_of(*((f.name, of_result(f.type)) for f in dtype))
    return from_arrow(dtype)


def from_arrow(dtype: pa.DataType) -> DataType:
    """The SQL type of an Arrow column; timestamps of any unit are read as microseconds UTC."""
    if pa.types.is_dictionary(dtype):
        return from_arrow(dtype.value_type)
    if pa.types.is_timestamp(dtype):
        return TIMESTAMP
    if pa.types.is_date(dtype):
        return DATE
    if pa.types.is_duration(dtype):
        return INTERVAL
    if pa.types.is_decimal(dtype):
        return decimal(dtype.precision, dtype.scale)
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return STRING
    if pa.types.is_large_binary(dtype):
        return BINARY
    if pa.types.is_list(dtype) and not pa.types.is_nested(dtype.value_type):
        return array_of(from_arrow(dtype.value_type))
    for ours, arrow in _TO_ARROW.items():
        if arrow == dtype:
            return ours
    raise TypeMismatch(
        f"columns of Arrow type {dtype} are not supported",
        remedy="select or cast the columns you need before handing the stream over",
    )
