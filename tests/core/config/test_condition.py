"""`input.where`: its form, the types of its values, its one spelling, and which columns it reads. No session."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.condition import OPERATORS, column_place, reads_hidden, typed_condition
from dptext_spark.config.file import dumped, read_settings
from dptext_spark.config.load import load_config, parse_config
from dptext_spark.errors import SettingsError
from dptext_spark.model.table_schema import Field, ListOf, Plain, Struct

KINDS = {
    "flag": "boolean", "tiny": "tinyint", "number": "int", "id": "bigint", "share": "float", "score": "double",
    "price": "decimal(5,2)", "day": "date", "at": "timestamp", "local": "timestamp_ntz", "country": "string",
    "name": "string collate UTF8_LCASE", "data": "binary", "a.b": "int",
}  # fmt: skip
META = Struct((Field("n", Plain("int")), Field("the.note", Plain("string"))))
OTHERS = (Field("meta", META), Field("tags", ListOf(Plain("string"))), Field("ID", Plain("int")))
SCHEMA = Struct((*(Field(name, Plain(kind)) for name, kind in KINDS.items()), *OTHERS))


def parsed(where: Any) -> dict[str, Any] | None:
    settings = {"input": {"path": "/in", "where": where}, "columns": ["body"], "output": {"path": "/out"}}
    return parse_config({**settings, "row_key": "id"}).input.where


def typed(where: Any) -> dict[str, Any] | None:
    return typed_condition(parsed(where), SCHEMA)


# What is given, the field that the error names, and what it says is there and is valid.
REFUSED: list[tuple[Any, str, tuple[str, ...]]] = [
    ("country = 'DE'", "input.where", ("{country: [DE, AT]", "a view", "dps.privatize(df.where(...))")),
    (5, "input.where", ("5 is not valid", "a mapping such as")),
    ({}, "input.where", ("{} is not valid", "a mapping such as")),
    ({"country": []}, "input.where.country", ("[] is not valid", "a list of values")),
    ({"country": {}}, "input.where.country", ("{} is not valid", *OPERATORS)),
    ({"country": {"eq": "DE"}}, "input.where.country", ("'eq' is not valid", *OPERATORS)),
    ({"id": {"gte": 5}}, "input.where.id", ("'gte' is not valid", *OPERATORS)),
    ({"country": None}, "input.where.country", ("None is not valid", "{null: true}")),
    ({"country": ["DE", None]}, "input.where.country", ("None is not valid", "{null: true}")),
    ({"country": [["DE"]]}, "input.where.country", ("['DE'] is not valid",)),
    ({"country": {"ne": ["DE"]}}, "input.where.country.ne", ("['DE'] is not valid",)),
    ({"country": {"null": "yes"}}, "input.where.country.null", ("'yes' is not valid", "true or false")),
    ({"country": {"null": None}}, "input.where.country.null", ("None is not valid", "true or false")),
    ({"countr": "DE"}, "input.where.countr", ("'countr' is not in the input", "country", "Did you mean 'country'?")),
    ({"_metadata.file_path": "a"}, "input.where._metadata.file_path", ("'_metadata' is not in the input",)),
    ({"Id": 1}, "input.where.Id", ("'Id' is not in the input",)),  # id or ID
    ({"meta.x": 1}, "input.where.meta.x", ("'x' is not in the input", "Choose n or the.note")),
    ({"id.x": 1}, "input.where.id.x", ("'id' has no fields",)),
    ({"day": "2026-01-01", "DAY": "2026-01-01"}, "input.where.DAY", ("named twice",)),
    ({"tags": "x"}, "input.where.tags", ("'x' is not valid", "array<string>", "{null: true} or {null: false}")),
    ({"data": "x"}, "input.where.data", ("binary", "{null: true} or {null: false}")),
    ({"meta": {"ne": 1}}, "input.where.meta.ne", ("struct<", "{null: true} or {null: false}")),
    *(({"flag": value}, "input.where.flag", ("boolean", "true or false")) for value in ("true", 1, 0.0)),
    *(({"tiny": value}, "input.where.tiny", ("tinyint", "an integer from -128 to 127"))
      for value in (True, "1", 1.0, 128, -129)),
    *(({"id": value}, "input.where.id", ("bigint", "an integer from -9223372036854775808 to 9223372036854775807"))
      for value in (2**63, -(2**63) - 1)),
    *(({"score": value}, "input.where.score", ("double", "a finite number"))
      for value in (True, "0.5", float("nan"), float("inf"))),
    *(({"price": value}, "input.where.price", ("decimal(5,2)", "3 digits before the decimal point and 2 after"))
      for value in (True, "x", 1.005, 1000, "NaN", "Infinity")),
    *(({"day": {"lt": value}}, "input.where.day.lt", ("date", "a day such as 2026-01-31"))
      for value in (20260131, "today", "2026-02-30", "2026-1-31", "2026-01-31 00:00")),
    *(({"at": value}, "input.where.at", ("timestamp", "in UTC, or with an offset"))
      for value in (1.0, "now", "12:30", "2026-01-31 25:00", "0001-01-01 00:00+05:00", "2026-01-31 12:30 CET")),
    *(({"local": value}, "input.where.local", ("timestamp_ntz", "without a time zone"))
      for value in ("2026-01-31Z", "2026-01-31 12:30+01:00")),
    *(({"country": value}, "input.where.country", ("string", "quotes")) for value in (7, True, 1.5, "\ud800")),
    ({"country": ["DE", 7]}, "input.where.country", ("7 is not valid",)),
    ({"name": 7}, "input.where.name", ("7 is not valid", "quotes")),
]  # fmt: skip


@pytest.mark.parametrize(("where", "field", "facts"), REFUSED, ids=[repr(case[0]) for case in REFUSED])
def test_what_is_wrong_is_one_error(where: Any, field: str, facts: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError) as refused:
        typed(where)
    message = str(refused.value)
    assert message.startswith(f"{field}: ")
    assert [fact for fact in facts if fact not in message] == []
    assert refused.value.__cause__ is None


def test_a_file_of_settings_says_the_same(tmp_path: Path) -> None:
    """YAML would take the name `null` for no text."""
    where = "{country: [DE, NO], day: {ge: 2026-01-01}, id: 7, country_: {null: false}, flag: no}"
    file = tmp_path / "settings.yaml"
    rest = "columns: [body]\noutput: {path: /out}\nrow_key: id\n"
    file.write_text(f"input: {{path: /in, where: {where}}}\n{rest}")
    expected = {"country": ["DE", "NO"], "day": {"ge": "2026-01-01"}, "id": 7}
    expected |= {"country_": {"null": False}, "flag": "no"}
    config = load_config(file)
    assert config.input.where == expected
    with pytest.raises(SettingsError, match=r"^input\.where\.id: None is not valid"):
        load_config(file, ["input.where.id=null"])
    overrides = ["day.lt=2026-02-01", "country=[AT]", "note.null=true"]
    more = load_config(file, [f"input.where.{item}" for item in overrides])
    changed = {"country": ["AT"], "day": {"ge": "2026-01-01", "lt": "2026-02-01"}, "note": {"null": True}}
    assert more.input.where == {**expected, **changed}
    file.write_text(dumped({"input": {"path": "/in", "where": expected}}, 80))
    assert read_settings(file)["input"]["where"] == expected
    assert parsed({"id": {None: True}}) == {"id": {"null": True}}


def test_the_text_of_a_condition_is_not_repeated() -> None:
    with pytest.raises(SettingsError) as refused:
        parsed("name = 'zanzibar'")
    assert "zanzibar" not in str(refused.value)


# Conditions in one line are equal, and come to the last of them.
EQUAL: list[list[Any]] = [
    [{"country": ["DE"]}, {"COUNTRY": "DE"}, {"country": ["DE", "DE"]}, {"country": "DE"}],
    [{"country": ("DE", "AT", "DE")}, {"country": ["AT", "DE"]}],
    [{"id": {"lt": 9, "ge": 1}, "flag": True}, {"flag": True, "id": {"ge": 1, "lt": 9}}],
    [{"share": 1}, {"share": 1.0}], [{"score": -0.0}, {"score": 0}],
    [{"price": 1.5}, {"price": "1.50"}, {"price": Decimal("1.500")}, {"price": "1.50"}],
    [{"price": -0.0}, {"price": "0.00"}], [{"price": 999}, {"price": "999.00"}],
    [{"day": date(2026, 1, 31)}, {"day": "2026-01-31"}],
    [{"at": "2026-01-31"}, {"at": "2026-01-31T00:00Z"}, {"at": "2026-01-31 01:00:00.0+01:00"}, {"at": "2026-01-31 00:00 UTC"},
     {"at": date(2026, 1, 31)}, {"at": datetime(2026, 1, 31, tzinfo=timezone.utc)}, {"at": "2026-01-31T00:00:00+00:00"}],
    [{"at": "2026-01-31 12:30:15.25"}, {"at": "2026-01-31T12:30:15.250000+00:00"}],
    [{"local": "2026-01-31 12:30"}, {"local": datetime(2026, 1, 31, 12, 30)}, {"local": "2026-01-31T12:30:00"}],
    [{"META.N": 1}, {"`meta`.`n`": 1}, {"meta.n": 1}],
    [{"meta.`the.note`": "x"}], [{"a.b": 1}, {"`a.b`": 1}],
    [{"tags": {"null": True}, "meta": {"null": False}}, {"meta": {"null": False}, "tags": {"null": True}}],
    [{"country": {"null": False, "ne": "DE"}}, {"country": {"ne": "DE", "null": False}}],
    [{"country": "today"}], [{"country": "$x'\\ 😀"}], [{"country": "007"}], [{"name": ["A", "a"]}], [None],
]  # fmt: skip


@pytest.mark.parametrize("conditions", EQUAL, ids=[repr(conditions[-1]) for conditions in EQUAL])
def test_equal_conditions_have_one_spelling(conditions: list[Any]) -> None:
    assert [typed(where) for where in conditions] == [conditions[-1]] * len(conditions)
    spelling = [repr(typed(where)) for where in conditions]
    assert len(set(spelling)) == 1
    assert typed_condition(typed(conditions[0]), SCHEMA) == conditions[-1]


def test_a_column_of_the_exact_name_comes_first() -> None:
    assert column_place("ID", SCHEMA) == (("ID",), "int")
    assert column_place("id", SCHEMA) == (("id",), "bigint")
    assert column_place("a.b", SCHEMA) == (("a.b",), "int")
    assert column_place("meta.`the.note`", SCHEMA) == (("meta", "the.note"), "string")


@pytest.mark.parametrize(
    ("names", "texts", "others", "hidden"),
    [
        ([], ["body"], [], False),
        (["id", "lang"], ["body"], None, False),
        (["id", "Body"], ["body"], None, True),
        (["meta.n"], ["meta.note"], None, True),
        (["meta"], ["comments[].text", "meta.note"], None, True),
        (["bodyguard"], ["body"], None, False),
        (["`a.b`"], ["a.b"], None, True),
        (["a.b"], ["`a.b`"], None, True),
        (["id"], ["body"], ["ID"], False),
        (["id", "salary"], ["body"], ["id"], True),
        (["salary.net"], ["body"], ["Salary"], False),
        (["salary.net"], ["body"], ["salary.gross"], True),
        (["`a.b`"], ["body"], ["a.b"], False),
    ],
)
def test_which_conditions_are_shown(
    names: list[str], texts: list[str], others: list[str] | None, hidden: bool
) -> None:
    assert reads_hidden(dict.fromkeys(names, 1), texts, others) is hidden
