"""What Postgres, Spark, DuckDB, Snowflake and BigQuery allow where Thalweg's expressions stand.

Each form says how documented words say the same. Without such words it has no meaning here and
must be refused: whatever is parsed and not read would give a wrong answer in silence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from thalweg.testing.random_statements.choices import either


@dataclass(frozen=True)
class Form:
    """A form with holes such as `<x>`, and the same in documented words, if there are any."""

    family: str
    text: str
    plain: str | None = None

    @property
    def name(self) -> str:
        return self.text

    @property
    def holes(self) -> set[str]:
        return set(re.findall(r"<(i|j|x|s|b|a|ts|d|xs|c)>", self.text))

    def filled(self, holes: Mapping[str, str]) -> str:
        def fill(template: str) -> str:
            return re.sub(r"<(\w+)>", lambda found: holes.get(found[1], found[0]), template)

        return either(fill(self.text), None if self.plain is None else fill(self.plain))


def _refused(family: str, *texts: str) -> tuple[Form, ...]:
    return tuple(Form(family, text) for text in texts)


EXPRESSIONS: tuple[Form, ...] = (
    # the same in other words, where Spark has them too
    Form("bool", "<x> == <i>", "<x> = <i>"),
    Form("bool", "! <b>", "NOT <b>"),
    Form("bool", "<a> IS DISTINCT FROM <a>", "NOT (<a> <=> <a>)"),
    Form("bool", "<a> IS NOT DISTINCT FROM <a>", "<a> <=> <a>"),
    Form("bool", "<a> ISNULL", "<a> IS NULL"),
    Form("bool", "<a> NOTNULL", "<a> IS NOT NULL"),
    Form("bool", "<b> IS UNKNOWN", "<b> IS NULL"),
    Form("bool", "<b> IS NOT UNKNOWN", "<b> IS NOT NULL"),
    Form("bool", "<s> REGEXP '[a-c]'", "<s> RLIKE '[a-c]'"),
    Form("bool", "<s> NOT REGEXP '[a-c]'", "NOT (<s> RLIKE '[a-c]')"),
    Form("bool", "NOT <i> BETWEEN 1 AND 2", "NOT (<i> BETWEEN 1 AND 2)"),
    Form("bool", "<i> BETWEEN ASYMMETRIC 1 AND 2", "<i> BETWEEN 1 AND 2"),
    Form("bool", "<s> ILIKE 'A%'", "lower(<s>) LIKE 'a%'"),
    Form("bool", "<s> LIKE 'a!%' ESCAPE '!'", "<s> LIKE 'a\\\\%'"),
    Form("bool", "<s> LIKE ANY ('a%', '1%')", "<s> LIKE 'a%' OR <s> LIKE '1%'"),
    Form("bool", "<s> LIKE ALL ('a%', '%1')", "<s> LIKE 'a%' AND <s> LIKE '%1'"),
    Form("bool", "<s> ~~ 'a%'", "<s> LIKE 'a%'"),
    Form("bool", "<s> !~~ 'a%'", "NOT (<s> LIKE 'a%')"),
    Form("bool", "<s> ~ 'a'", "<s> RLIKE 'a'"),
    Form("bool", "<i> = ANY (1, 2)", "<i> IN (1, 2)"),
    Form("bool", "<i> = SOME (1, 2)", "<i> IN (1, 2)"),
    Form("bool", "(<i>, <j>) = (1, 2)", "<i> = 1 AND <j> = 2"),
    Form("bool", "(<i>, <j>) IN ((1, 2), (3, 4))", "<i> = 1 AND <j> = 2 OR <i> = 3 AND <j> = 4"),
    Form("bool", "<b> XOR <b>", "<b> <> <b>"),
    Form("bool", "<i> > 1 && <b>", "<i> > 1 AND <b>"),
    Form("int", "<i> MOD 7", "<i> % 7"),
    Form("int", "<i> // 7", "<i> div 7"),
    Form("int", "<s>::INT", "CAST(<s> AS INT)"),
    Form("int", "TRY_CAST(<s> AS INTEGER)", "TRY_CAST(<s> AS INT)"),
    Form("int", "SAFE_CAST(<s> AS INT)", "TRY_CAST(<s> AS INT)"),
    Form("int", "+<i>", "<i>"),
    Form("int", "- -<i>", "-(-<i>)"),
    Form("int", "lag(n) OVER (DISTRIBUTE BY txt SORT BY ts)",
         "lag(n) OVER (PARTITION BY txt ORDER BY ts)"),
    Form("bool", "<i> NOT IN (SELECT k FROM t)", "<i> NOT IN (SELECT k FROM t)"),
    Form("int", "lag(n) OVER (ORDER BY ts NULLS LAST)", "lag(n) OVER (ORDER BY ts)"),
    Form("int", "abs(ALL <i>)", "abs(<i>)"),
    Form("int", "7L", "CAST(7 AS BIGINT)"),
    Form("int", "7S", "CAST(7 AS SMALLINT)"),
    Form("int", "7Y", "CAST(7 AS TINYINT)"),
    Form("num", "1.5D", "1.5"),
    Form("num", "1.5F", "CAST(1.5 AS FLOAT)"),
    Form("num", "1.5BD", "CAST('1.5' AS DECIMAL(2, 1))"),
    Form("num", ".5", "0.5"),
    Form("num", "5.", "5.0"),
    Form("num", "<x> ** 2", "power(<x>, 2)"),
    Form("text", "'a' 'b'", "'ab'"),
    Form("text", '"a"', "'a'"),
    Form("text", "r'a\\d'", "'a\\\\d'"),
    Form("text", "'a\\nb'", "concat('a', '\n', 'b')"),
    Form("text", "TRIM(BOTH 'a' FROM <s>)", "trim(<s>, 'a')"),
    Form("text", "TRIM(LEADING 'a' FROM <s>)", "ltrim(<s>, 'a')"),
    Form("text", "TRIM(TRAILING FROM <s>)", "rtrim(<s>)"),
    Form("text", "TRIM('a' FROM <s>)", "trim(<s>, 'a')"),
    Form("text", "SUBSTRING(<s> FROM 2 FOR 1)", "substring(<s>, 2, 1)"),
    Form("text", "SUBSTRING(<s> FROM 2)", "substring(<s>, 2)"),
    Form("text", "<s> || NULL", "concat(<s>, NULL)"),
    Form("int", "POSITION('a' IN <s>)", "locate('a', <s>)"),
    Form("int", "DATE_PART('day', <ts>)", "EXTRACT(DAY FROM <ts>)"),
    Form("int", "EXTRACT(day FROM <d>)", "EXTRACT(DAY FROM <d>)"),
    Form("int", "EXTRACT('day' FROM <d>)", "EXTRACT(DAY FROM <d>)"),
    Form("date", "DATE '2024-02-29'", "CAST('2024-02-29' AS DATE)"),
    Form("time", "TIMESTAMP '2024-02-29 01:02:03'", "CAST('2024-02-29 01:02:03' AS TIMESTAMP)"),
    Form("time", "TIMESTAMP_NTZ '2024-01-01'", "CAST('2024-01-01' AS TIMESTAMP)"),
    Form("span", "INTERVAL '1 hour'", "INTERVAL 1 HOUR"),
    Form("span", "INTERVAL '1' DAYS", "INTERVAL 1 DAY"),
    Form("span", "INTERVAL 1 DAY 2 HOURS", "INTERVAL 26 HOURS"),
    Form("same", "DECODE(<i>, 1, <a>)", "CASE WHEN <i> <=> 1 THEN <a> END"),
    Form("any", "<c> /* said */", "<c>"),
    Form("any", "((<c>))", "<c>"),
    # without a meaning here
    *_refused(
        "bool",
        "<i> BETWEEN SYMMETRIC <j> AND 1", "<s> SIMILAR TO 'a'", "<s> !~ 'a'", "<s> ~* 'a'",
        "<s> GLOB 'a*'", "<s> MATCH 'a'", "<i> > ALL (1, 2)", "<i> < ANY (1, 2)",
        "<i> IN UNNEST(<xs>)", "<i> = ANY(<xs>)", "EXISTS (SELECT 1 FROM q)",
        "EXISTS(<xs>, e -> e > 1)", "<s> IS JSON", "<s> IS NOT JSON OBJECT", "<s> IS NORMALIZED",
        "<s> IS OF (INT)", "(<ts>, <ts>) OVERLAPS (<ts>, <ts>)", "<xs> @> <xs>", "<xs> <@ <xs>",
        "<xs> && <xs>", "<s> ^@ 'a'", "<s> STARTS WITH 'a'", "UNIQUE (SELECT 1)", "<b> IS 1",
        "<b> IS NOT 'x'", "<s> LIKE 'a' ESCAPE", "<s> NOT ILIKE ANY ('a')",
        "<s> RLIKE ALL ('a', 'b')", "JSON_EXISTS(<s>, '$.a')",
        "<a> MEMBER OF <xs>", "<s> LIKE_REGEX 'a' FLAG 'i'", "<a> IS DOCUMENT", "<a> = DEFAULT",
    ),
    *_refused(
        "int",
        "<c>::INT FORMAT 'x'", "<s>:a::INT", "<xs>[0]", "<xs>[1]", "<xs>[1:2]", "<i> << 1",
        "<i> >> 1", "<i> >>> 1", "<i> # 1", "<i> !", "@ <i>", "|/ <x>", "<s> -> 'a'",
        "<s> ->> 'a'", "<s> #> 'a'", "<s>.a", "EXTRACT(EPOCH FROM <ts>)",
        "EXTRACT(sqrt FROM <x>)", "EXTRACT(TIMEZONE_HOUR FROM <ts>)",
        "EXTRACT(WEEK(MONDAY) FROM <d>)", "EXTRACT(ISOYEAR FROM <d>)",
        "TRY_CAST(<s> AS INT DEFAULT 0 ON CONVERSION ERROR)", "CAST(<i> AS INT FORMAT '9')",
        "TRY(<i>)", "abs(x => <i>)", "abs(x := <i>)", "abs(DISTINCT <i>)",
        "abs(<i> ORDER BY 1)", "abs(<i>) FILTER (WHERE <b>)", "abs(<i> IGNORE NULLS)",
        "length(<s> USING utf8)", "abs(*)", "coalesce(*)", "row_number()", "ROWNUM", "LEVEL",
        "NEXT VALUE FOR q", "q.NEXTVAL", "PRIOR <c>", "CONNECT_BY_ROOT <c>", "<c>(+)", "$1", "?",
        ":name", "@v", "@@rows", "#<c>", "0x1F", "1_000", "0b11", "(SELECT 1)", "(SELECT k FROM q)",
        "ARRAY(SELECT k FROM q)", "<i> COLLATE 'de'", "abs(<i>) WITHIN GROUP (ORDER BY <i>)",
        "lag(n) IGNORE NULLS OVER (ORDER BY ts)", "lag(n IGNORE NULLS) OVER (ORDER BY ts)",
        "lag(n) RESPECT NULLS OVER (ORDER BY ts)", "rank() OVER (ORDER BY ts)",
        "lag(n) OVER (ORDER BY ts DESC)",
        "lag(n) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "row_number() OVER (ORDER BY ts RANGE UNBOUNDED PRECEDING)", "row_number() OVER w",
        "row_number() OVER (w PARTITION BY n)", "lag(DISTINCT n) OVER (ORDER BY ts)",
        "lag(n) FILTER (WHERE <b>) OVER (ORDER BY ts)", "lag(n, 1) FROM LAST OVER (ORDER BY ts)",
        "ntile(4) OVER (ORDER BY ts)", "nth_value(n, 2) OVER (ORDER BY ts)",
        "lag(n) OVER (CLUSTER BY txt)",
        "row_number() OVER (PARTITION BY txt ORDER BY ts, n)", "IDENTIFIER('n')",
        "lag(n, 1, 0) OVER (PARTITION BY txt ORDER BY ts GROUPS CURRENT ROW EXCLUDE TIES)",
        "abs(<i>).x", "<c>.a.b.c.d", "`a.b`", "CAST(<s> AS INT) ON ERROR NULL", "<i> AS y",
        "CASE <i> WHEN 1, 2 THEN 3 END", "CASE WHEN <b> THEN 1 WHEN 2 END", "IF <b> THEN 1 END",
    ),
    *_refused(
        "text",
        "<s> COLLATE 'de'", "CAST(<ts> AS STRING FORMAT 'yyyy')", "<s>:path", "<s>:a.b[0]",
        "OVERLAY(<s> PLACING 'x' FROM 1)", "CONVERT(<s> USING utf8)", "CONVERT(STRING, <i>)",
        "TRANSLATE(<s> USING utf8)", "E'a\\n'", "U&'a'", "N'a'", "b'a'", "X'FF'", "$$a$$",
        "_utf8'a'", "GROUP_CONCAT(<s> SEPARATOR ',')", "JSON_VALUE(<s>, '$.a')",
        "JSON_OBJECT('a': <i>)", "JSON_ARRAY(<i> NULL ON NULL)", "XMLELEMENT(NAME a, <s>)",
        "CURRENT_USER", "CURRENT_SCHEMA", "version()", "uuid()", "format_string('%d', <i>)",
        "to_char(<ts>, 'YYYY')", "date_format(<ts>, 'yyyy')", "<ts> FORMAT 'yyyy'",
        "trim(<s> COLLATE 'de')", "upper(<s>) AS y", "TRIM(BOTH FROM)", "<s> || ALL 'a'",
        "SUBSTRING(<s> SIMILAR 'a' ESCAPE '#')", "NORMALIZE(<s>, NFC)", "<s> BINARY", "BINARY <s>",
        "CAST(<s> AS CHAR CHARACTER SET utf8)", "CHAR(65 USING utf8)", "f'{n}'", "DEFAULT",
    ),
    *_refused(
        "time",
        "<ts> AT TIME ZONE 'UTC'", "<ts> AT LOCAL", "CURRENT_TIMESTAMP", "CURRENT_DATE", "now()",
        "CURRENT_TIMESTAMP(3)", "LOCALTIMESTAMP", "TIME '01:02:03'", "<ts> + 1 DAY",
        "<ts> + INTERVAL 1 MONTH", "DATE_ADD(<ts>, INTERVAL 1 DAY)", "DATEADD(DAY, 1, <ts>)",
         "DATE_DIFF(<ts>, <ts>, DAY)", "TIMESTAMPDIFF(DAY, <ts>, <ts>)",
        "TIMESTAMP_TRUNC(<ts>, DAY)", "TIMESTAMP WITH TIME ZONE '2024-01-01 00:00:00+00'",
         "to_timestamp(<s>, 'yyyy')", "<ts> - 1", "SYSDATE",
        "window(<ts>, '1 hour')", "TUMBLE(<ts>, INTERVAL 1 HOUR)", "<ts> FOR SYSTEM_TIME AS OF now",
    ),
    *_refused("date", "to_date(<s>, 'yyyy')", "DATE 2024-02-29", "DATE(2024, 1, 1)",
    "{d '2024-1-1'}"),
    *_refused(
        "span",
        "INTERVAL '1' MONTH", "INTERVAL 2 YEARS", "INTERVAL '1-2' YEAR TO MONTH",
        "INTERVAL '1 2:03' DAY TO MINUTE", "INTERVAL '1 day 2 hours'",
        "INTERVAL '1' SECOND(3)", "INTERVAL <c> DAYS", "make_interval(days => 1)",
        "INTERVAL '' DAY",
        "INTERVAL 'x' DAY", "INTERVAL '1'", "INTERVAL 1", "1 DAY",
    ),
    *_refused(
        "ints",
        "ARRAY[1, 2]", "[1, 2]", "ARRAY(1, 2)", "{'a': 1}", "MAP {'a': 1}", "MAP('a', 1)",
        "STRUCT(1 AS a)", "STRUCT<a INT>(1)", "ROW(1, 2)", "named_struct('a', 1)", "{a: 1}",
        "transform(<xs>, e -> e + 1)", "filter(<xs>, e -> e > 1)",
        "list_transform(<xs>, lambda e: e)",
        "[e for e in <xs> if e]", "reduce(<xs>, 0, (a, e) -> a + e)", "<xs> || [1]",
        "ARRAY[]::INT[]",
        "UNNEST(<xs>)", "explode(<xs>)", "<xs>[*]", "<xs>.*", "COLUMNS('a.*')", "COLUMNS(*)",
        "sequence(1, 3)", "GENERATE_SERIES(1, 3)", "<xs>[SAFE_OFFSET(0)]", "<xs>[:2]", "size(<xs>)",
    ),
    *_refused("num", "1.5e", "1.5BDX", "<x> ^ 0.5", "random()", "rand(1)", "NaN", "'NaN'::x", "PI"),
)  # fmt: skip

AGGREGATES: tuple[Form, ...] = (
    Form("any", "count(ALL <a>)", "count(<a>)"),
    Form("any", "sum(ALL <i>)", "sum(<i>)"),
    Form("any", "count(1)", "count(*)"),
    Form("any", "count()", "count(*)"),
    Form("any", "percentile_cont(0.5) WITHIN GROUP (ORDER BY <x>)", "percentile(<x>, 0.5)"),
    Form("any", "percentile_cont(0.5) WITHIN GROUP (ORDER BY <x> ASC)", "percentile(<x>, 0.5)"),
    Form("any", "percentile_disc(0.5) WITHIN GROUP (ORDER BY <x> NULLS FIRST)",
         "percentile_disc(0.5) WITHIN GROUP (ORDER BY <x>)"),
    Form("any", "sum(<i>) FILTER (<b>)", "sum(<i>) FILTER (WHERE <b>)"),
    Form("any", "first_value(<i>)", "first(<i>)"),
    Form("any", "mode() WITHIN GROUP (ORDER BY <a>)", "mode(<a>)"),
    Form("any", "listagg(<s>, ',') WITHIN GROUP (ORDER BY <s>)", "string_agg(<s>, ',')"),
    Form("any", "string_agg(<s>)", "string_agg(<s>, '')"),
    Form("any", "quantile_cont(<x>, 0.5)", "percentile(<x>, 0.5)"),
    Form("any", "collect_list(<i>)", "array_agg(<i>)"),
    Form("any", "array_agg(DISTINCT <i>)", "collect_set(<i>)"),
    Form("any", "var_samp(<x>)", "variance(<x>)"),
    Form("any", "stddev_samp(<x>)", "stddev(<x>)"),
    Form("any", "every(<b>)", "bool_and(<b>)"),
    Form("any", "some(<b>)", "bool_or(<b>)"),
    *_refused(
        "any",
        "count(<i>, <j>)", "count(DISTINCT <i>, <j>)", "count(DISTINCT *)", "count(s.*)", "sum(*)",
        "first(<i> IGNORE NULLS)", "first(<i>) IGNORE NULLS", "last(<i>) RESPECT NULLS",
        "array_agg(<i> ORDER BY <j>)", "array_agg(<i> LIMIT 2)", "array_agg(<i> ORDER BY <i> DESC)",
        "string_agg(<s>, ',' ORDER BY <i>)", "string_agg(<s> ORDER BY <s>)",
        "listagg(<s>, ',' ON OVERFLOW TRUNCATE)", "listagg(<s>) WITHIN GROUP (ORDER BY <i>)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY <x> DESC)",
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY <x>, <i>)",

        "percentile(<x>, 2)", "percentile(<x>, <c>)", "percentile(<x>, '0.5')",
        "percentile(<x>, array(0.5))", "any_value(<i> HAVING MAX <j>)",
        "max(<i>) KEEP (DENSE_RANK FIRST ORDER BY <j>)", "sum(<i>) OVER ()",
        "sum(<i>) OVER (PARTITION BY txt)", "count(*) OVER (ORDER BY ts ROWS 1 PRECEDING)",
        "approx_count_distinct(<i>)", "sum(<i> WHERE <b>)",
        "sum(<i>) FILTER (WHERE count(*) > 1)", "sum(sum(<i>))", "sum(DISTINCT ALL <i>)",
        "sum(<i>) FILTER (WHERE <b>) FILTER (WHERE <b>)", "min(<i>, 2)", "max(<xs>)",
        "corr(<x>, <x>)", "first(<i>, TRUE)",  "grouping(<c>)", "grouping_id()",
        "string_agg(<s>, <c>)", "count(*) + <c>", "sum(<i>) WITHIN (5%)",
        "count(*)::INT FORMAT 'x'",
        "group_concat(<s>)", "count_if(<i>)", "sum(<s>)", "bool_and(<i>)",
    ),
)  # fmt: skip

CASTS = (
    either("INTEGER", "INT"), either("LONG", "BIGINT"), either("SHORT", "SMALLINT"),
    either("BYTE", "TINYINT"), either("REAL", "FLOAT"), either("VARCHAR", "STRING"),
    either("TEXT", "STRING"), either("NUMERIC(5, 1)", "DECIMAL(5, 1)"),
    either("DEC(5)", "DECIMAL(5, 0)"), either("DECIMAL(5)", "DECIMAL(5, 0)"),
    either("TIMESTAMP_NTZ", "TIMESTAMP"), either("TIMESTAMP_LTZ", "TIMESTAMP"),
    either("BOOL", "BOOLEAN"),
)  # fmt: skip
"""Types under other names."""

NO_CASTS = tuple(
    either(name, None)
    for name in (
        "INT8", "INT64", "FLOAT64", "BYTES", "DATETIME", "TIMESTAMP WITH TIME ZONE", "NUMBER",
        "VARCHAR(2)", "CHAR(2)", "STRING(2)", "TIMESTAMP(3)", "FLOAT(24)", "INT(4)", "INT UNSIGNED",
        "DOUBLE PRECISION", "DECIMAL(39, 2)", "DECIMAL(2, 5)", "DECIMAL(-1)", "DECIMAL(5, -2)",
        "TIME", "INTERVAL", "INTERVAL DAY TO SECOND", "ARRAY<INT>", "INT[]", "MAP<INT, INT>",
        "STRUCT<a INT>", "JSON", "UUID", "VARIANT", "NOSUCH", "s.mytype",

        "TIMESTAMPTZ(3)", "STRING COLLATE UTF8_LCASE", "BIT", "ENUM('a')", "VOID", "NULL",
        "BINARY(2)",
        "BIGDECIMAL", "HUGEINT", "DECIMAL(10, 2, 3)", "VARCHAR(MAX)", "GEOMETRY", "ROW(a INT)",
        "NULLABLE(INT)", "OBJECT", "DATE FORMAT 'yyyy'",
    )
)  # fmt: skip
"""Types that there are elsewhere: no cast has them."""
