"""Random expressions: every operator and function over operands of every type.

The tables are written from docs/language.md, not from the code: what takes what is what the page
and Spark say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.testing.random_statements.choices import Choices
from thalweg.testing.random_statements.other_dialects import CASTS, EXPRESSIONS, NO_CASTS

FAMILIES = (
    "bool", "int", "num", "text", "bytes", "date", "time", "span", "ints", "texts", "null",
)  # fmt: skip
TYPES = (
    "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)",
    "DECIMAL(38, 18)", "DECIMAL", "STRING", "BINARY", "DATE", "TIMESTAMP",
)  # fmt: skip
LITERALS = {
    "bool": ("TRUE", "FALSE"),
    "int": ("0", "1", "-1", "2", "7", "3000000000", "-128"),
    "num": ("0.0", "1.5", "-2.5", "1e3", "1e300", "0.1"),
    "text": ("'a'", "''", "'12'", "'x'", "'2024-02-29'", "'it''s'", "'1.5'", "'true'", "'日'"),
    "bytes": ("CAST('a' AS BINARY)", "CAST('' AS BINARY)"),
    "date": ("CAST('2024-02-29' AS DATE)", "to_date('1969-12-31')"),
    "time": (
        "CAST('2026-01-01 12:00:00' AS TIMESTAMP)", "to_timestamp('1969-12-31 23:59:59.5')",
        "timestamp_seconds(0)",
    ),
    "span": ("INTERVAL 5 MINUTES", "INTERVAL '1' SECOND", "INTERVAL 2 DAYS", "INTERVAL -1 HOUR"),
    "null": ("NULL",),
    "pattern": ("'a%'", "'%'", "'_'", "'%2%'", "'\\\\%'", "''"),
    "regex": ("'a'", "'^$'", "'[0-9]+'", "'('", "'.*'"),
    "unit": ("'hour'", "'DAY'", "'week'", "'month'", "'quarter'", "'year'", "'nosuch'", "'MM'"),
}  # fmt: skip

FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("upper", "lower", "lcase", "ucase", "reverse", "initcap"), ("text", ("text",
    ))),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), ("text", ("text", "[text]"))),
    **dict.fromkeys(("left", "right", "repeat"), ("text", ("text", "count"))),
    **dict.fromkeys(("lpad", "rpad"), ("text", ("text", "count", "[text]"))),
    **dict.fromkeys(("substr", "substring"), ("text", ("text", "count", "[count]"))),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), ("int", ("text",))),
    **dict.fromkeys(("contains", "startswith", "endswith"), ("bool", ("text", "text"))),
    **dict.fromkeys(("locate", "position", "charindex"), ("int", ("text", "text", "[count]"))),
    **dict.fromkeys(("rlike", "regexp", "regexp_like"), ("bool", ("text", "regex"))),
    "like": ("bool", ("text", "pattern")),
    "ascii": ("int", ("text",)),
    "concat": ("text", ("text", "any", "[any]")),
    "concat_ws": ("text", ("text", "any", "[any]")),
    "instr": ("int", ("text", "text")),
    "replace": ("text", ("text", "text", "[text]")),
    "split_part": ("text", ("text", "text", "count")),
    **dict.fromkeys(
        ("atan", "cbrt", "cos", "degrees", "exp", "ln", "log10", "log2", "radians", "sign",
         "signum", "sin", "sqrt", "tan"),
        ("num", ("num",)),
    ),
    **dict.fromkeys(("atan2", "pow", "power", "nanvl", "pmod", "mod"), ("num", ("num", "num"))),
    **dict.fromkeys(("abs", "negative"), ("num", ("num",))),
    **dict.fromkeys(("ceil", "ceiling", "floor"), ("int", ("num",))),
    "log": ("num", ("num", "[num]")),
    "isnan": ("bool", ("num",)),
    "round": ("num", ("num", "[places]")),
    **dict.fromkeys(
        ("year", "month", "day", "dayofmonth", "dayofweek", "dayofyear", "weekofyear", "quarter"),
        ("int", ("date",)),
    ),
    **dict.fromkeys(("hour", "minute", "second"), ("int", ("time",))),
    **dict.fromkeys(
        ("unix_seconds", "unix_millis", "unix_micros", "unix_timestamp", "to_unix_timestamp"),
        ("int", ("time",)),
    ),
    **dict.fromkeys(("timestamp_seconds", "timestamp_millis", "timestamp_micros"),
                    ("time", ("int",))),
    **dict.fromkeys(("date_add", "date_sub", "dateadd"), ("date", ("date", "count"))),
    **dict.fromkeys(("datediff", "date_diff"), ("int", ("date", "date"))),
    "date_trunc": ("time", ("unit", "time")),
    "from_unixtime": ("text", ("int",)),
    "make_date": ("date", ("count", "count", "count")),
    "to_date": ("date", ("text",)),
    "to_timestamp": ("time", ("text",)),
    **dict.fromkeys(("coalesce", "greatest", "least"), ("same", ("same", "same", "[same]"))),
    **dict.fromkeys(("ifnull", "nvl", "nullif"), ("same", ("same", "same"))),
    **dict.fromkeys(("if", "iff"), ("same", ("bool", "same", "same"))),
    "nvl2": ("same", ("any", "same", "same")),
}  # fmt: skip
"""By name: the family of the result and of the arguments. `[...]` may be left out, `same` is the
family that is asked for, `any` each, `count` a small whole number."""

_AKIN = {"int": ("int",), "num": ("num", "int"), "null": ("null",)}
_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=", "<=>")


@dataclass
class Expressions(Choices):
    """Writes expressions over columns, each with its family."""

    columns: list[tuple[str, str]] = field(default_factory=list)

    def of(self, family: str, depth: int = 2) -> str:
        """An expression of a family, or now and then something else."""
        if family == "any" or self.chance(self.wrong):
            family = self.pick(FAMILIES)
        if depth >= 0 and self.chance(self.foreign):
            return self.foreign_expression(family, depth)
        if depth <= 0 or self.chance(0.25):
            return self.leaf(family)
        ways = [self.function, self.choice]
        ways += {
            "bool": [self.condition] * 4,
            "int": [self.arithmetic, self.bits, self.part_of_time],
            "num": [self.arithmetic] * 2,
            "text": [self.joined],
            "date": [self.moved],
            "time": [self.moved],
            "span": [self.distance],
        }.get(family, [])
        if family not in ("span", "ints", "texts", "null"):
            ways.append(self.converted)
        return self.pick(ways)(family, depth - 1)

    def leaf(self, family: str) -> str:
        akin = _AKIN.get(family, (family,))
        known = [name for name, its in self.columns if its in akin]
        literals = [v for f in akin for v in LITERALS.get(f, ())]
        if known and (not literals or self.chance(0.7)):
            return self.pick(known)
        return self.pick(literals or ["NULL"])

    # -- functions and choices

    def function(self, family: str, depth: int) -> str:
        found = [n for n, (result, _) in FUNCTIONS.items() if result in (family, "same")]
        name = self.pick([n for n in found if FUNCTIONS[n][0] == family] or found)
        if self.chance(0.15):
            name = self.pick(found)
        self.note(f"function:{name}")
        arguments: list[str] = []
        for wanted in FUNCTIONS[name][1]:
            if wanted.startswith("[") and self.chance(0.5):
                break
            arguments.append(self.argument(wanted.strip("[]"), family, depth))
        if self.chance(self.wrong / 4):
            arguments = self.pick([arguments[:-1], [*arguments, self.of("any", 0)]])
        return f"{self.pick((name, name, name.upper()))}({', '.join(arguments)})"

    def argument(self, wanted: str, family: str, depth: int) -> str:
        if wanted in ("pattern", "regex", "unit"):
            return self.pick(LITERALS[wanted]) if self.chance(0.8) else self.of("text", depth)
        if wanted == "places":
            return self.pick(("0", "1", "2", "-1", "-10", "400")) if self.chance(0.8) else "n"
        if wanted == "count":
            return self.pick(("0", "1", "2", "-1", "3")) if self.chance(0.7) else self.of("int", 0)
        return self.of(family if wanted == "same" else wanted, depth)

    def choice(self, family: str, depth: int) -> str:
        """CASE in its two forms."""
        self.note("case")
        values = [self.of(family, depth) for _ in range(2)]
        rest = self.maybe(0.7, f" ELSE {values[1]}")
        if self.chance(0.6):
            return f"CASE WHEN {self.of('bool', depth)} THEN {values[0]}{rest} END"
        asked = self.pick(("int", "text", "num", "date"))
        given = f"{self.of(asked, 0)} WHEN {self.of(asked, 0)}"
        return f"CASE {given} THEN {values[0]}{rest} END"

    def converted(self, family: str, depth: int) -> str:
        targets = {
            "bool": ("BOOLEAN",), "int": TYPES[1:5], "num": TYPES[5:10], "text": ("STRING",),
            "bytes": ("BINARY",), "date": ("DATE",), "time": ("TIMESTAMP",),
        }  # fmt: skip
        target = self.pick(targets[family])
        sources = ("text",) if family in ("bytes", "bool") else ("text", "num", "int", "time")
        source = "any" if family == "text" or self.chance(self.wrong) else self.pick(sources)
        if self.chance(self.wrong):
            target = self.pick((*TYPES, *NO_CASTS))
        if self.chance(self.foreign):
            target = self.pick(CASTS)
        cast = self.pick(("CAST", "CAST", "TRY_CAST"))
        self.note(f"{cast.lower()}:{target}")
        return f"{cast}({self.of(source, depth)} AS {target})"

    # -- conditions

    def condition(self, family: str, depth: int) -> str:
        way = self.pick((self.compared, self.connected, self.between, self.member, self.tested,
                         self.matched))  # fmt: skip
        return way(depth)

    def pair(self, depth: int) -> tuple[str, str]:
        """Two operands of one family."""
        family = self.pick(FAMILIES[:10])
        return self.of(family, depth), self.of(family, depth)

    def compared(self, depth: int) -> str:
        left, right = self.pair(depth)
        sign = self.pick(_COMPARISONS)
        self.note(f"operator:{sign}")
        return f"{_closed(left)} {sign} {_closed(right)}"

    def connected(self, depth: int) -> str:
        left, right = self.of("bool", depth), self.of("bool", depth)
        if self.chance(0.25):
            return f"NOT {_closed(left)}"
        return f"({left} {self.pick(('AND', 'OR'))} {right})"

    def between(self, depth: int) -> str:
        left, right = self.pair(depth)
        negated = self.maybe(0.3, "NOT ")
        return f"{_closed(left)} {negated}BETWEEN {_closed(right)} AND {_closed(left)}"

    def member(self, depth: int) -> str:
        left, right = self.pair(depth)
        listed = ", ".join((right, left, "NULL")[: self.rng.randint(1, 3)])
        return f"{_closed(left)} {self.maybe(0.3, 'NOT ')}IN ({listed})"

    def tested(self, depth: int) -> str:
        if self.chance(0.6):
            return f"{_closed(self.of('any', depth))} IS {self.maybe(0.5, 'NOT ')}NULL"
        said = self.pick(("TRUE", "FALSE", "NOT TRUE", "NOT FALSE"))
        return f"{_closed(self.of('bool', depth))} IS {said}"

    def matched(self, depth: int) -> str:
        text, negated = _closed(self.of("text", depth)), self.maybe(0.3, "NOT ")
        if self.chance(0.6):
            self.note("operator:like")
            return f"{text} {negated}LIKE {self.argument('pattern', 'text', 0)}"
        return f"{text} {negated}RLIKE {self.argument('regex', 'text', 0)}"

    # -- numbers, texts, times

    def arithmetic(self, family: str, depth: int) -> str:
        sign = self.pick(("+", "-", "*", "%", "div") if family == "int" else ("+", "-", "*", "/"))
        self.note(f"operator:{sign}")
        left, right = self.of(family, depth), self.of(family, depth)
        if self.chance(0.15):
            return f"-{_closed(left)}"
        return f"{_closed(left)} {sign} {_closed(right)}"

    def bits(self, family: str, depth: int) -> str:
        left, right = self.of("int", depth), self.of("int", depth)
        if self.chance(0.2):
            return f"~{_closed(left)}"
        return f"{_closed(left)} {self.pick(('&', '|', '^'))} {_closed(right)}"

    def part_of_time(self, family: str, depth: int) -> str:
        parts = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOW", "DOY", "HOUR", "MINUTE",
                 "SECOND")  # fmt: skip
        return f"EXTRACT({self.pick(parts)} FROM {self.of(self.pick(('date', 'time')), depth)})"

    def joined(self, family: str, depth: int) -> str:
        return f"{_closed(self.of('text', depth))} || {_closed(self.of('any', depth))}"

    def moved(self, family: str, depth: int) -> str:
        by = "span" if family == "time" else "count"
        amount = self.argument(by, "int", depth)
        return f"{_closed(self.of(family, depth))} {self.pick('+-')} {_closed(amount)}"

    def distance(self, family: str, depth: int) -> str:
        if self.chance(0.4):
            return f"{_closed(self.of('time', depth))} - {_closed(self.of('time', depth))}"
        if self.chance(0.5):
            return f"{_closed(self.of('span', depth))} {self.pick('*/')} {self.of('num', 0)}"
        return f"{_closed(self.of('span', depth))} {self.pick('+-')} {_closed(self.of('span', 0))}"

    # -- what others write

    def foreign_expression(self, family: str, depth: int) -> str:
        made = [f for f in EXPRESSIONS if f.family in (family, "any")] or list(EXPRESSIONS)
        found = self.pick(made if self.chance(0.7) else EXPRESSIONS)
        self.note(f"foreign:{found.name}")
        names = [name for name, _ in self.columns] or ["n"]
        holes = {"c": self.pick(names)}
        for hole in sorted(found.holes - {"c"}):
            holes[hole] = _closed(self.of(_HOLES[hole], depth - 2))
        return found.filled(holes)


_HOLES = {
    "i": "int", "j": "int", "x": "num", "s": "text", "b": "bool", "a": "any", "ts": "time",
    "d": "date", "xs": "ints",
}  # fmt: skip


def _closed(text: str) -> str:
    """The expression in brackets, unless it is a name or a literal."""
    return text if text.replace(".", "").replace("'", "").isalnum() else f"({text})"
