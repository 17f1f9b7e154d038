"""`input.where`: what may stand in it, what Spark gets of it, and which columns it reads. No session."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dptext_spark.config.condition import FUNCTIONS, NUMBERS, TEXTS, TIMES, parsed
from dptext_spark.errors import SettingsError

COLUMNS = ["a", "b", "id", "day", "ts", "body", "user", "a b", "current_date"]


def written(text: str) -> str:
    return parsed(text).sql(COLUMNS)


def refusal(text: str) -> str:
    with pytest.raises(SettingsError, match=r"^input\.where: ") as caught:
        written(text)
    assert caught.value.__cause__ is None
    return str(caught.value)


WRITTEN = {
    "a = 1": "(`a` = 1)",
    "NOT a = 1 AND b": "((NOT (`a` = 1)) AND `b`)",
    "a = 1 OR b = 2 OR id > 3": "((`a` = 1) OR (`b` = 2) OR (`id` > 3))",
    "a <=> b": "(`a` <=> `b`)",
    "a IS NOT DISTINCT FROM b": "(`a` <=> `b`)",
    "a IS DISTINCT FROM b": "(`a` IS DISTINCT FROM `b`)",
    "a - b - id": "((`a` - `b`) - `id`)",
    "a NOT LIKE '!%' ESCAPE '!'": "(`a` NOT LIKE '!%' ESCAPE '!')",
    "id NOT IN (1, 2L)": "(NOT (`id` IN (1, 2L)))",
    "body RLIKE r'\\d'": "(`body` RLIKE CAST(X'5c64' AS STRING))",
    "b.c.d['k'][0] = 1.5BD": "(`b`['c']['d']['k'][0] = 1.5BD)",
    "CASE WHEN a > 1 THEN 'x' ELSE 'y' END = b": "(CASE WHEN (`a` > 1) THEN 'x' ELSE 'y' END = `b`)",
    "TRY_CAST(a AS decimal(10, 2)) = -1": "(TRY_CAST(`a` AS DECIMAL(10, 2)) = (- 1))",
    "day >= DATE '2024-01-31' - INTERVAL 3 DAYS": "(`day` >= (CAST('2024-01-31' AS DATE) - INTERVAL '3' DAY))",
    'body = "it\'s"': "(`body` = CAST(X'69742773' AS STRING))",
    "body = 'it\\'s; fine'": "(`body` = CAST(X'697427733b2066696e65' AS STRING))",
    "body = ''": "(`body` = '')",
    "`A B` = LOWER(BODY)": "(`a b` = lower(`body`))",
    "`current_date` = '2024-01-01' AND user = 'x'": "((`current_date` = '2024-01-01') AND (`user` = 'x'))",
}


@pytest.mark.parametrize("text", WRITTEN)
def test_spark_gets_what_was_checked_written_out(text: str) -> None:
    assert written(text) == WRITTEN[text]
    assert parsed(text).text == text


# What reads columns that it does not name, other tables, or what differs from one evaluation to the next.
HOSTILE = {
    "to_json(struct(*)) LIKE '%zanzibar%'": "to_json(...)",
    "concat_ws(' ', *) LIKE '%zanzibar%'": "*",
    "t.* = 'zanzibar'": "*",
    "IDENTIFIER('bo'||'dy') LIKE '%zanzibar%'": "identifier(...)",
    "IDENTIFIER('rand')() < 0.5": "no condition that can be read",
    "`rand`() < 0.5": "rand(...)",
    "rand /* */ () < 0.5": "a comment",
    "a = '\\'' OR rand() < 0.5 OR b = '\\''": "rand(...)",
    "a = r'\\' OR rand() < 0.5 OR b = ''": "rand(...)",
    "a = 1 -- \r OR rand() < 0.5": "a comment",
    "a = 1 /* /* */ OR rand() < 0.5 */": "a comment",
    "java_method('java.util.UUID', 'randomUUID') > a": "java_method(...)",
    "reflect('java.util.UUID', 'randomUUID') > a": "reflect(...)",
    "body = 'it''s'": "a doubled quote",
    'body = "a""b"': "a doubled quote",
    "EXISTS (TABLE other)": "no condition that can be read",
    "EXISTS (SELECT 1)": "EXISTS",
    "id IN (SELECT id FROM other)": "IN with an addition",
    "id = (SELECT 1)": "a subquery",
    "VALUES (1)": "no condition that can be read",
    "a = 1; DROP TABLE t": "no condition that can be read",
    "SELECT 1": "no condition that can be read",
    "exists(a, x -> x = 1)": "exists(...)",
    "a = :zanzibar": "a parameter",
    "a = '${env:HOME}'": "${",
    "`${env:HOME}` = 1": "${",
    "current_date > day": "CURRENT DATE",
    "CURRENT_TIMESTAMP() > ts": "current_timestamp(...)",
    "now() > ts": "now(...)",
    "current_user() = a": "current_user(...)",
    "session_user = a": "SESSION USER",
    "uuid() > a": "uuid(...)",
    "monotonically_increasing_id() > 1": "monotonically_increasing_id(...)",
    "spark_partition_id() = 1": "spark_partition_id(...)",
    "input_file_name() = a": "input_file_name(...)",
    "version() = a": "version(...)",
    "my_function(a)": "my_function(...)",
    "other.lower(a) = 'x'": "namespace",
    "count(*) OVER () > 1": "OVER",
    "lower(DISTINCT a) = 'x'": "DISTINCT",
    "day < 'now'": "a time of today",
    "day < ' Today '": "a time of today",
    "ts < 'tomorrow+01:00'": "a time of today",
    "ts > '12:30'": "a time of today",
    "ts > 'T12:30:00'": "a time of today",
    "day < DATE 'yesterday'": "a time that is not written",
    "day < CAST('today' AS DATE)": "a time that is not written",
    "day < 'to' || 'day'": "made of constants",
    "day < concat('to', 'day')": "concat(...) of constants",
    "day < coalesce(NULL, lower('TO'))": "lower(...) of constants",
    "CAST(a AS TIMESTAMP) > ts": "CAST of something else than a literal",
    "to_timestamp(a) > ts": "to_timestamp without a format",
    "CAST(a AS STRUCT<x: INT>).x = 1": "CAST to another type",
    "a::int = 1": "::",
    "a ISNULL": "ISNULL",
    "a = 'x' 'y'": "texts side by side",
    "a = '\\u0041'": "an escape other than",
    "a = X'41'": "a binary literal",
    "a = 'x' COLLATE UTF8_LCASE": "COLLATE",
    "a LIKE ANY ('x', 'y')": "ANY",
    "(a, b) IN ((1, 2))": "a tuple",
    "a AS b": "no condition that can be read",
    "": "an empty text",
    " ": "an empty text",
    "a =": "no condition that can be read",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_what_may_not_stand_in_a_condition(text: str) -> None:
    said = refusal(text)
    assert HOSTILE[text] in said
    assert "valid: " in said
    assert "zanzibar" not in said
    assert "randomUUID" not in said


@pytest.mark.parametrize(
    "text",
    ["a = b < id", "a LIKE b = id", "a IN (1) = b", "a IS NULL IS NULL", "a = NOT b", "a | b = 1 + id || 'x' + 1",
     "a & b | id ^ day = 1"],
)  # fmt: skip
def test_operators_that_parsers_group_in_different_ways_need_parentheses(text: str) -> None:
    assert "add parentheses" in refusal(text)


def test_parentheses_say_which_way() -> None:
    assert written("(a = b) < id") == "((`a` = `b`) < `id`)"
    assert written("a = (b < id)") == "(`a` = (`b` < `id`))"


@pytest.mark.parametrize("name", ["_metadata.file_path", "bodyguard", "t.body", "session_variable", "x"])
def test_every_name_is_a_column_of_the_input(name: str) -> None:
    """Spark would look elsewhere: hidden columns, variables, names of tables."""
    assert f"{name.split('.')[0]!r} is not in the input; columns: a, b" in refusal(f"{name} = 1")


def test_which_columns_are_read() -> None:
    found = parsed("lower(Body) = 'x' AND b.c[a] > 1 AND body <> `a b`")
    assert found.references == (("Body",), ("b", "c"), ("a",), ("body",), ("a b",))
    assert found.roots(COLUMNS) == ("body", "b", "a", "a b")
    assert found.functions == {"lower"}
    with pytest.raises(SettingsError, match="'Ab' is not in the input"):
        parsed("Ab = 1").roots(["ab", "AB"])
    assert parsed("AB = 1").roots(["ab", "AB"]) == ("AB",)


@pytest.mark.parametrize(
    ("text", "columns", "reads"),
    [("Body LIKE '%x%'", ["body"], True), ("bodyguard = 1", ["body"], False), ("body = 'x'", ["note", "`body`"], True),
     ("meta.id = 1", ["meta.note"], True), ("`meta.note` = 'x'", ["meta.note"], True), ("note = 'x'", ["meta.note"], False),
     ("a = 'body'", ["body"], False), ("`a.b`.c = 'x'", ["`a.b`.d"], True)],
)  # fmt: skip
def test_whether_it_reads_a_column_by_its_name(text: str, columns: list[str], reads: bool) -> None:
    assert parsed(text).names(columns) is reads


def test_a_field_cannot_be_taken_for_a_column_of_a_table() -> None:
    assert parsed("a.body = 'x'").sql(["a", "body"]) == "(`a`['body'] = 'x')"


def test_times_are_told_from_other_conditions() -> None:
    def tells(text: str) -> bool:
        return parsed(text).tells_time

    assert tells("year(a) = 2024")
    assert tells("CAST(a AS DATE) > b")
    assert tells("date_format(a, 'yyyy') = b")
    assert not tells("a > 1 AND lower(b) = 'x'")


def test_every_function_can_be_called() -> None:
    for name in FUNCTIONS:
        assert f"{name}(`a`, `b`)" in written(f"{name.upper()}(a, b) = 1")
    assert not (NUMBERS & TIMES)
    assert not (NUMBERS & TEXTS)
    assert not (TIMES & TEXTS)


def test_many_conditions_and_deep_ones() -> None:
    many = " OR ".join(f"id = {number}" for number in range(2000))
    assert written(many).count("`id`") == 2000
    assert "nested too deeply" in refusal("(" * 150 + "a = 1" + ")" * 150)
    assert "nested too deeply" in refusal("(" * 5000 + "a = 1" + ")" * 5000)


def test_values_are_written_so_that_no_setting_reads_them_in_another_way() -> None:
    """Of quotes, backslashes and $ the session's settings decide; plain texts stay as they are."""
    for value in ("o'clock", "a\\b", "$x", "tab\t", "\\%"):
        given = value.replace("\\", "\\\\").replace("'", "\\'")
        assert written(f"body = '{given}'") == f"(`body` = CAST(X'{value.encode().hex()}' AS STRING))"
    assert written("body = 'é 😀 %_'") == "(`body` = 'é 😀 %_')"
    assert "half a character" in refusal("body = '\ud800'")


def test_the_parser_is_loaded_only_where_there_is_a_condition() -> None:
    """Workers and the command line pay nothing for it."""
    modules = "dptext_spark.config.model, dptext_spark.config.condition, dptext_spark.cli.app"
    code = f"import sys, {modules}; print('sqlglot' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
    )
