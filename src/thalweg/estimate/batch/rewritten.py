"""A SELECT with its free inner join in another order, as Spark SQL.

    SELECT count(*) FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND c.z > 5
    SELECT count(*) FROM (`a` JOIN (`b` JOIN `c` ON `b`.`y` = `c`.`y`) ON `a`.`x` = `b`.`x`)
    WHERE (TRUE AND TRUE AND c.z > 5)

Each join gets one equality per attribute that its sides share. Equalities that these imply are left
out: keys that say the same twice would make Spark shuffle again.
"""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.estimate.batch.partitioned_order import Tree
from thalweg.estimate.batch.written_join import WrittenJoin, quoted
from thalweg.estimate.equalities import equated
from thalweg.estimate.hypergraph import Hypergraph, members
from thalweg.estimate.keys.key_type import key_type
from thalweg.lang.syntax import exp
from thalweg.plan.expr import Call, columns_of


def rewritten(written: WrittenJoin, tree: Tree, broadcast: int = 0) -> str:
    """The text with the joins of a tree; inputs of `broadcast` are hinted to be sent everywhere."""
    text, select = written.text, written.select
    names = [quoted(s.alias) for s in written.sources]
    hints = ", ".join(f"BROADCAST({names[i]})" for i in members(broadcast))
    head = text[select.at : select.at + len("SELECT")]
    head += f" /*+ {hints} */" if hints else ""
    head += _items(written, select.at + len("SELECT"))
    where = " AND ".join(_conditions(written))
    parts = [
        head.rstrip(),
        "FROM",
        _relation(written, Hypergraph.of(written.query), tree),
        written.behind,
        f"WHERE {where}" if where else "",
        text[select.places.where_end :].strip().removesuffix(";"),
    ]
    return " ".join(p for p in parts if p)


def _items(written: WrittenJoin, since: int) -> str:
    """The items of SELECT; `*` gives the columns in the order of the text."""
    text, until = written.text, written.select.places.from_at
    stars = [i.meta["at"] for i in written.select.items if isinstance(i, exp.Star)]
    every = ", ".join(f"{quoted(s.alias)}.*" for s in written.sources)
    for at in reversed(stars):
        until_star = text[since:at] + every + text[at + 1 : until]
        text, until = text[:since] + until_star + text[until:], since + len(until_star)
    return text[since:until]


def _conditions(written: WrittenJoin) -> Iterator[str]:
    """WHERE without the equalities that joins have, the other conditions of ON, and equalities
    within one input that these imply."""
    text, places = written.text, written.select.places
    where = text[places.from_end : places.where_end].strip()
    if where:
        begin = text.index(where, places.from_end) + len("WHERE")
        kept, at = "", begin
        for c in written.equalities:
            if c.in_where and c.span is not None:
                kept += text[at : c.span[0]] + "TRUE"
                at = c.span[1]
        yield f"({(kept + text[at : places.where_end]).strip()})"
    taken = {id(c) for c in written.equalities}
    for c in written.conjuncts:
        if not c.in_where and id(c) not in taken and c.span is not None:
            yield f"({text[slice(*c.span)]})"
    spans = {f"({text[slice(*c.span)]})" for c in written.conjuncts if c.span is not None}
    for filters in written.filters.values():
        yield from (f for f in filters if f not in spans)


def _relation(written: WrittenJoin, graph: Hypergraph, tree: Tree) -> str:
    if tree.left is None or tree.right is None:
        source = written.sources[tree.inputs.bit_length() - 1]
        return f"{source.text} AS {quoted(source.alias)}"
    left, right = (_relation(written, graph, side) for side in (tree.left, tree.right))
    on = list(_equalities(written, graph, tree.left.inputs, tree.right.inputs))
    if not on:
        return f"({left} CROSS JOIN {right})"
    return f"({left} JOIN {right} ON {' AND '.join(on)})"


def _equalities(written: WrittenJoin, graph: Hypergraph, left: int, right: int) -> Iterator[str]:
    for attribute in written.query.attributes:
        holders = graph.holders.get(attribute.name, 0)
        if not holders & left or not holders & right:
            continue
        columns = [
            f"{written.query.inputs[i].alias}.{written.query.inputs[i].column(attribute.name)}"
            for i in (members(holders & left)[0], members(holders & right)[0])
        ]
        types = {
            written.columns[f"{r.alias}.{r.column(attribute.name)}"].type
            for r in written.query.inputs
            if attribute.name in r.attributes
        }
        operator = "<=>" if attribute.null_safe else "="
        one, other = map(quoted, columns)
        if len(types) == 1:
            yield f"{one} {operator} {other}"
            continue
        wanted = key_type(tuple(types))
        yield from _as_written(written, attribute.name, left, right)
        yield f"CAST({one} AS {wanted}) {operator} CAST({other} AS {wanted})"


def _as_written(written: WrittenJoin, attribute: str, left: int, right: int) -> Iterator[str]:
    """The written equalities of an attribute with columns of several types: these are not
    transitive, so all must hold."""
    sides = [{written.sources[i].alias for i in members(mask)} for mask in (left, right)]
    inputs = {r.alias: r for r in written.query.inputs}
    for c in written.equalities:
        assert isinstance(c.expr, Call)
        aliases = sorted({n.split(".", 1)[0] for n in columns_of(c.expr)})
        pair = equated(c.expr)
        meets = any(
            a in s and b in t
            for a, b in ((aliases[0], aliases[1]), (aliases[1], aliases[0]))
            for s, t in (sides,)
        )
        if pair is None or not meets or attribute not in inputs[aliases[0]].attributes:
            continue
        if c.span is not None and _of_attribute(written, pair[0].name, attribute):
            yield f"({written.text[slice(*c.span)]})"


def _of_attribute(written: WrittenJoin, column: str, attribute: str) -> bool:
    """Whether a column belongs to an attribute, directly or as one of several of an input."""
    alias, short = column.split(".", 1)
    one = next(r for r in written.query.inputs if r.alias == alias)
    own = dict(one.columns)
    if short in own.values():
        return own.get(attribute) == short
    return attribute in own
