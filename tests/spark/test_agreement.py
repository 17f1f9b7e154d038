"""`start`, the dry run and the run agree on inputs that are odd: what one refuses, all refuse, and none ends unexpectedly."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dptext_spark.cli.preview_commands import sample_of
from dptext_spark.config.load import load_config, parse_config
from dptext_spark.config.locations import ELSEWHERE
from dptext_spark.config.model import RunConfig
from dptext_spark.config.styles import TableSettings, settings_file
from dptext_spark.errors import DataError, DPTextError
from dptext_spark.model.first_look import columns_of
from dptext_spark.model.table_files import AsText
from dptext_spark.randomness import RunKey
from dptext_spark.spark.runner import dry_run, run
from dptext_spark.spark.tables import Target, opened

KEY = RunKey.insecure(7)
BODY = "Please call about the money, friend, and bring zanzibar along to the office on monday"
PRIVATE = "zanzibar"
REFUSED = DataError.exit_code


class Case(NamedTuple):
    write: Callable[[Path], Path]  # makes it in a folder and returns its path
    format: str  # of it
    columns: tuple[str, ...]  # with text, as settings name them
    code: int = 0  # 0, or the exit code of the error
    said: str = ""  # a part of the message
    rows: int = 40  # that are written
    encoding: str | None = None  # of the file, where it is none in UTF-8


def json_lines(*records: dict[str, Any] | str | bytes) -> Callable[[Path], Path]:
    """Write 40 plain records around others, which are the last."""

    def write(folder: Path) -> Path:
        plain = [json.dumps({"id": n, "body": BODY}) for n in range(40)] if len(records) < 10 else []
        lines = [*plain, *(one if isinstance(one, str | bytes) else json.dumps(one) for one in records)]
        encoded = [line if isinstance(line, bytes) else line.encode() for line in lines]
        (folder / "in.jsonl").write_bytes(b"\n".join([*encoded, b""]))
        return folder / "in.jsonl"

    return write


def csv_lines(header: str, *rows: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "in.csv").write_text("\n".join([header, *rows]) + "\n")
        return folder / "in.csv"

    return write


def _encoded(folder: Path, encoding: str) -> Path:
    lines = [json.dumps({"id": n, "body": f"{BODY} ü"}, ensure_ascii=False) + "\n" for n in range(40)]
    (folder / "in.jsonl").write_bytes("".join(lines).encode(encoding))
    return folder / "in.jsonl"


def sparse(n: int) -> dict[str, Any]:
    return {"id": n, "kind": "open"} | ({"body": BODY} if n else {})


LONG = " ".join([BODY] * 5_000)
CASES = {
    "half an emoji": Case(json_lines('{"id": 99, "body": "the garden \\ud83d"}'), "json", ("body",), rows=41),
    "fields by case": Case(json_lines({"id": 99, "Body": BODY}), "json", ("body",), REFUSED, "case"),
    "nested fields by case": Case(
        json_lines({"id": 99, "m": {"a": BODY}}, {"id": 98, "m": {"A": BODY}}), "json", ("m.a",), REFUSED, "case"
    ),
    "Latin-1 that is named": Case(
        json_lines(*[f'{{"id": {n}, "body": "{BODY} ü"}}'.encode("latin-1") for n in range(40)]), "json", ("body",),
        encoding="ISO-8859-1",
    ),
    "UTF-16LE that is named": Case(
        lambda folder: _encoded(folder, "utf-16-le"), "json", ("body",), encoding="UTF-16LE"
    ),
    "half an emoji in the name of an inner field": Case(
        json_lines('{"id": 99, "m": [{"a\\ud83d": "x"}], "body": "the garden"}'), "json", ("body",), REFUSED
    ),
    "Latin-1 in the last record": Case(
        json_lines(f'{{"id": 99, "body": "{BODY} ü"}}'.encode("latin-1")), "json", ("body",), REFUSED, "UTF-8"
    ),
    "a field that the first record lacks": Case(json_lines(*map(sparse, range(40))), "json", ("body",), rows=39),
    "ids above 2^64": Case(
        json_lines(*({"id": 2**64 + n, "body": BODY} for n in range(40))), "json", ("body",)
    ),
    "ids that are numbers or texts": Case(json_lines({"id": "A-1", "body": BODY}), "json", ("body",), rows=41),
    "a text that is a list": Case(json_lines({"id": 99, "body": [{"text": BODY}]}), "json", ("body",), rows=41),
    "a text that is a number": Case(json_lines({"id": 99, "body": 12}), "json", ("body",), rows=41),
    "a long first record": Case(csv_lines("id,body", f'1,"{LONG}"', f'2,"{LONG}"'), "csv", ("body",), rows=2),
    "single quotes": Case(json_lines("{'id': 99, 'body': 'the garden'}"), "json", ("body",), REFUSED, "JSON record a line"),
    "columns like numbers": Case(
        csv_lines("id,08,1e3,no", *(f'{n},"{BODY}","{BODY}","{BODY}"' for n in range(40))), "csv", ("08", "1e3", "no")
    ),
    "names that are empty": Case(csv_lines("id,body,,", *(f'{n},"{BODY}",,' for n in range(40))), "csv", ("body",)),
    "names that repeat": Case(
        csv_lines("id,body,Body", *(f'{n},"{BODY}","{BODY}"' for n in range(40))), "csv", ("body1", "Body2")
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


def ended(what: Callable[[], Any]) -> tuple[int | str, str]:
    try:
        what()
    except DPTextError as error:
        return error.exit_code, str(error)
    except Exception as error:
        return f"unexpected {type(error).__name__}", str(error)[:2000]
    return 0, ""


def started(place: Path, file: Path, case: Case) -> None:
    as_text = AsText(None, True if case.format == "csv" else None, case.encoding)
    sample = sample_of(str(place), case.format, as_text, lambda *_: None)
    of = columns_of(sample, case.columns)
    named = TableSettings(sample.path, sample.format, of.texts, "id", options=sample.options)
    file.write_text(settings_file(named, "balanced")[0], encoding="utf-8")


def settings_of(place: Path, case: Case, out: Path) -> RunConfig:
    return parse_config(
        {
            "input": {"path": str(place), "format": case.format, "options": {"encoding": case.encoding} if case.encoding else {}},
            "columns": list(case.columns), "row_key": "id",
            "output": {"path": str(out)},
        }
    )  # fmt: skip


def agree(spark, folder: Path, case: Case) -> dict[str, tuple[int | str, str]]:
    (folder / "in").mkdir()
    place, file = case.write(folder / "in"), folder / "s.yaml"
    found = {"start": ended(lambda: started(place, file, case))}
    config = settings_of(place, case, folder / "out")
    if file.exists():
        by_start = load_config(file, [f"output.path={folder / 'out'}"])
        assert (by_start.columns, by_start.row_key) == (config.columns, config.row_key)
        config = by_start
    found["dry run"] = ended(lambda: dry_run(config, lambda _: None))
    found["run"] = ended(lambda: run(config, spark, key=KEY))
    return found


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_all_end_alike(spark, tmp_path: Path, name: str) -> None:
    case = CASES[name]
    found = agree(spark, tmp_path, case)
    assert {way: code for way, (code, _) in found.items()} == dict.fromkeys(found, case.code), found
    for _, text in found.values():
        assert case.said in text
        assert PRIVATE not in text
    if case.code == 0:
        written = opened(spark, Target(path=str(tmp_path / "out")))
        assert written.where("body IS NOT NULL" if case.columns == ("body",) else "true").count() == case.rows


@pytest.mark.long
def test_a_shallow_clone(spark, tmp_path: Path) -> None:
    spark.range(40).selectExpr("id", f"'{BODY}' AS body").write.format("delta").save(str(tmp_path / "whole"))

    def clone(folder: Path) -> Path:
        spark.sql(f"CREATE TABLE delta.`{folder}/clone` SHALLOW CLONE delta.`{tmp_path}/whole`")
        return folder / "clone"

    found = agree(spark, tmp_path, Case(clone, "delta", ("body",)))
    assert {way: code for way, (code, _) in found.items()} == dict.fromkeys(found, 0), found
