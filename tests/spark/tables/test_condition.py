"""`input.where` in Spark: every allowed form selects the same rows as given and as written out, and nothing else passes."""

from __future__ import annotations

import random
from datetime import date, datetime

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dptext_spark.config import condition
from dptext_spark.config.condition import FUNCTIONS, Condition, parsed
from dptext_spark.errors import SettingsError
from dptext_spark.spark.tables.condition import _check_functions, _check_plan, depends_on_zone, selected

SCHEMA = (
    "id long, a int, b int, x double, flag boolean, lang string, body string, day date, ts timestamp, tags array<string>, "
    "attrs map<string,string>, meta struct<note:string,n:int>, comments array<struct<text:string,by:string>>, data binary, "
    "`a b` string, nums array<int>"
)
DAY, AT = date(2024, 2, 29), datetime(2024, 2, 29, 12, 30, 15)
ROWS = [
    (1, 1, 2, 0.5, True, "en", "it's 5% off\\now", DAY, AT, ["x", "y"], {"k": "v"}, ("note", 3), [("t", "me")], b"A",
     "q", [3, 1]),
    (2, -7, 3, -1.5, False, "de", "Über \"all\" 😀", date(1999, 12, 31), datetime(1999, 12, 31, 23, 59, 59), ["z"], {"z": ""},
     (None, None), [(None, "")], b"", "", [0]),
    (3, None, 0, float("nan"), None, None, None, None, None, None, None, None, None, None, None, None),
    (4, 12, 12, 3.0, True, "EN", "a_b", date(2024, 1, 1), datetime(2024, 1, 1), ["x"], {"k": "w", "l": None}, ("", 0),
     [("u", None), ("t", "x")], b"\x00\xff", "a.b,c", [7]),
]  # fmt: skip

