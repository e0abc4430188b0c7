"""Self-joins of graphs: templates of the source and our own, with filters, in a written order that
is drawn at random."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv


@dataclass(frozen=True)
class Template:
    """A join of edges over variables; `filtered` variables are `% share = random`."""

    name: str
    edges: tuple[str, ...]
    filtered: str
    share: int

    def sql(self, table: str, rng: Random) -> str:
        """A query over one graph: random constants, edges in a random order."""
        edges = list(enumerate(self.edges))
        rng.shuffle(edges)
        sides: dict[str, list[str]] = {}
        for number, (a, b) in edges:
            sides.setdefault(a, []).append(f"e{number}.src")
            sides.setdefault(b, []).append(f"e{number}.dst")
        where = [f"{one} = {other}" for s in sides.values() for one, other in pairwise(s)]
        where += [
            f"{sides[v][0]} % {self.share} = {rng.randrange(self.share)}" for v in self.filtered
        ]
        froms = ", ".join(f"{table} AS e{number}" for number, _ in edges)
        return f"SELECT count(*) AS n FROM {froms} WHERE {' AND '.join(where)}"


TEMPLATES = (
    Template("4a: chain of 4", ("ab", "bc", "cd", "de"), "ae", 512),
    Template("5c: star and tail", ("xa", "xb", "xc", "cd", "de"), "abde", 256),
    Template("5e: chain and fork", ("ab", "bc", "cd", "de", "df"), "aef", 1024),
    Template("chain of 2", ("ab", "bc"), "a", 16),
    Template("chain of 3", ("ab", "bc", "cd"), "ad", 64),
    Template("star", ("xa", "xb", "xc"), "ab", 64),
    Template("triangle", ("ab", "bc", "ca"), "a", 64),
    Template("4-cycle", ("ab", "bc", "cd", "da"), "a", 64),
)
COPIES = 10
GRAPHS = ("facebook-combined", "ca-condmat", "email-enron")


def graphs(shared: Path | None, quick: bool) -> Iterator[tuple[str, pa.Table]]:
    """The shared graphs, or generated ones of their sizes, in copies with shifted nodes: then they
    have as many edges as those of the source."""
    for number, name in enumerate(GRAPHS[: 1 if quick else None]):
        file = None if shared is None else shared / "graphs" / f"{name}.csv"
        if file is not None and file.exists():
            yield name.split("-")[0], copied(csv.read_csv(file).cast(_SCHEMA))
        else:
            yield f"generated{number}", copied(generated(number))


def copied(table: pa.Table) -> pa.Table:
    nodes = 1 << 20
    parts = [[pc.add(c, n * nodes) for c in table.columns] for n in range(COPIES)]
    return pa.concat_tables([pa.table(p, schema=_SCHEMA) for p in parts]).combine_chunks()


_SCHEMA = pa.schema([("src", pa.int64()), ("dst", pa.int64())])


def generated(seed: int, nodes: int = 30_000, edges: int = 150_000) -> pa.Table:
    """A graph whose degrees follow a power law on both sides."""
    rng = np.random.default_rng(seed)
    weight = (1 + np.arange(nodes)) ** -0.7
    ends = [rng.permutation(nodes)[rng.choice(nodes, edges, p=weight / weight.sum())] for _ in "ab"]
    pairs = np.unique(np.stack(ends, 1), axis=0)
    return pa.table({"src": pairs[:, 0], "dst": pairs[:, 1]})
