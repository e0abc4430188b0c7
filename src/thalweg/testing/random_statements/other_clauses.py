"""What other dialects allow around the expressions of a SELECT; most of it has no meaning here."""

from __future__ import annotations

from thalweg.testing.random_statements.choices import either


def _refused(*texts: str) -> tuple[str, ...]:
    return tuple(either(text, None) for text in texts)


STARS = (
    *_refused(
        "* EXCEPT (n)", "* EXCLUDE (n)", "* EXCLUDE n", "* REPLACE (1 AS n)", "* RENAME (n AS m)",
        "* EXCEPT (n) REPLACE (1 AS d)", "s.* EXCEPT (n)", "* ILIKE 'a%'", "* LIKE 'a%'",
        "COLUMNS('n|d')", "COLUMNS(* EXCLUDE (n))", "n.*", "TOP 3 n", "n INTO x", "n AS (a, b)",
        "n x y", "x = n", "x: n", "STRUCT(*)", "*, * EXCEPT (n)", "ALL", "n,", ", n",
        "",
        "@x := n", "SQL_NO_CACHE n", "AS STRUCT n", "AS VALUE n", "DISTINCT ON (n) n",
        "n AS x COMMENT 'y'", "n::INT FORMAT 'x' AS y", "UNNEST(xs)", "explode(xs) AS e",
        "stack(2, n, d) AS (a, b)", "n AS __ts", "n AS __x", "TRANSFORM(n) USING 'cat'", "nosuch",
        "r.nosuch", "nosuch.n", "$1", "PREVIOUS(n)", "n IGNORE NULLS",
    ),
    either("s.n", "s.n"), either("n AS `a b`", "n AS `a b`"), either("n AS x, d AS X",
    "n AS x, d AS x_2"),
    either("ALL n", "n"), either("n AS 'x'", "n AS x"), either("*, n AS extra", "*, n AS extra"),
)  # fmt: skip

AFTER_SELECT = (*_refused(
    "DISTINCT ON (n) ", "TOP 3 ", "TOP (3) PERCENT ", "SQL_CALC_FOUND_ROWS ", "STRAIGHT_JOIN ",
    "UNIQUE ", "AS STRUCT ", "WITH DIFFERENTIAL_PRIVACY ", "DISTINCT ALL ", "STREAM ", "FIRST 3 ",
    "SKIP 1 ", "DISTINCTROW ", "ISTREAM RSTREAM ",
), either("ALL ", ""), either("/*+ BROADCAST(s) */ ", ""), either("/* said */ ", ""))  # fmt: skip

BEFORE_SELECT = _refused(
    "WITH x AS (SELECT 1) ", "WITH RECURSIVE x AS (SELECT 1) ", "FROM s ", "VALUES (1) ",
    "TABLE s ",
    "EXPLAIN ANALYZE VERBOSE ", "DECLARE c CURSOR FOR ", "PREPARE p AS ", "INSERT INTO x ",
    "CREATE TABLE x AS ", "CREATE TEMP VIEW x AS ", "CREATE OR REPLACE VIEW x AS ", "COPY ",
    "CREATE MATERIALIZED VIEW x AS ", "CACHE TABLE x AS ", "BEGIN ", "SET x = ", "MERGE INTO x ",
)  # fmt: skip

SOURCES = (*_refused(
    "s TABLESAMPLE (10 PERCENT)", "s TABLESAMPLE BERNOULLI (10)", "s SAMPLE (10)", "ONLY s",
    "LATERAL (SELECT 1) x", "s, LATERAL (SELECT 1) x", "s CROSS JOIN LATERAL (SELECT 1) x",
    "s, UNNEST(xs) AS u", "s LATERAL VIEW explode(xs) e AS x", "UNNEST([1, 2])", "VALUES (1, 2)",
    "(VALUES (1), (2)) x (a)", "s AS r (a, b)", "s PIVOT (sum(n) FOR txt IN ('a'))",
    "s WITH (NOLOCK)",
    "s UNPIVOT (x FOR y IN (n, d))", "s MATCH_RECOGNIZE (PATTERN (A))", "s FOR SYSTEM_TIME AS OF x",
    "s TIMESTAMP AS OF '2024-01-01'", "s VERSION AS OF 1", "s@v1", "s PARTITION (p1)", "s FINAL",
    "range(10)", "read_csv('x.csv')", "'data.csv'", "TABLE(f(1))", "s WITH ORDINALITY", "db.s",
    "catalog.db.s", "s*", "s INDEXED BY i", "s USE INDEX (i)", "s CHANGES (INFORMATION => DEFAULT)",
    "JSON_TABLE(txt, '$' COLUMNS (a INT))", "STREAM(s)", "s MODEL (x)", "TUMBLE(TABLE s, 1)",
    "nosuch",
    "s EMIT CHANGES", "s ANTI", "(s)(q)", "s s2 s3", "s [NOW] [NOW]", "s AT (OFFSET => 1)",
), either("(s)", "s"), either("S", "s"), either("`s`", "s"), either("(SELECT * FROM s)",
"s"))  # fmt: skip

AFTER_SOURCE = _refused(
    " TABLESAMPLE (5 ROWS)", " FOR UPDATE", " PIVOT (count(*) FOR txt IN ('a'))", " (a, b)",
    " WITH ORDINALITY", " USE INDEX (x)", " OFFSET 1", " @hint", " AS", " AS 'x'",
)  # fmt: skip