FORMS = [
    "id = 1", "id == 1", "id <> 1", "id != 1", "id < 3", "id <= 3", "id > 3", "id >= 3", "a <=> b",
    "a IS DISTINCT FROM b", "a IS NOT DISTINCT FROM b", "NOT a = 1", "! flag", "flag",
    "flag AND id > 1 OR NOT flag AND id < 3", "a = 1 = flag", "id BETWEEN 1 AND 2", "id NOT BETWEEN 1 AND 2 AND flag",
    "id IN (1, 3)", "lang NOT IN ('en', 'de')", "lang LIKE 'e%'", "lang NOT LIKE 'e_'", "lang ILIKE 'E%'",
    "lang NOT ILIKE 'E%'", "body LIKE '%5!%%' ESCAPE '!'", "body LIKE '%5\\%%'", "body LIKE 'a\\_b'",
    "body NOT LIKE '%!_%' ESCAPE '!'", "lang RLIKE '^e'", "lang REGEXP '^e'", "lang NOT RLIKE '^e'",
    "body RLIKE r'\\d+%'", "body RLIKE '\\\\d'", "a IS NULL", "a IS NOT NULL", "flag IS TRUE", "flag IS NOT FALSE",
    "flag IS UNKNOWN", "a + b * 2 - 1 > 3", "-a > - 2", "a - b - 1 < 0", "b / 2 > 1", "a % 5 = 2", "b DIV 2 = 1",
    "(b & 1) = 0", "(b | (1 ^ 3)) > 2", "~b < 0", "lang || '-' || body LIKE 'en-%'", "a = 1L", "a = 1Y OR a = -7S",
    "x > 0.4D", "x > .4F", "x = 1.5BD - 1", "x < 1e1", "id > -9223372036854775808", "a = NULL", "true",
    "flag = FALSE", "body = 'it\\'s 5% off\\\\now'", 'lang = "en"', "lang = r'en'",
    'body = \'Über "all" 😀\'', "body LIKE '%😀'",
    "CASE WHEN a > 1 THEN 'x' WHEN a IS NULL THEN 'n' ELSE 'y' END = 'n'", "CASE lang WHEN 'en' THEN 1 END = 1",
    "CAST(id AS STRING) = '1'", "CAST(b AS INT) = 2", "TRY_CAST(lang AS INT) IS NULL",
    "CAST(id AS DECIMAL(10, 2)) = 1.00", "CAST(a AS DOUBLE) > 0.5", "CAST(id AS TINYINT) = 1",
    "CAST(id AS SMALLINT) = 1", "CAST(id AS FLOAT) = 1", "CAST(a AS BIGINT) = 1", "CAST(a AS BOOLEAN)",
    "CAST(ts AS DATE) = day", "day = DATE '2024-02-29'", "day > '2024-01-15'", "ts > '2024-01-15'",
    "ts < TIMESTAMP '2024-02-29 12:30:16'", "ts = TIMESTAMP '2024-02-29 12:30:15Z'",
    "ts > TIMESTAMP_LTZ '2024-01-01 00:00:00'", "CAST(ts AS DATE) > CAST('2024-01-15' AS DATE)",
    "day > DATE '2024-03-02' - INTERVAL 3 DAYS", "ts > CAST('2024-01-15 00:00:00' AS TIMESTAMP_NTZ)",
    "ts + INTERVAL '2' HOURS > TIMESTAMP '2024-02-29 14:00:00'", "meta.note = 'note'", "meta.n > 1", "`a b` = 'q'",
    "attrs['k'] = 'v'", "attrs.k = 'w'", "get_json_object(body, '$.x') IS NULL", "nums[0] = 3",
    "comments[0].text = 't'", "array_contains(comments.text, 't')", "META.NOTE = 'note'", "lang IN ('en', NULL)",
    "array_contains(tags, 'x') AND array_position(tags, 'y') = 2", "array_size(tags) = 1",
    "arrays_overlap(tags, array(lang, 'x'))", "abs(a) > 5", "ascii(lang) = 101", "bit_count(b) = 1",
    "bit_length(lang) = 16", "bround(x, 0) = 0", "cardinality(tags) = 1", "ceil(x) = 1", "ceiling(x) = 1",
    "char_length(lang) = 2", "character_length(lang) = 2", "contains(lang, 'e')", "crc32(data) > 0",
    "endswith(lang, 'n')", "equal_null(a, b)", "find_in_set('c', `a b`) = 2", "floor(x) = 0", "pmod(hash(id), 2) = 0",
    "instr(lang, 'n') = 2", "isnan(x)", "isnotnull(a)", "isnull(a)", "json_array_length(body) IS NULL",
    "length(body) > 5", "levenshtein(lang, 'em') = 1", "locate('n', lang) = 2", "map_contains_key(attrs, 'k')",
    "mod(a, 5) = 2", "negative(a) = 7", "octet_length(body) > 10", "positive(a) = 1", "regexp_count(body, 'l') = 2",
    "regexp_instr(body, 'l') > 1", "regexp_like(lang, '^e')", "round(x, 0) = 1", "shiftleft(b, 1) = 4",
    "shiftright(b, 1) = 1", "sign(a) = -1", "signum(a) = 1", "size(tags) = 2", "sqrt(b) > 1.5",
    "startswith(lang, 'e')", "xxhash64(id) % 2 = 0", "add_months(day, 1) > day", "date_add(day, 1) > day",
    "date_diff(day, DATE '2024-01-01') = 0", "date_from_unix_date(id) < day", "date_sub(day, 1) < day",
    "date_trunc('MONTH', ts) = TIMESTAMP '2024-02-01 00:00:00'", "datediff(day, DATE '2024-01-01') = 59",
    "day(day) = 29", "dayofmonth(day) = 29", "dayofweek(day) = 5", "dayofyear(day) = 60", "hour(ts) = 12",
    "last_day(day) = day", "make_date(2024, 1, id) < day", "make_timestamp(2024, 2, 29, 12, 30, 15) = ts",
    "minute(ts) = 30", "month(day) = 2", "months_between(day, DATE '2024-01-01') > 1", "next_day(day, 'MO') > day",
    "quarter(day) = 1", "second(ts) = 15", "timestamp_micros(id) < ts", "timestamp_millis(id) < ts",
    "timestamp_seconds(id) < ts", "to_date('2024-02-29') = day", "to_timestamp('2024-02-29', 'yyyy-MM-dd') < ts",
    "trunc(day, 'MM') = DATE '2024-02-01'", "unix_date(day) > 10000", "unix_micros(ts) > 0", "unix_millis(ts) > 0",
    "unix_seconds(ts) > 0", "weekday(day) = 3", "weekofyear(day) = 9", "year(day) = 2024", "array_max(nums) = 3",
    "array_min(nums) = 1", "base64(data) = 'QQ=='", "btrim(lang) = 'en'", "coalesce(lang, 'x') = 'x'",
    "concat(lang, body) LIKE 'de%'", "concat_ws('-', lang, `a b`) = 'en-q'", "date_format(day, 'yyyy') = '2024'",
    "element_at(attrs, 'k') = 'v'", "greatest(a, b) = 12", "hex(data) = '41'", "if(flag, a, b) = 3",
    "ifnull(a, 0) = 0", "initcap(lang) = 'En'", "lcase(lang) = 'en'", "least(a, b) = 1", "left(lang, 1) = 'e'",
    "lower(lang) = 'en'", "lpad(lang, 3, '-') = '-en'", "ltrim(lang) = 'en'", "map_keys(attrs)[0] = 'k'",
    "array_contains(map_values(attrs), 'v')", "md5(lang) > '5'", "nanvl(x, 1.0) = 1", "nullif(a, 1) IS NULL",
    "nvl(a, 0) = 0", "nvl2(a, 1, 0) = 0", "regexp_extract(body, '([a-z]+)', 1) = 'it'",
    "regexp_replace(lang, 'e', 'x') = 'xn'", "regexp_substr(lang, 'e.') = 'en'", "repeat(lang, 2) = 'enen'",
    "replace(lang, 'e', 'x') = 'xn'", "reverse(lang) = 'ne'", "right(lang, 1) = 'n'", "rpad(lang, 3, '-') = 'en-'",
    "rtrim(lang) = 'en'", "sha(lang) > '5'", "sha1(lang) > '5'", "sha2(lang, 256) > '5'", "soundex(lang) = 'E500'",
    "split(body, ' ')[0] = 'a_b'", "split_part(`a b`, '.', 1) = 'a'", "substr(lang, 2) = 'n'",
    "substring(lang, 1, 1) = 'e'", "substring_index(`a b`, '.', 1) = 'a'", "translate(lang, 'e', 'x') = 'xn'",
    "trim(lang) = 'en'", "try_element_at(tags, 2) = 'y'", "ucase(lang) = 'EN'", "upper(lang) = 'EN'",
]  # fmt: skip


