"""The joins of the seed's experiments on caches, and the rows for them.

Q1 is R(A) ⋈ S(A, B) ⋈ T(B): all attributes go through the same values in the same order, T an epoch
behind the others and each value several times in a row. Q2 joins n streams on A. Windows are over
time, at constant rates, where the seed's are over tuples; queries emit what appears and what
vanishes, as the seed's do.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from caches.run_plans import Draw, Workload

W = "[RANGE 4 SECONDS]"
Q1 = f"SELECT R.A, S.B, T.v FROM R {W}, S {W}, T {W} WHERE R.A = S.A AND S.B = T.B"
Q1_SCANNED = Q1.replace("R.A = S.A", "R.A >= S.A AND R.A <= S.A")
"""The same results, but no index leads from S to R."""

POINTS = {  # rates of R, S, T, U; selectivities RS, RT, RU, ST, SU, TU
    "D1": ((10, 1, 1, 1), (0.004, 0.005, 0.005, 0.007, 0.0045, 0.005)),
    "D2": ((8, 1, 1, 8), (0.004, 0.005, 0.005, 0.007, 0.0045, 0.005)),
    "D3": ((10, 15, 1, 5), (0.003, 0.005, 0.007, 0.0045, 0.006, 0.008)),
    "D4": ((1, 1, 1, 1), (0.003, 0.004, 0.0067, 0.002, 0.0023, 0.0027)),
    "D5": ((4, 1, 1, 4), (0.005, 0.007, 0.005, 0.006, 0.005, 0.002)),
    "D6": ((1, 1, 1, 1), (0.005, 0.0033, 0.0025, 0.0067, 0.005, 0.0075)),
    "D7": ((1, 1, 1, 1), (0.0,) * 6),
    "D8": ((1, 1, 1, 1), (0.001,) * 6),
}
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def in_order(columns: str, times: int = 1, behind: int = 0, every: int = 1) -> Draw:
    """Value after value, each some times in a row, or only every n-th of them."""

    def draw(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
        values = ((first + np.arange(rows)) // times - behind) * every
        return {c: rng.integers(0, 10, rows) if c == "v" else values for c in columns}

    return draw


def partly(draw: Draw, share: float) -> Draw:
    """Only this share of the rows finds partners in A."""

    def drawn(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
        found = draw(rng, first, rows)
        found["A"] = np.where(rng.random(rows) < share, found["A"], -1 - found["A"])
        return found

    return drawn


def uniform(columns: str, domain: int) -> Draw:
    def draw(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
        return {c: rng.integers(0, 10 if c == "v" else domain, rows) for c in columns}

    return draw


def q1(values: int, times: int, *, share: float = 1.0, every: int = 1, sql: str = Q1) -> Workload:
    """`values` an epoch in T, `times` each; R and S have `every` as many, T leaves the rest out."""
    draws = {
        "R": partly(in_order("A"), share),
        "S": in_order("AB"),
        "T": in_order("Bv", times, values, every),
    }
    rates = {"R": values * every, "S": values * every, "T": values * times}
    return Workload(sql, rates, draws, {"R": "A", "S": "AB", "T": "Bv"}, 60, 16)


def q2(rates: tuple[int, ...], draws: list[Draw], epochs: int, warm: int) -> Workload:
    names = "RSTUVWX"[: len(rates)]
    sources = ", ".join(f"{n} {W}" for n in names)
    where = " AND ".join(f"{a}.A = {b}.A" for a, b in pairwise(names))
    shown = ", ".join(f"{n}.A AS {n}a" for n in names)
    sql = f"SELECT {shown} FROM {sources} WHERE {where}"
    by_name = dict(zip(names, rates, strict=True)), dict(zip(names, draws, strict=True))
    return Workload(sql, *by_name, dict.fromkeys(names, "A"), epochs, warm)


def point(name: str, scale: int, epochs: int, warm: int) -> Workload:
    rates, selectivities = POINTS[name]
    draws = [drawn(i, selectivities) for i in range(4)]
    return q2(tuple(scale * r for r in rates), draws, epochs, warm)


def drawn(stream: int, selectivities: tuple[float, ...]) -> Draw:
    """Values such that pairs of streams match with the given probabilities: some are common to all,
    some to two only, the rest are the stream's own."""
    common = 0.6 * min(selectivities)

    def draw(rng: np.random.Generator, first: int, rows: int) -> dict[str, np.ndarray]:
        weight, kind = 0.4, rng.random(rows)
        values = 10_000_000 * (stream + 1) + rng.integers(0, 1_000_000, rows)
        if not common:
            return {"A": values}
        size = max(round(weight**2 / common), 1)
        inside = kind < weight
        values[inside] = rng.integers(0, size, int(inside.sum()))
        share = 0.19
        for number, (i, j) in enumerate(p for p in PAIRS if stream in p):
            block = PAIRS.index((i, j))
            own = selectivities[block] - common
            chosen = (kind >= weight + number * share) & (kind < weight + (number + 1) * share)
            if own > 0:
                size = max(round(share**2 / own), 1)
                values[chosen] = 1_000_000 * (block + 1) + rng.integers(0, size, int(chosen.sum()))
        return {"A": values}

    return draw
