"""The one type in which the columns of an attribute are compared.

Equality of columns of several types is coarser than equality of any two of them: what Spark
coerces to DOUBLE once is compared as DOUBLE here throughout. So no equal pair is ever missed, and
where a cast loses digits a count becomes a bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import from_arrow
from thalweg.errors import TypeMismatch
from thalweg.plan.functions.casting import common_type
from thalweg.plan.types import STRING, DataType, of_result, to_arrow

_WHOLE_IN_A_DOUBLE = 2**53


def key_type(types: Sequence[DataType]) -> DataType:
    """The type that Spark's coercion gives all of them; text beside another type is refused."""
    found = common_type(types)
    texts = STRING in types and any(t != STRING for t in types)
    if found is None or texts or found.name == "NULL":
        named = ", ".join(map(str, dict.fromkeys(types)))
        raise TypeMismatch(
            f"columns of {named} are no keys of one join", remedy="cast them to one type"
        )
    return found


def key_values(column: pa.ChunkedArray | pa.Array, wanted: DataType) -> pa.Array:
    """The column in the type of its key, in the layout that hashes take."""
    own = of_result(column.type)
    array = from_arrow(column, own).to_arrow()
    return array if own == wanted else pc.cast(array, to_arrow(wanted), safe=False)


def loses_digits(column: pa.ChunkedArray | pa.Array, wanted: DataType) -> bool:
    """Whether different values of the column may become one key."""
    own = of_result(column.type)
    if own == wanted or not wanted.is_float or own.is_float:
        return False
    if not own.is_integer:
        return True
    if own.bits < 64 or not len(column):
        return False
    ends = pc.min_max(column)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is not None and bool(np.maximum(-least, most) > _WHOLE_IN_A_DOUBLE)