@pytest.fixture
def df(spark) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA).coalesce(1)


def test_every_allowed_form_selects_the_same_rows_as_given_and_as_written_out(df: DataFrame) -> None:
    as_given, written = ([F.coalesce(F.expr(text), F.lit(False)) for text in texts] for texts in (
        FORMS, [parsed(text).sql(df.columns) for text in FORMS]
    ))  # fmt: skip
    pairs = [
        F.array(one, other).alias(f"p{n}")
        for n, (one, other) in enumerate(zip(as_given, written, strict=True))
    ]
    rows = df.select(*pairs).collect()
    differ = [FORMS[n] for n in range(len(FORMS)) if any(row[n][0] != row[n][1] for row in rows)]
    assert differ == []
    # Most conditions choose some rows: else equal would say little.
    assert sum(any(row[n][0] for row in rows) for n in range(len(FORMS))) > 0.9 * len(FORMS)


def test_the_forms_above_are_all_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()

    class Noted(dict[str, object]):
        def get(self, name: str, default: object = None) -> object:
            seen.add(name)
            return super().get(name, default)

    monkeypatch.setattr(condition, "_FORMS", Noted(condition._FORMS))
    called: set[str] = set()
    for text in FORMS:
        condition.parsed.cache_clear()
        called |= parsed(text).functions
    assert called == FUNCTIONS
    assert seen == set(condition._FORMS)


