"""Random queries: sources with windows, joins, groups, set operations, subqueries, and what other
dialects write in their places."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.testing.random_statements.choices import Choices, either
from thalweg.testing.random_statements.expressions import Expressions
from thalweg.testing.random_statements.other_clauses import (
    AFTER_SELECT,
    AFTER_SOURCE,
    BEFORE_SELECT,
    GROUPINGS,
    JOINS,
    SOURCES,
    STARS,
    TAILS,
)
from thalweg.testing.random_statements.other_dialects import AGGREGATES
from thalweg.testing.random_statements.rows import COLUMNS, SMALL

_S = {"ts": "time", "d": "num", "n": "int"} | {name: found[0] for name, found in COLUMNS.items()}
RELATIONS: dict[str, dict[str, str]] = {
    "s": _S,
    "q": {"ts": "time"} | SMALL,
    "t": dict(SMALL),
    "v": {"txt": "text", "c": "int"},
}
AGGREGATE_CALLS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("count", "any_value", "min", "max", "first", "last", "mode"), ("any",)),
    **dict.fromkeys(("sum", "avg", "variance", "var_pop", "stddev", "stddev_pop", "median"),
                    ("num",)),
    **dict.fromkeys(("min_by", "max_by"), ("any", "any")),
    **dict.fromkeys(("array_agg", "collect_set"), ("any",)),
    **dict.fromkeys(("bool_and", "bool_or", "count_if"), ("bool",)),
    "string_agg": ("text", "separator"),
    "percentile": ("num", "fraction"),
}  # fmt: skip
_RESULTS = {"count": "int", "count_if": "int", "bool_and": "bool", "bool_or": "bool",
            "string_agg": "text"}  # fmt: skip
_NO_DISTINCT = ("mode", "first", "last", "min_by", "max_by")
GOOD_OPTIONS = (
    "filters = 'auto'", "filters = 'a-greedy'", "filters = 'sweep'", "filters = 'fixed'",
    "filters = 'independent'", "filters = 'local-swaps'", "joins = 'mjoin'", "joins = 'xjoin'",
    "joins = 'cached'", "profile = 0.5", "state_limit = 100000000", "share = 'off'",
    "share = 'on'", "history = 'none'", "backfill = 'push'", "unbounded = true",
)  # fmt: skip
BAD_OPTIONS = (
    "filters = 'magic'", "filters = 1", "filter = 'auto'", "profile = 7", "profile = 'x'",
    "profile = 1e999", "profile = -1", "state_limit = 0", "state_limit = 'x'", "state_limit = 1.5",
    "unbounded = 1", "unbounded = maybe", "share = true", "'a b' = 1", "history = 'seed",
    "joins", "joins = ", "backfill = null", "materialize = 'x'",
    "state_limit = 99999999999999999999",
)  # fmt: skip
SINKS = (
    "CONSOLE", "FILES 'out/f'", "FILES 'out/g' FORMAT csv", "FILES 'out/j' FORMAT json",
    "TABLE 'out/t'", "CHANGELOG 'out/c' FORMAT parquet", "FILES 'out/x' FORMAT xml", "FILES",
    "FILES out", "SPARK 'memory' OPTIONS (queryName = 'x')", "TABLE 'out/t.parquet' FORMAT json",
    "KAFKA 'x'", "FILES 'out/o' OPTIONS (mode = 'x')", "CHANGELOG 'out/d' FORMAT", "x", "FILES ''",
)  # fmt: skip


@dataclass
class Selects(Choices):
    """Writes one query."""

    unbounded: bool = False
    sinks: bool = True
    made: list[tuple[str, str]] = field(default_factory=list)

    def query(self, depth: int = 1) -> str:
        if self.chance(0.12):
            return self.set_operation(depth)
        return self.select(depth)

    def set_operation(self, depth: int) -> str:
        sign = self.pick(("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT",
                          "INTERSECT ALL"))  # fmt: skip
        if self.chance(self.foreign):
            sign = either(self.pick(("MINUS", "UNION BY NAME", "UNION ALL BY NAME", "EXCEPT BY x",
                                     "OUTER UNION", "UNION CORRESPONDING")), None)  # fmt: skip
        self.note(f"set:{sign}")
        column = self.pick(("txt", "d"))
        if self.chance(self.wrong):
            column = "*"
        kind = self.pick(("", "ISTREAM ", "RSTREAM ", ""))
        parts = [
            f"SELECT {kind if not i else ''}{column} FROM {source}"
            for i, source in enumerate((
                f"s {self.window('s')}{self.where()}", f"q {self.window('q')}{self.where()}", "t",
            ))
        ]  # fmt: skip
        whole = f" {sign} ".join(parts[: self.rng.choice((2, 2, 3))])
        return f"{whole} WITH (unbounded = true)" if self.chance(0.9) else whole

    # -- SELECT

    def select(self, depth: int) -> str:
        self.unbounded = False
        shape = self.pick(("one", "one", "one", "bare", "bare", "join", "join", "outer", "asof",
                           "group", "group", "group", "sub", "distinct", "ordered"))  # fmt: skip
        self.note(f"shape:{shape}")
        source, columns = self.source(shape, depth)
        words = Expressions(self.rng, self.wrong, self.foreign, self.features, columns)
        kind = self.emits(shape)
        items, tail = self.grouped(words) if shape == "group" else (self.items(words, shape), "")
        where = self.where_of(words, shape) if self.chance(0.5) else ""
        if shape == "ordered":
            tail += self.order(words, items)
        distinct = "DISTINCT " if shape == "distinct" else ""
        if self.chance(self.foreign / 2):
            distinct = self.spelled(AFTER_SELECT, "select")
        begin = self.spelled(BEFORE_SELECT, "before") if self.chance(self.foreign / 3) else ""
        others = self.spelled(TAILS, "tail") if self.chance(self.foreign / 2) else ""
        text = f"{begin}SELECT {kind}{distinct}{items} FROM {source}{where}{tail}{others}"
        return text + self.closing()

    def spelled(self, forms: tuple[str, ...], kind: str) -> str:
        found = self.pick(forms)
        self.note(f"foreign:{kind}:{found.strip()}")
        return found

    def emits(self, shape: str) -> str:
        kind = "RSTREAM" if shape == "ordered" else self.pick(("", "", "ISTREAM", "DSTREAM",
                                                               "RSTREAM"))  # fmt: skip
        self.note(f"emit:{kind or 'none'}")
        return f"{kind} " if kind else ""

    def closing(self) -> str:
        options = []
        if self.unbounded and self.chance(0.95):
            options.append("unbounded = true")
        if self.chance(0.1):
            options.append(self.pick(GOOD_OPTIONS))
        if self.chance(self.wrong / 2):
            options.append(self.pick(BAD_OPTIONS))
        into = f" INTO {self.pick(SINKS)}" if self.chance(self.wrong / 3) else ""
        return into + (f" WITH ({', '.join(dict.fromkeys(options))})" if options else "")

    def items(self, words: Expressions, shape: str) -> str:
        if self.chance(self.foreign / 2):
            return self.spelled(STARS, "star")
        if self.chance(0.08) and shape != "ordered":
            return self.pick(("*", f"{words.columns[0][0].split('.')[0]}.*" if "." in
                              words.columns[0][0] else "*"))  # fmt: skip
        found = []
        self.made = []
        for number in range(self.rng.randint(1, 3)):
            family = self.pick(("bool", "int", "num", "text", "bytes", "date", "time", "span",
                                "ints", "texts"))  # fmt: skip
            text = self.over(words) if shape == "bare" and self.chance(0.2) else words.of(family, 2)
            name = f"{self.maybe(0.8, 'AS ')}c{number}"
            is_bare = text.isidentifier() or self.chance(0.1)
            self.made += [] if is_bare else [(f"c{number}", family)]
            found.append(text if is_bare else f"{text} {name}")
        return ", ".join(found)

    def over(self, words: Expressions) -> str:
        self.note("over")
        column = self.pick(words.columns)[0]
        by = f"PARTITION BY {self.pick(('txt', 'n, txt', 'flag'))} " if self.chance(0.7) else ""
        inside = f"({by}{self.maybe(0.6, 'ORDER BY ts')})"
        call = self.pick((f"lag({column})", f"lead({column})", f"LAG({column}, 2)",
                          "row_number()", f"lag({column}, 1, NULL)", f"lag({column}, {column})",
                          "lag(n, 1, 0)", "lead(txt, 0, 'x')", "lag(d, 1, 2)", "lag(day, 1, 1)",
                          "lag(n + 1)", "lag(xs, 1)", "lag(gap)"))  # fmt: skip
        return f"{call} OVER {inside}"

    def where_of(self, words: Expressions, shape: str) -> str:
        if self.chance(0.1):
            self.note("in-subquery")
            text = words.leaf("text")
            inner = self.pick(("SELECT txt FROM t", "SELECT txt FROM q [RANGE 5 SECONDS]",
                               "SELECT txt FROM t WHERE d = 0", "SELECT txt, d FROM t",
                               "SELECT txt FROM v", "SELECT d FROM t ORDER BY d"))  # fmt: skip
            return f" WHERE {text} {self.maybe(0.4, 'NOT ')}IN ({inner})"
        found = [words.of("bool", 2) for _ in range(self.rng.choice((1, 1, 2)))]
        return f" WHERE {' AND '.join(f'({f})' for f in found)}"

    def where(self) -> str:
        found = [(name, _S[name]) for name in ("txt", "d")]
        words = Expressions(self.rng, self.wrong, self.foreign, self.features, found)
        return f" WHERE {words.of('bool', 1)}" if self.chance(0.5) else ""

    def order(self, words: Expressions, items: str) -> str:
        names = [item.split()[-1] for item in items.split(", ")][:1]
        key = self.pick((*names, "1", "1", words.of("int", 1)))
        ways = self.pick(("", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"))
        if self.chance(self.foreign):
            ways = either(self.pick((" USING <", " COLLATE 'de'", " WITH FILL", " NULLS",
            " SIBLINGS",
                                     ", ALL", " DESC NULLS")), None)  # fmt: skip
        limit = self.pick(("", " LIMIT 2", " LIMIT 0"))
        if self.chance(self.wrong):
            limit = self.pick((" LIMIT 1.5", " LIMIT -1", " LIMIT n", " LIMIT NULL", " LIMIT 1 + 1",
                               " LIMIT '2'", " LIMIT", " LIMIT 99999999999999999999"))  # fmt: skip
        if self.chance(self.foreign):
            limit = either(self.pick((" LIMIT 2 OFFSET 1", " LIMIT 1, 2",
            " FETCH FIRST 2 ROWS ONLY",
                                      " LIMIT ALL", " LIMIT 2 BY txt", " LIMIT 10 PERCENT",
                                      " OFFSET 1", " LIMIT 1 WITH TIES", " LIMIT 2 FOR UPDATE",
                                      " FETCH NEXT ROW WITH TIES")), None)  # fmt: skip
        return f" ORDER BY {key}{ways}{limit}"

    # -- groups

    def grouped(self, words: Expressions) -> tuple[str, str]:
        names = [name for name, _ in words.columns]
        keys = self.rng.sample(names, self.rng.choice((0, 1, 1, 2)))
        if keys and self.chance(0.3):
            keys[0] = words.of(self.pick(("int", "text", "bool", "date", "num")), 1)
        items = [f"{key} AS k{i}" for i, key in enumerate(keys)]
        self.made = [("a0", "int")]
        items += [f"{self.aggregate(words)} AS a{i}" for i in range(self.rng.choice((1, 1, 2)))]
        if keys and self.chance(0.05):
            items.append(f"grouping({keys[0]}) AS g")
        if self.chance(self.wrong):
            items.append(words.of("any", 1))
        tail = f" GROUP BY {self.grouping(keys)}" if keys else ""
        if self.chance(0.3):
            call, family = self.typed_aggregate(words)
            over = Expressions(self.rng, self.wrong, self.foreign, self.features, [(call, family)])
            tail += f" HAVING {over.of('bool', 1)}"
        return ", ".join(items), tail

    def grouping(self, keys: list[str]) -> str:
        if self.chance(self.foreign):
            return self.spelled(GROUPINGS, "group")
        listed = ", ".join(keys)
        way = self.pick(("", "", "", "", "ROLLUP", "CUBE", "SETS", "numbers"))
        if way in ("ROLLUP", "CUBE"):
            return f"{way} ({listed})"
        if way == "SETS":
            return f"GROUPING SETS (({listed}), ())"
        return ", ".join(str(i + 1) for i in range(len(keys))) if way == "numbers" else listed

    def aggregate(self, words: Expressions) -> str:
        return self.typed_aggregate(words)[0]

    def typed_aggregate(self, words: Expressions) -> tuple[str, str]:
        if self.chance(self.foreign):
            found = self.pick(AGGREGATES)
            self.note(f"foreign:{found.name}")
            holes = {h: words.leaf(f) for h, f in (("i", "int"), ("j", "int"), ("x", "num"),
                     ("s", "text"), ("b", "bool"), ("a", "any"), ("xs", "ints"))}  # fmt: skip
            return found.filled(holes | {"c": words.columns[0][0]}), "int"
        if self.chance(0.15):
            return "count(*)", "int"
        name = self.pick(list(AGGREGATE_CALLS))
        self.note(f"aggregate:{name}")
        arguments = [self.argument(words, wanted) for wanted in AGGREGATE_CALLS[name]]
        if self.chance(self.wrong / 2):
            arguments = self.pick(([], arguments[:1], [*arguments, "1"]))
        often = 0.2 if name not in _NO_DISTINCT else self.wrong
        distinct = "DISTINCT " if arguments and self.chance(often) else ""
        held = f" FILTER (WHERE {words.of('bool', 1)})" if self.chance(0.15) else ""
        if name == "percentile" and self.chance(0.3):
            call = f"percentile_disc({arguments[-1]}) WITHIN GROUP (ORDER BY {arguments[0]})"
            return (call if len(arguments) == 2 else "percentile_disc()"), "num"
        return f"{name}({distinct}{', '.join(arguments)}){held}", _RESULTS.get(name, "num")

    def argument(self, words: Expressions, wanted: str) -> str:
        if wanted == "separator":
            return self.pick(("', '", "''", "NULL", "1")) if self.chance(self.wrong) else "', '"
        if wanted == "fraction":
            bad = self.pick(("2", "-1", "NULL", "'x'", "n", "1e999"))
            return bad if self.chance(self.wrong) else self.pick(("0", "0.5", "0.9", "1"))
        return words.of(wanted, self.rng.choice((0, 0, 1)))

    # -- FROM

    def source(self, shape: str, depth: int) -> tuple[str, list[tuple[str, str]]]:
        if shape in ("join", "outer", "asof"):
            return self.joined(shape)
        if shape == "sub" and depth > 0:
            return self.subquery(depth)
        if self.chance(self.foreign / 3):
            return self.spelled(SOURCES, "from"), list(_S.items())
        name = self.pick(("s", "s", "s", "s", "q")) if shape != "one" or self.chance(0.9) else "v"
        window = "" if shape == "bare" or name == "v" else f" {self.window(name)}"
        self.unbounded |= not window and shape in ("group", "distinct", "ordered")
        after = self.spelled(AFTER_SOURCE, "source") if self.chance(self.foreign / 3) else ""
        alias = self.pick(("", "", " r", " AS r"))
        prefix = "r." if alias else ""
        columns = [(f"{prefix}{c}", f) for c, f in RELATIONS[name].items()]
        return f"{name}{window}{after}{alias}", columns

    def window(self, name: str) -> str:
        keys = ("txt", "d", "txt, d", "xs", "bin, gap") if name == "s" else ("txt", "d", "txt, d")
        by = f"PARTITION BY {self.pick(keys)} "
        found = self.pick((
            "[NOW]", "[RANGE 3 SECONDS]", "[RANGE 3 SECONDS]", "[RANGE INTERVAL '2' SECONDS]",
            "[RANGE 4 SECONDS SLIDE 2 SECONDS]", "[RANGE 2 SECONDS SLIDE 2 SECONDS]", "[ROWS 2]",
            f"[{by}ROWS 2]", "[SESSION GAP 2 SECONDS]", f"[{by}SESSION GAP 1 SECOND]",
            "[UNBOUNDED]",
            "[LANDMARK TIMESTAMP '1970-01-01 00:00:03']", "[LANDMARK EVERY 4 SECONDS]",
            "[FROM TIMESTAMP '1970-01-01 00:00:01' TO TIMESTAMP '1970-01-01 00:00:04']",
        ))  # fmt: skip
        if self.chance(self.wrong / 2):
            found = self.pick((
                "[RANGE 0 SECONDS]", "[RANGE -1 SECONDS]", "[RANGE 1 MONTH]", "[ROWS 0]",
                "[ROWS -1]",
                "[ROWS 1.5]", "[RANGE 1 SECOND SLIDE 0 SECONDS]", "[PARTITION BY nosuch ROWS 1]",
                "[PARTITION BY n + 1 ROWS 1]", "[PARTITION BY xs ROWS 1]", "[LANDMARK 'x']",
                "[LANDMARK EVERY 0 SECONDS]", "[FROM 2 TO 1]", "[SIZE 3]", "[LANDMARK n]", "[]",
                "[SESSION GAP 1]", "[RANGE 1e400 SECONDS]", "[RANGE 99999999999 WEEKS]",
                "[RANGE 1]",
                "[LANDMARK NULL]", "[LANDMARK TIMESTAMP '2026-13-01']",
                "[ROWS 99999999999999999999]",
                "[RANGE 1.5 SECONDS]", "[RANGE 0.0000001 SECONDS]", "[PARTITION BY bin ROWS 1]",
            ))  # fmt: skip
        if self.chance(self.foreign / 2):
            found = either(self.pick((
                "[RANGE BETWEEN 1 SECOND PRECEDING AND CURRENT ROW]", "[ROWS 2 PRECEDING]",
                "[RANGE 1 SECOND ADVANCE BY 1 SECOND]", "[ROWS 2 SLIDE 1]", "[TUMBLE 1 SECOND]",
                "[ORDER BY n ROWS 2]", "[RANGE 1 SECOND ON ts]", "[ROWS 2 EXCLUDE TIES]", "[0]",
                "[RANGE UNBOUNDED PRECEDING]", "[PARTITION BY txt RANGE 1 SECOND]", "[NOW, NOW]",
                "[NOW][NOW]", "[SESSION 1 SECOND]", "[LAST 5 ROWS]",
                "[RANGE 1 SECOND OFFSET 1 SECOND]",
            )), None)  # fmt: skip
        self.note(f"window:{found[1:].split(' ')[0].rstrip(']')}")
        self.unbounded |= found in ("[UNBOUNDED]",) or found.startswith("[LANDMARK TIME")
        return found

    def joined(self, shape: str) -> tuple[str, list[tuple[str, str]]]:
        second = "q" if shape == "asof" else self.pick(("q", "q", "s", "t", "v"))
        left = f"s {self.pick(('[NOW]', '[RANGE 3 SECONDS]', self.window('s')))} a"
        window = "[RANGE 3 SECONDS]" if shape == "asof" else self.window(second)
        right = f"{second} {window if second in ('q', 's') else ''} b"
        columns = [(f"a.{c}", f) for c, f in RELATIONS["s"].items()]
        others = [(f"b.{c}", f) for c, f in RELATIONS[second].items()]
        words = Expressions(self.rng, self.wrong, self.foreign, self.features, columns + others)
        condition = self.pick(("a.txt = b.txt", f"a.txt = b.txt AND {words.of('bool', 1)}",
                               "a.d = b.d", words.of("bool", 1)))  # fmt: skip
        if second == "v" and "b.d" in condition:
            condition = "a.txt <=> b.txt"
        if self.chance(self.foreign / 2):
            return f"{left} {self.spelled(JOINS, 'join')}", columns
        if shape == "asof":
            kind = self.pick(("ASOF", "LEFT ASOF"))
            self.note(f"join:{kind}")
            return f"{left} {kind} JOIN {right} ON a.txt = b.txt AND a.ts >= b.ts", columns + others
        if shape == "outer":
            kind = self.pick(("LEFT", "RIGHT", "FULL", "LEFT OUTER", "LEFT SEMI", "LEFT ANTI"))
            self.note(f"join:{kind}")
            seen = columns if kind in ("LEFT SEMI", "LEFT ANTI") else columns + others
            return f"{left} {kind} JOIN {right} ON {condition}", seen
        self.note("join:inner")
        if self.chance(0.5):
            return f"{left}, {right}", columns + others
        kind = self.pick(("", "INNER ", "CROSS "))
        on = "" if kind == "CROSS " else f" ON {condition}"
        return f"{left} {kind}JOIN {right}{on}", columns + others

    def subquery(self, depth: int) -> tuple[str, list[tuple[str, str]]]:
        self.note("subquery")
        kind = self.pick(("", "ISTREAM ", "RSTREAM "))
        window = self.pick((" [RANGE 5 SECONDS]", " [NOW]", "")) if kind else ""
        self.unbounded |= bool(kind) and not window
        inner = self.pick((
            f"SELECT {kind}txt, count(*) AS c FROM s [RANGE 3 SECONDS] GROUP BY txt",
            f"SELECT {kind}txt, n AS c FROM s {self.window('s')}",
        ))  # fmt: skip
        if self.chance(0.3):
            inner = self.query(depth - 1)
            return f"({inner}){window} sub", self.made or [("txt", "text")]
        return f"({inner}){window} sub", [("txt", "text"), ("sub.c", "int")]
