"""The keys of a join: classes of columns that equality predicates make equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from thalweg.plan.expr import Call, Column, Expr, Predicate, columns_of
from thalweg.plan.functions import can_raise
from thalweg.plan.leaf import Leaf


@dataclass(slots=True)
class KeyClasses:
    """Classes of equal columns; one column per leaf stands for its class."""

    leaves: tuple[Leaf, ...]
    predicates: tuple[Predicate, ...]
    members: list[dict[int, str]] = field(default_factory=list)
    covered: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        owner = {f.name: i for i, leaf in enumerate(self.leaves) for f in leaf.fields}
        pairs = [(n, _equal_columns(p.expr)) for n, p in enumerate(self.predicates)]
        groups: list[set[str]] = []
        for _, pair in pairs:
            if pair is not None and owner[pair[0]] != owner[pair[1]]:
                touched = [g for g in groups if g & set(pair)]
                merged = set(pair).union(*touched)
                groups = [g for g in groups if g not in touched] + [merged]
        for group in groups:
            chosen: dict[int, str] = {}
            for name in sorted(group):
                chosen.setdefault(owner[name], name)
            self.members.append(chosen)
        for n, pair in pairs:
            if pair is not None and any(set(pair) <= set(c.values()) for c in self.members):
                self.covered.add(n)

    def shared_by(self, wanted: Sequence[int]) -> list[dict[int, str]]:
        return [c for c in self.members if all(i in c for i in wanted)]

    def residual(self) -> list[Predicate]:
        """Predicates that no key implies and that cannot raise."""
        return [
            p
            for n, p in enumerate(self.predicates)
            if n not in self.covered and not can_raise(p.expr)
        ]

    def bridges(self) -> list[set[int]]:
        """Pairs of leaves that predicates other than keys link."""
        owner = {f.name: i for i, leaf in enumerate(self.leaves) for f in leaf.fields}
        spoken_of = [{owner[c] for c in columns_of(p.expr)} for p in self.residual()]
        return [leaves for leaves in spoken_of if len(leaves) == 2]


def _equal_columns(expr: Expr) -> tuple[str, str] | None:
    if isinstance(expr, Call) and expr.function == "=":
        left, right = (_widened(a) for a in expr.args)
        if left is not None and right is not None and left != right:
            return left, right
    return None


def _widened(expr: Expr) -> str | None:
    """The column under casts that preserve the hash of a value."""
    if isinstance(expr, Column):
        return None if expr.type.name == "DECIMAL" else expr.name
    if isinstance(expr, Call) and expr.function == "cast":
        source, target = expr.args[0].type, expr.type
        same = source.is_integer and target.is_integer and source.bits <= target.bits
        if same or (source.name, target.name) == ("FLOAT", "DOUBLE"):
            return _widened(expr.args[0])
    return None