def test_spark_groups_operators_as_they_were_checked(spark) -> None:
    """Chains of operators without parentheses, read by Spark's own parser: as given, and as written out."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    binary = ["=", "<>", "<", ">=", "<=>", "+", "-", "*", "/", "%", "DIV", "&", "|", "^", "||", "AND", "OR", "LIKE", "RLIKE",
              "IS DISTINCT FROM", "NOT LIKE", "AND NOT"]  # fmt: skip
    random_ = random.Random(7)
    accepted = 0
    for _ in range(1500):
        text = random_.choice(["", "", "NOT ", "- "]) + "a"
        for name in "bcde"[: random_.randint(1, 4)]:
            operator = random_.choice([*binary, "BETWEEN", "IN", "IS"])
            if operator == "BETWEEN":
                text += f" BETWEEN {name} AND {name} + 1"
            elif operator == "IN":
                text += f" IN ({name}, 1)"
            elif operator == "IS":
                text += " IS NULL"
            else:
                text += f" {operator} {random_.choice(['', '', '-', '~'])}{name}"
        try:
            written = parsed(text).sql(list("abcde"))
        except SettingsError:
            continue
        accepted += 1
        as_given, as_written = parser.parseExpression(text), parser.parseExpression(written)
        assert as_given.equals(as_written), text
    assert accepted > 300


def test_a_condition_selects_rows(df: DataFrame) -> None:
    assert selected(df, None) is df
    assert [row["id"] for row in selected(df, "LANG = 'en' AND meta.n > 1").collect()] == [1]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("idd > 1", r"'idd' is not in the input; columns: id, a, b"),
        ("_metadata.file_path > 'a'", "'_metadata' is not in the input"),
        ("meta.nope = 1", r"Spark does not accept the predicate \(FIELD_NOT_FOUND"),
        ("id + 1", r"Spark does not accept the predicate \(DATATYPE_MISMATCH"),
        ("date_diff(DAY, day, day) = 1 AND lower(lang, lang) = 'x'", "does not accept"),
        ("ts > lang", "a text is taken for a timestamp"),
        ("hour(body) > 3", "a text is taken for a timestamp"),
    ],
)
def test_what_spark_does_not_accept(df: DataFrame, where: str, said: str) -> None:
    with pytest.raises(SettingsError, match=rf"^input\.where: .*{said}") as caught:
        selected(df, where)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("rand() < 0.5", "other rows the next time"),
        ("id IN (SELECT 1)", "a subquery given"),
        ("EXISTS (SELECT 1)", "a subquery given"),
        ("mine(lang) = 'x'", "a function of this session"),
        ("java_method('java.util.UUID', 'randomUUID') > lang", "a function of this session"),
        ("to_json(struct(*)) LIKE '%zanzibar%'", "reads other columns than it names"),
        ("ts > body", "a text is taken for a timestamp"),
        ("ts > concat('12', ':30')", "a text is taken for a timestamp"),
    ],
)
def test_the_plan_is_looked_at_too(spark, df: DataFrame, given: str, said: str) -> None:
    """What a session may make of names that were checked, built here without the check."""
    spark.udf.register("mine", lambda text: text)
    with pytest.raises(SettingsError, match=said):
        _check_plan(
            df.where(given), {"lang"} if "lang" in given else {"ts", "body"} if "body" in given else {"ts"}
        )
    spark.sql("DROP TEMPORARY FUNCTION IF EXISTS mine")


def test_a_server_is_asked_what_its_functions_are(spark, df: DataFrame) -> None:
    """It shows no plan."""
    _check_functions(df, parsed("lower(lang) = 'x' AND regexp_like(lang, 'e')"))
    spark.udf.register("mine", lambda text: text)
    with pytest.raises(SettingsError, match="a function of this session has the name of one of Spark's"):
        _check_functions(df, Condition("", ("",), frozenset({"mine"}), False))
    spark.sql("DROP TEMPORARY FUNCTION IF EXISTS mine")


def test_spark_s_own_functions_pass(df: DataFrame) -> None:
    _check_functions(df, Condition("", ("",), frozenset(sorted(FUNCTIONS)[::10]), False))


@pytest.mark.parametrize(
    ("where", "depends"),
    [
        ("ts > '2024-01-01'", True),
        ("day = '2024-01-01'", True),
        ("year(lang) = 1", True),
        ("id > 1 AND lang = 'en'", False),
    ],
)
def test_which_conditions_depend_on_the_time_zone(df: DataFrame, where: str, depends: bool) -> None:
    assert depends_on_zone(parsed(where), df.schema) is depends