JOINS = (*_refused(
    "JOIN q USING (txt)", "NATURAL JOIN q", "NATURAL LEFT JOIN q", "LEFT JOIN q", "JOIN q",
    "LEFT JOIN LATERAL (SELECT 1) x ON TRUE", "CROSS APPLY q", "OUTER APPLY q", "STRAIGHT_JOIN q",
    "FULL JOIN q USING (txt)", "POSITIONAL JOIN q", "ANY JOIN q ON a.txt = q.txt",
    "SEMI JOIN q USING (txt)", "RIGHT SEMI JOIN q [NOW] b ON a.txt = b.txt", "UNION JOIN q",
    "GLOBAL JOIN q ON a.txt = q.txt", "ASOF JOIN q MATCH_CONDITION (a.ts >= q.ts) ON a.txt = q.txt",
    "JOIN q [NOW] b ON a.txt = b.txt AS j", "LEFT ARRAY JOIN xs",
    "CROSS JOIN q [NOW] b ON a.d = b.d",
    "ASOF JOIN q b ON a.txt = b.txt AND a.ts <= b.ts", "JOIN q [NOW] b ON a.txt = b.txt USING (d)",
    "JOIN q [NOW] b WITHIN 5 SECONDS ON a.txt = b.txt", "INNER OUTER JOIN q [NOW] b ON a.d = b.d",
    "ASOF JOIN q b ON a.txt = b.txt AND a.n >= b.k", "LEFT INNER JOIN q [NOW] b ON a.d = b.d",
    "FULL LEFT JOIN q [NOW] b ON a.d = b.d", "OUTER JOIN q [NOW] b ON a.d = b.d",
    "CROSS LEFT JOIN q [NOW] b ON a.d = b.d", "JOIN q [NOW] b ON a.txt", "JOIN q [NOW] b ON (txt)",
    "NATURAL INNER JOIN q [NOW] b ON a.d = b.d", "LEFT ASOF OUTER SEMI JOIN q b ON a.d = b.d",
    "INNER INNER JOIN q [NOW] b ON a.d = b.d", "LEFT LEFT JOIN q [NOW] b ON a.d = b.d",
),
    either("ASOF JOIN q b ON a.txt = b.txt", "ASOF JOIN q b ON a.txt = b.txt AND a.ts >= b.ts"),
    either("LEFT OUTER JOIN q [NOW] b ON a.d = b.d", "LEFT JOIN q [NOW] b ON a.d = b.d"),
    either("FULL OUTER JOIN q [NOW] b ON a.d = b.d", "FULL JOIN q [NOW] b ON a.d = b.d"),
    either("SEMI JOIN q [NOW] b ON a.d = b.d", "LEFT SEMI JOIN q [NOW] b ON a.d = b.d"),
    either("ANTI JOIN q [NOW] b ON a.d = b.d", "LEFT ANTI JOIN q [NOW] b ON a.d = b.d"),
    either("LEFT OUTER SEMI JOIN q [NOW] b ON a.d = b.d", None),
)  # fmt: skip

GROUPINGS = (*_refused(
    "ALL", "DISTINCT txt", "txt WITH ROLLUP", "txt WITH CUBE", "txt WITH TOTALS", "()", "ALL txt",
    "ROLLUP (txt), CUBE (n)", "txt, ROLLUP (n)", "GROUPING SETS (ROLLUP (txt), (n))", "txt DESC",
    "txt AS x", "txt NULLS FIRST", "CUBE", "ROLLUP ()", "GROUPING SETS ((*))", "*", "s.*",
    "CONCAT(txt) COLLATE 'de'", "TUMBLE(ts, 1)", "HOP(ts, 1, 2)", "SESSION(ts)", "0", "99", "'txt'",
    "txt GROUPING SETS (txt)", "1.5", "-1", "NULL", "count(*)", "txt HAVING",
    "DISTINCT GROUPING SETS (txt)",
), either("(txt)", "txt"), either("txt, txt", "txt"))  # fmt: skip

TAILS = _refused(
    " QUALIFY row_number() OVER (ORDER BY ts) = 1", " WINDOW w AS (PARTITION BY txt)", " OFFSET 1",
    " FETCH FIRST 1 ROW ONLY", " FOR UPDATE", " FOR SHARE", " FOR XML", " CLUSTER BY n",
    " PREWHERE n",
    " DISTRIBUTE BY n", " SORT BY n", " LIMIT 1 OFFSET 1", " START WITH n = 1 CONNECT BY n",
    " USING n",
    " SETTINGS x = 1", " OPTION (RECOMPILE)", " FORMAT JSON", " LATERAL VIEW explode(xs) e AS x",
    " PIVOT (sum(n) FOR txt IN ('a'))", " EMIT CHANGES", " EMIT FINAL", " WITH TIES",
    " WITH NO DATA",
    " ORDER BY ALL", " INTO OUTFILE 'x'", " INTO x", " LOCK IN SHARE MODE",
    " WHERE n = 1 WHERE d = 1",
    " HAVING n > 1 HAVING n > 1", " GROUP BY n GROUP BY n", " WITHIN GROUP (ORDER BY n)",
    " RETURNING n",
    " WITH (unbounded = true) WITH (unbounded = true)", " LIMIT 1 LIMIT 2",
    " INTO CONSOLE INTO CONSOLE",
    " SAMPLE 10", " ERROR n WITHIN 5%", " SAMPLE EVERY 1 SECOND", " QOS (LATENCY (0:1))",
    " x y",
    " ON CONFLICT DO NOTHING", " MINUS SELECT 1", " UNION", " ; SELECT", " -> x", " )",
    " |> WHERE n",
    " INTO CONSOLE OPTIONS (a = 1)", " INTO CONSOLE FORMAT json", " INTO CONSOLE 'x'",
)  # fmt: skip
