"""Bounding formulas: products of one statistic per relation, and which of them are valid.

By the chain rule of entropy |Q| is at most a product of counts c_R (for all attributes of R) and
degrees d_R^a (for all but a, given a), if every conditional term is given an attribute that is
covered before it. Triangle R(x,y), S(y,z), T(z,x): c_R·d_S^y covers x, y, then z.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

from thalweg.estimate.hypergraph import Hypergraph, members


@dataclass(frozen=True, slots=True)
class Term:
    """The count of a relation, or its largest degree on an attribute."""

    relation: int
    given: str | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A product of terms over the relations of a hypergraph."""

    graph: Hypergraph
    terms: tuple[Term, ...]

    def __str__(self) -> str:
        return "·".join(self._word(t) for t in self.terms)

    def _word(self, term: Term) -> str:
        name = self.graph.names[term.relation]
        return f"c_{name}" if term.given is None else f"d_{name}^{term.given}"

    @property
    def is_valid(self) -> bool:
        """Whether every attribute is covered, and no degree is given what only degrees that wait
        for it would cover: without a count to begin with, conditions go round in a circle."""
        covered = set(self.unconditional)
        pending = [t for t in self.terms if t.given is not None]
        while True:
            ready = [t for t in pending if t.given in covered]
            if not ready:
                return not pending and covered == set(self.graph.attributes)
            for term in ready:
                covered.update(self.graph.edges[term.relation])
            pending = [t for t in pending if t not in ready]

    @property
    def unconditional(self) -> tuple[str, ...]:
        """The attributes that counts cover."""
        counted = (t.relation for t in self.terms if t.given is None)
        return tuple(dict.fromkeys(a for r in counted for a in self.graph.edges[r]))


def coverages(graph: Hypergraph) -> Iterator[Formula]:
    """The formulas of all ways to assign every attribute to one relation that has it, circular ones
    included: an intermediate step.

    A relation that covers all of its attributes has a count, one that covers all but one its degree
    on that one, one that covers none has no term; other coverages have no formula.
    """
    choices = [members(graph.holders[a]) for a in graph.attributes]
    for chosen in product(*choices):
        covered = dict(zip(graph.attributes, chosen, strict=True))
        terms: list[Term] = []
        for r, edge in enumerate(graph.edges):
            left = [a for a in edge if covered[a] != r]
            if not left and edge:
                terms.append(Term(r))
            elif len(left) == 1 and len(edge) > 1:
                terms.append(Term(r, left[0]))
            elif len(left) != len(edge):
                break
        else:
            yield Formula(graph, tuple(terms))


def coverage_formulas(graph: Hypergraph) -> list[Formula]:
    """The valid formulas that cover each attribute once: bounds where no relation repeats a row
    over its listed attributes."""
    return [f for f in coverages(graph) if f.is_valid]


def ordered_formulas(graph: Hypergraph) -> list[Formula]:
    """The formulas of derivations that start with one relation and add the others one at a time,
    each given an attribute covered before: every relation has a term, so bags are bounded too."""
    found: dict[frozenset[Term], Formula] = {}
    for order in permutations(range(len(graph.edges))):
        given: list[list[str]] = []
        for place, r in enumerate(order[1:], 1):
            before = {a for other in order[:place] for a in graph.edges[other]}
            given.append([a for a in graph.edges[r] if a in before])
        for chosen in product(*given):
            rest = (Term(r, a) for r, a in zip(order[1:], chosen, strict=True))
            terms = (Term(order[0]), *rest)
            found.setdefault(frozenset(terms), Formula(graph, terms))
    return list(found.values())


def with_private_attributes(graph: Hypergraph) -> Hypergraph:
    """The hypergraph with one more attribute in each relation, which tells its copies of a row
    apart."""
    edges = tuple((*e, f"·{n}") for n, e in zip(graph.names, graph.edges, strict=True))
    return Hypergraph(graph.names, edges)
