"""Random statements around queries: definitions, management, EXPLAIN and SHOW."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.testing.random_statements.choices import Choices, either
from thalweg.testing.random_statements.expressions import TYPES
from thalweg.testing.random_statements.selects import BAD_OPTIONS, GOOD_OPTIONS, Selects

_DURATIONS = ("1 SECOND", "INTERVAL 5 MINUTES", "INTERVAL '5' MINUTES", "0 SECONDS", "2 DAYS")
_BAD_DURATIONS = (
    "1 MONTH",
    "-1 SECOND",
    "x SECONDS",
    "5",
    "SECOND",
    "1e400 DAYS",
    "INTERVAL",
    "NULL",
)
_NO_COLUMNS = (
    "a INT PRIMARY KEY", "a INT DEFAULT 1", "a INT GENERATED ALWAYS AS (1)", "a VARCHAR(3)",
    "a INT[]",
    "a ARRAY<INT>", "a STRUCT<b INT>", "a INT COMMENT 'x'", "a INT CHECK (a > 1)", "a INT UNIQUE",
    "PRIMARY KEY (a)", "a INT REFERENCES t (k)", "a INT COLLATE x", "a", "a NOSUCH", "INT a",
    "a INTERVAL",
    "WATERMARK FOR ts AS ts", "a DECIMAL(39)", "a DECIMAL(2, 5)", "a INT NOT NULL NULL",
    "__a INT", "a INT(4)",
    "a TIMESTAMP(3)", "a MAP<INT, INT>", "a INT, A INT", "a.b INT", "a INT ENCODED", "a STRING(5)",
)  # fmt: skip
_OTHERS = (
    "DESCRIBE s", "SHOW COLUMNS FROM s", "SHOW CREATE TABLE s", "USE x", "SET x = 1",
    "ANALYZE TABLE s COMPUTE STATISTICS", "ANALYZE s",
    "INSERT INTO t VALUES (1)", "DELETE FROM s", "UPDATE s SET n = 1", "TRUNCATE TABLE t", "VACUUM",
    "GRANT SELECT ON s TO x", "ALTER TABLE t ADD COLUMN a INT", "ALTER STREAM s SET (x = 1)",
    "COMMIT",
    "CREATE TABLE x (a INT)", "CREATE INDEX i ON s (n)", "CREATE FUNCTION f AS 'x'",
    "CREATE SCHEMA x",
    "DROP STREAM IF EXISTS s", "DROP QUERY IF EXISTS x", "DROP QUERY running CASCADE",
    "SHOW QUERIES LIKE 'x'",
    "CREATE OR REPLACE QUERY x AS SELECT n FROM s",
    "CREATE QUERY IF NOT EXISTS x AS SELECT n FROM s",
    "SHOW FUNCTIONS", "SHOW STREAMS FROM x", "EXPLAIN EXTENDED SELECT n FROM s", "CALL x()",
    "KILL 1",
    "EXPLAIN BOUND ANALYZE SELECT n FROM s", "EXPLAIN ESTIMATE SELECT n FROM s",
    "EXPLAIN SHOW QUERIES",
    "SELECT",
    "EXPLAIN FORMATTED running", "PAUSE ALL", "RESUME running NOW", "DROP running, v",
    "INVOKE running()",
    "REFRESH TABLE t, t", "REFRESH MATERIALIZED VIEW v", "SHOW STATE FOR s", "SHOW", "CREATE",
    "ALTER", "DROP",
    "CREATE VIEW x (a) AS SELECT n FROM s", "CREATE VIEW x WITH (a = 1) AS SELECT n FROM s",
    "EXPLAIN",
    "ALTER QUERY running RENAME TO x", "ALTER QUERY running SET TBLPROPERTIES (a = 1)",
    "DROP FUNCTION f",
    "ALTER VIEW v AS SELECT n FROM s", "CREATE QUERY x FROM s", "SELECT 1", "SELECT n",
    "VALUES (1)", "INVOKE",
)  # fmt: skip


@dataclass
class Definitions(Choices):
    """Writes one statement that is no query."""

    def statement(self) -> str:
        ways = (self.create_stream, self.create_stream, self.create_table, self.create_query,
                self.create_view, self.alter, self.manage, self.show, self.invoke, self.explain,
                self.others)  # fmt: skip
        way = self.pick(ways)
        self.note(f"statement:{way.__name__}")
        return way()

    def select(self) -> str:
        return Selects(self.rng, self.wrong, self.foreign, self.features).query()

    def duration(self) -> str:
        return self.pick(_BAD_DURATIONS if self.chance(self.wrong) else _DURATIONS)

    def name(self) -> str:
        bad = (
            "running",
            "s",
            "t",
            "v",
            "__x",
            "1",
            "'x'",
            "SysStream",
            "a.b",
            "`a b`",
            "select",
            "",
        )
        return self.pick(bad) if self.chance(self.wrong) else self.pick(("fresh", "new_one", "X"))

    def create_stream(self) -> str:
        columns = [f"c{i} {self.pick(TYPES)}{self.maybe(0.1, ' NOT NULL')}"
                   for i in range(self.rng.randint(1, 3))]  # fmt: skip
        if self.chance(self.foreign):
            columns.append(either(self.pick(_NO_COLUMNS), None))
        clauses = [
            f"LATENESS {self.duration()}", f"IDLE {self.duration()}", "IDLE NEVER", "ORDER BY c0",
            f"AHEAD {self.duration()}", "KEY (c0)", "UNIQUE (c0)", f"RETAIN {self.duration()}",
            "RETAIN 10 ROWS", f"BEHIND q {self.duration()}",
            f"BEHIND q {self.duration()}, s {self.duration()}",
        ]  # fmt: skip
        if self.chance(self.wrong):
            clauses += ["KEY (nosuch)", "ORDER BY nosuch", "KEY ()",
            "LATENESS 1 SECOND LATENESS 1 SECOND",
                        "RETAIN", "RETAIN -1 ROWS", "FROM FILES 'nowhere' FORMAT xl",
                        "FROM SENSOR 'x'",
                        "FROM FILES 'nowhere' FORMAT csv OPTIONS (header = true)", "FROM NOWHERE",
                        "FROM SPARK 'rate' FORMAT xml", "UNIQUE (c0, c0)",
                        "BEHIND nosuch 1 SECOND", "BEHIND fresh 1 SECOND", "BEHIND q",
                        "BEHIND t 1 SECOND", "BEHIND q 1 SECOND, q 1 SECOND"]  # fmt: skip
        if self.chance(self.foreign):
            clauses += [either(f, None) for f in (
                "PARTITIONED BY (c0)", "WITH (kafka = 'x')", "USING parquet", "COMMENT 'x'",
                "TBLPROPERTIES ('a' = 'b')", "WATERMARK FOR ts AS ts - INTERVAL 1 SECOND",
                "STORED AS parquet", "LOCATION 'x'", "CLUSTERED BY (c0)", "KEY c0 HASH",
                "ENGINE = x",
                "LATENESS 1 SECOND PRECEDING", "ORDER BY c0 DESC", "ORDER BY c0 NULLS FIRST",
                "BEHIND q BY 1 SECOND", "WITHIN 1 SECOND OF q",
            )]  # fmt: skip
        chosen = self.rng.sample(clauses, self.rng.randint(0, 3))
        by = self.pick(("ts", "ts", "ts", "ARRIVAL", "c0", "n UNIT MILLISECONDS", "(ts)", "nosuch",
                        "ts UNIT SECONDS", "n UNIT PARSECS", "n"))  # fmt: skip
        listed = ", ".join([*columns, "n BIGINT", "ts TIMESTAMP"])
        return f"CREATE STREAM {self.name()} ({listed}) TIMESTAMP BY {by} {' '.join(chosen)}"

    def create_table(self) -> str:
        columns = self.pick(("", " (k BIGINT, a STRING)", " (k NOSUCH)", " ()", " (k)"))
        tail = self.pick(("FROM FILES 'nowhere' FORMAT csv", "FROM FILES 'nowhere'",
        "FROM SPARK 'x'",
                          "FROM FILES 'nowhere' FORMAT xl", "", "AS SELECT 1", "FROM SENSOR 'x'",
                          "FROM FILES 'nowhere' FORMAT csv OPTIONS (glob = 1)", "FROM FILES",
                          "FROM FILES 'nowhere' FORMAT csv OPTIONS (globb = '*')"))  # fmt: skip
        return f"CREATE TABLE {self.name()}{columns} {tail}"

    def create_query(self) -> str:
        return f"CREATE QUERY {self.name()} AS {self.select()}"

    def create_view(self) -> str:
        retain = f" RETAIN {self.duration()}" if self.chance(0.3) else ""
        return f"CREATE VIEW {self.name()}{retain} AS {self.select()}"

    def alter(self) -> str:
        query = "nosuch" if self.chance(self.wrong) else "running"
        option = self.pick(BAD_OPTIONS if self.chance(self.wrong) else GOOD_OPTIONS)
        window = Selects(self.rng, self.wrong, self.foreign, self.features).window("s")
        source = "nosuch" if self.chance(self.wrong) else "s"
        what = self.pick((f"SET ({option})", f"SET WINDOW {source} {window}", f"AS {self.select()}",
                          "AS SELECT txt, n FROM s [RANGE 1 SECOND]"))  # fmt: skip
        return f"ALTER QUERY {query} {what}"

    def manage(self) -> str:
        verb = self.pick(("PAUSE", "RESUME", "DROP", "REFRESH"))
        kind = self.pick(("", "QUERY ", "VIEW ", "TABLE ", "STREAM ", "ALERT ", "FUNCTION "))
        return (
            f"{verb} {kind}{self.pick(('running', 'v', 's', 't', 'nosuch', '__x', '`a b`', '1'))}"
        )

    def show(self) -> str:
        what = self.pick(("STREAMS", "QUERIES", "TABLES", "VIEWS", "STATE", "PLANS running",
        "PLANS nosuch",
                          "PLANS", "ALERTS", "nosuch", "PLANS v"))  # fmt: skip
        return f"SHOW {what}"

    def invoke(self) -> str:
        at = self.pick(("", " AT TIMESTAMP '1970-01-01 00:00:03'", " AT 5", " AT 'x'", " AT NULL",
        " AT",
                        " AT n", " AT TIMESTAMP '2099-01-01 00:00:00'", " AT -1", " AT 1 + 1",
                        " AT DATE '1970-01-01'", " AT now()", " AT (SELECT 1)"))  # fmt: skip
        return f"INVOKE {self.pick(('running', 'running', 'nosuch', 'v', 's'))}{at}"

    def explain(self) -> str:
        what = self.pick(
            (self.select(), "running", "nosuch", f"CREATE QUERY x AS {self.select()}", "v")
        )
        mode = self.pick(("", "", "", "ADAPT ", "ANALYZE ", "BOUND ", "ESTIMATE "))
        return f"EXPLAIN {mode}{what}"

    def others(self) -> str:
        return either(self.pick(_OTHERS), None)
