"""Index look-up of the rows of a pack that have given values.

A filter `column = constant` at the beginning of a plan needs only these rows; the filter is still
evaluated on them, since different values may have one hash. The index by the stream's KEY lies in
the pack. An index by another column is built once it would have paid: building it takes about as
long as evaluating all rows some times, so after as many times at most twice too much work has been
done, however often the column is looked up from then on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from thalweg.exec.expressions.evaluate import evaluate
from thalweg.instants import Ints
from thalweg.plan.expr import Call, Column, Literal
from thalweg.plan.leaf import Leaf
from thalweg.store.hashing import hash_columns
from thalweg.store.packs import Key, Pack

SMALLEST = 4_096
"""Rows of a pack from which on an index is worth it."""
WORTH_IT = 16
"""The number of look-ups of a column before an index by it is built."""
Constants = Mapping[str, pa.Array]


def constants_of(leaf: Leaf) -> Constants:
    """Columns of a stream that a leaf's filters require to equal constants."""
    found: dict[str, pa.Array] = {}
    for predicate in leaf.filters if leaf.is_stored and not leaf.is_table else ():
        expr = predicate.expr
        if not isinstance(expr, Call) or expr.function != "=":
            continue
        left, right = expr.args if isinstance(expr.args[0], Column) else expr.args[::-1]
        is_constant = isinstance(right, Literal) and right.value is not None
        if isinstance(left, Column) and is_constant and left.type == right.type:
            found[leaf.bare(left.name)] = evaluate(right, {}, 1, {}).to_arrow()
    return found


def find_by_constants(pack: Pack, constants: Constants) -> Ints | None:
    """Positions of rows that may have these values, ascending; None if no index applies."""
    if not constants or len(pack) < SMALLEST:
        return None
    key = _indexed(pack, constants)
    if key is None:
        return None
    index = pack.index(key)
    wanted = hash_columns([constants[c] for c in key], 1)[0]
    low = int(np.searchsorted(index.hashes, wanted, "left"))
    high = int(np.searchsorted(index.hashes, wanted, "right"))
    found = np.arange(low, high) if index.rows is None else np.sort(index.rows[low:high])
    return found.astype(np.int64)


def _indexed(pack: Pack, constants: Constants) -> Key | None:
    """Columns among these by which the pack is indexed, or is to be from now on."""
    for key in pack.known_keys:
        if key and constants.keys() >= set(key):
            return key
    for column in constants:
        pack.asked[column] += 1
        if pack.asked[column] >= WORTH_IT:
            return (column,)
    return None
