"""CSV and TSV files by RFC 4180: what is read of them, and which of them are refused before a run begins."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types as T

from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.spark import csv_files
from dptext_spark.spark.csv_files import layout_of
from dptext_spark.spark.tables import check_same_columns, checked_records, read_input

SECRET = "zanzibar"
HEAD = "id,agent,body\n"


def write(folder: Path, files: Mapping[str, str | bytes], encoding: str = "utf-8") -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return folder


def source(path: Path, format: str = "csv", **options: str | bool) -> Input:
    return Input(path=str(path), format=format, options=options)


def rows(spark, given: Input, columns: tuple[str, ...] = ("body",)) -> list[tuple]:
    return sorted(map(tuple, read_input(spark, given, list(columns))[0].collect()), key=str)


def checked(spark, given: Input, columns: tuple[str, ...] = ("body",)) -> int | None:
    return checked_records(spark, given, read_input(spark, given, list(columns))[0])


def same_columns(spark, given: Input, columns: tuple[str, ...] = ("body",)) -> None:
    check_same_columns(spark, given)


def compared_here(spark, given: Input) -> bool:
    return csv_files._compared_here(spark, layout_of(spark, given, str(given.path)), given)


def refused(spark, given: Input, columns: tuple[str, ...] = ("body",), check=checked) -> str:
    with pytest.raises(DataError) as caught:
        check(spark, given, columns)
    said = str(caught.value)
    assert SECRET not in said
    assert caught.value.__cause__ is None
    return said


EXCEL = 'sep=;\nid;agent;body\n1;"a;b";"the\nday"\n'
SEVERAL = "id,body,,body,\n1,the day,,x,\n"  # names that are empty, or repeat
BROKEN = '"id\nof it","5"" agent",body\n1,a,the day\n'  # names that hold a line break
DAY = HEAD + "1,a,the day\n"
BARE = {"header": False}
# What is read: the files, the options, the rows.
READ: dict[str, tuple[dict[str, str], dict[str, Any], list[tuple[Any, ...]]]] = {
    "line breaks and doubled quotes": (
        {"a.csv": HEAD + '1,a,"the day"\n', "b.csv": HEAD + '2,a,"one\r\ntwo, ""three""\nfour"\n3,"b ""c"", d","5\\"\n'},
        {},
        [("1", "a", "the day"), ("2", "a", 'one\r\ntwo, "three"\nfour'), ("3", 'b "c", d', "5\\")],
    ),
    "an escape": ({"a.csv": HEAD + '1,a,"5\\" of it"\n'}, {"Escape": "\\"}, [("1", "a", '5" of it')]),
    "a quote": ({"a.csv": "id;agent;body\n1;'a;b';'it''s'\n"}, {"quote": "'", "sep": ";"}, [("1", "a;b", "it's")]),
    "no quote": ({"a.csv": HEAD + '1,a,5" of it\n'}, {"quote": ""}, [("1", "a", '5" of it')]),
    "bare": ({"a.csv": "1,a,the day\n", "b.csv": "3,b,a night\n"}, BARE, [("1", "a", "the day"), ("3", "b", "a night")]),
    "bare, with the line of Excel": ({"a.csv": "sep=;\n1;the day\n2;a night\n"}, BARE, [("1", "the day"), ("2", "a night")]),
    "odd names": ({"a.csv": SEVERAL, "b.csv": SEVERAL}, {}, [("1", "the day", None, "x", None)] * 2),
    **{
        f"Excel, {name}": ({"a.csv": content, "b.csv": content.replace("\n1", "\n2")}, options, [
            ("1", "a;b", "the\nday"), ("2", "a;b", "the\nday"),
        ])
        for name, content, options in (
            ("semicolon", EXCEL.replace("\n", "\r\n"), {}),
            ("named", EXCEL, {"sep": ";"}),
            ("comma", 'sep=,\nid,agent,body\n1,"a;b","the\nday"\n', {}),
            ("tab", 'sep=\t\nid\tagent\tbody\n1\ta;b\t"the\nday"\n', {}),
            ("mark", '\ufeffsep=;\n"id";"agent";"body"\n1;"a;b";"the\nday"\n', {}),
        )
    },
}  # fmt: skip
# What is refused: the files, the options, what the error names, how many records are left out where the settings accept that.
REFUSED: dict[str, tuple[dict[str, str], dict[str, Any], str, int | None]] = {
    "Excel, one file of two": (
        {"a.csv": "sep=;\nid;agent;body\n1;a;zanzibar\n", "b.csv": "id;agent;body\n1;a;zanzibar\n"}, {"sep": ";"},
        "1 file (b.csv)", None,
    ),
    "odd names": ({"a.csv": SEVERAL, "b.csv": "id,body,,text,\n1,zanzibar,,x,\n"}, {}, "1 file (b.csv)", None),
    "line breaks in names": (
        {"a.csv": BROKEN, "b.csv": '"id\nof it","body","5"" agent"\n2,zanzibar,a\n'}, {}, "1 file (b.csv)", None,
    ),
    "a partition": (
        {"k=1/a.csv": DAY, "k=2/b [c].csv": "id,body,agent\n2,zanzibar,b\n"}, {}, "1 file (k=2/b [c].csv)", None,
    ),
    "many files": (
        {f"{n}.csv": DAY for n in range(40)} | {f"x{n}.csv": "id,body,agent\n1,zanzibar,b\n" for n in range(8)}, {},
        "8 files (x0.csv, x1.csv, x2.csv, x3.csv, x4.csv and 3 more)", None,
    ),
    "no text in the first file": (
        {"a [1].csv": "id,text\n1,zanzibar\n", "b.csv": "id,body\n2,x\n"}, {}, "the first line of 'a [1].csv'", None,
    ),
    **{
        f"bare, {mode or 'as it is'}": (
            {"a.csv": "1,a,the day\n2,b,the night\n", "b.csv": "3,zanzibar\n"}, BARE | ({"mode": mode} if mode else {}),
            "the first line of 1 file (b.csv) does not have 3 fields", None,
        )
        for mode in ("", "PERMISSIVE")
    },
    **{
        f"numbers of fields, {several}": (
            {"a.csv": DAY + "2,zanzibar\n3,a,the,zanzibar\n", "b.csv": HEAD + "4,a,the day\n", "c.csv": HEAD + "zanzibar\n"},
            {"multiLine": several}, "3 records of 2 files (a.csv, c.csv) have another number of fields", 3,
        )
        for several in (True, False)
    },
    **{
        f"an open quote, {name}": (
            {"a.csv": HEAD + '0,a,"the ""day"""\n', "b.csv": HEAD + content}, {}, "1 record of 1 file (b.csv)", 1,
        )
        for name, content in (
            ("last", '1,a,"the day\n2,b,zanzibar\n'), ("middle", '1,"a,the day\n2,b,zanzibar\n'), ("inside", '1,a,5" zanzibar\n'),
        )
    },
    "JSON": (
        {"a.json": '{"body": "the day"}\n{"body": zanzibar\n', "b.json": '{"body": "x"}\n'}, {},
        "1 record of 1 file (a.json) are no JSON", 1,
    ),
}  # fmt: skip


QUICK = ("line breaks and doubled quotes", "a partition", "JSON")


def marked(cases: Iterable[str]) -> list[Any]:
    return [pytest.param(name, marks=[] if name in QUICK else [pytest.mark.long]) for name in cases]


def text_of(options: dict[str, Any], name: str) -> tuple[str]:
    return ("_c1" if "header" in options else "id" if name == "odd names" else "body",)


@pytest.mark.parametrize("name", marked(READ))
def test_is_read(spark, tmp_path: Path, name: str) -> None:
    files, options, expected = READ[name]
    given, text = source(write(tmp_path / "in", files), **options), text_of(options, name)
    assert rows(spark, given, text) == expected
    assert checked(spark, given, text) == 0
    if name == "odd names":
        assert read_input(spark, given, ["body1"])[0].columns == ["id", "body1", "_c2", "body3", "_c4"]


@pytest.mark.parametrize("name", marked(REFUSED))
def test_is_refused(spark, tmp_path: Path, name: str) -> None:
    files, options, said, left_out = REFUSED[name]
    form = "json" if name == "JSON" else "csv"
    place, text = write(tmp_path / "in", files), text_of(options, name)
    assert said in refused(spark, source(place, form, **options), text)
    if left_out is not None:
        assert checked(spark, source(place, form, **options, Mode="permissive"), text) == left_out


class TestReading:
    @pytest.mark.long
    @pytest.mark.parametrize("form", ["csv", "parquet", "json", "text"])
    def test_values_of_folders_are_texts(self, spark, tmp_path: Path, form: str) -> None:
        values = [("007", "0.50", "a day"), ("012", "1e3", "a night")]
        frame = spark.createDataFrame(values, "b string, p string, body string")
        writer = frame.coalesce(1).write.partitionBy("b", "p").format(form).option("header", True)
        writer.save(str(tmp_path / "in"))
        given, text = source(tmp_path / "in", form), "value" if form == "text" else "body"
        df, _ = read_input(spark, given, [text])
        assert {field.dataType for field in df.schema} == {T.StringType()}
        assert sorted((r["b"], r["p"], r[text]) for r in df.collect()) == values
        assert checked(spark, given, (text,)) == (0 if form in ("csv", "json") else None)
        assert spark.conf.get("spark.sql.sources.partitionColumnTypeInference.enabled") == "true"

    def test_a_column_is_not_in_the_files_and_in_their_folders(self, spark, tmp_path: Path) -> None:
        given = source(write(tmp_path / "in", {"agent=1/a.csv": HEAD + "1,a,the day\n"}))
        with pytest.raises(DataError, match=r"'agent' is both in the files and in the names"):
            read_input(spark, given, ["body"])

    def test_the_line_of_excel_against_another_separator(self, spark, tmp_path: Path) -> None:
        given = source(write(tmp_path / "in", {"a.csv": EXCEL}), sep=",")
        with pytest.raises(SettingsError, match=r"^input\.options\.sep: ',' .*Use ';'"):
            read_input(spark, given, ["body"])


class TestHeaders:
    @pytest.mark.long
    @pytest.mark.parametrize(
        "second",
        [
            "id,body,agent\n2,the zanzibar,b\n",
            "id,message,name\n2,the zanzibar,b\n",
            "id,agent\n2,zanzibar\n",
            "id,agent,body,more\n2,b,zanzibar,c\n",
            "2,zanzibar,the day\n",
            "id;agent;body\n2;zanzibar;the day\n",
        ],
        ids=["order", "names", "fewer", "more", "none", "separator"],
    )
    @pytest.mark.parametrize(
        ("options", "place"),
        [({"multiLine": True}, "here"), ({"multiLine": False, "mode": "PERMISSIVE"}, "elsewhere")],
    )
    def test_files_with_other_columns_are_refused(self, spark, tmp_path, monkeypatch, second, options, place):
        if place == "elsewhere":
            monkeypatch.setattr(csv_files, "_compared_here", lambda *_: False)
        else:  # no row is read
            monkeypatch.delattr(csv_files, "_rows")
        given = source(write(tmp_path / "in", {"a.csv": DAY, "b.csv": second, "c.csv": DAY}), **options)
        for check in (checked, same_columns):
            said = refused(spark, given, check=check)
            assert "the first line of 1 file (b.csv) does not name the columns" in said

    @pytest.mark.long
    def test_what_is_no_other_header(self, spark, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "a.csv": HEAD + "1,a,the day\n",
            "b.csv": '"Id","AGENT","body"\r\n2,a,the day\r\n',
            "c.csv": b"\xef\xbb\xbf" + HEAD.encode() + b"3,a,the day\n",
            "d.csv": HEAD,
            "e.csv": "",
            "f.csv": "\n\n" + HEAD + "\n4,a,the day\n\n",
            "g.csv.gz": gzip.compress((HEAD + "5,a,the day\n").encode()),
            "_h.csv": "body,id,agent\nzanzibar,6,b\n",
            ".i.csv": "body,id,agent\nzanzibar,7,b\n",
        }
        for several in (True, False):
            given = source(write(tmp_path / "in", files), multiLine=several)
            assert checked(spark, given) == 0
            assert compared_here(spark, given)
            assert [row[0] for row in rows(spark, given)] == ["1", "2", "3", "4", "5"]

    @pytest.mark.long
    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "iso8859-1"])
    def test_other_encodings(self, spark, tmp_path: Path, encoding: str) -> None:
        name = {"utf-16": "UTF-16", "utf-16-le": "UTF-16LE", "iso8859-1": "ISO-8859-1"}[encoding]
        sign = "\xbf" if encoding == "iso8859-1" else "\u2212\u2122"  # their bytes hold that of a quote
        files: dict[str, str | bytes] = {
            "a.csv": f'id,größe,body\n1,a,"the {sign}\nday"\n',
            "b.csv": f"id,größe,body\n2,a,{sign}\n",
        }
        given = source(write(tmp_path / "in", files, encoding), encoding=name)
        assert [row[0] for row in rows(spark, given)] == ["1", "2"]
        assert checked(spark, given) == 0
        write(tmp_path / "in", {"b.csv": "id,body,größe\n2,a,zanzibar\n"}, encoding)
        assert "1 file (b.csv)" in refused(spark, given, ("id",))

    @pytest.mark.parametrize("options", [{}, {"header": False}, {"escape": "\\"}, {"multiLine": False}])
    def test_first_records_that_are_odd(self, spark, tmp_path: Path, options: dict[str, str | bool]) -> None:
        first = '"id, of it","the ""agent""",body\n' if not options else "id,5 x,body\n"
        files = {"a.csv": f"{first}1,a,the day\n", "b.csv": first.replace("\n", "\r") + "2,a,x"}
        files["c.csv"] = first + "3,a," + "the day " * 20_000
        given = source(write(tmp_path / "in", files), **options)
        assert compared_here(spark, given)
        assert checked(spark, given, ("_c2",) if "header" in options else ("body",)) == 0

    def test_names_that_hold_a_line_break(self, spark, tmp_path: Path) -> None:
        files = {"a.csv": BROKEN, "b.csv": BROKEN.replace("agent", "AGENT")}
        given = source(write(tmp_path / "in", files))
        assert compared_here(spark, given)
        assert checked(spark, given) == 0

    def test_what_spark_has_to_compare(self, spark, tmp_path: Path) -> None:
        write(tmp_path / "in", {"a.csv": "id,body\n1,the day\n", "b.csv": "# x\nid,body\n2,the day\n"})
        given = source(tmp_path / "in", comment="#")
        assert not compared_here(spark, given)
        assert checked(spark, given) == 0
        write(tmp_path / "long", {"a.csv": "id," + "x" * 70_000 + "\n1,the day\n"})
        assert not compared_here(spark, source(tmp_path / "long"))
        assert not compared_here(spark, source(tmp_path / "in", encoding="UTF-16"))

    def test_a_thousand_files_are_compared_in_two_seconds(self, spark, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.delattr(csv_files, "_rows")  # no row is read
        files = {f"{n:03}.csv": HEAD + '1,a,"the ""day"""\n' for n in range(1_000)}
        given = source(write(tmp_path / "in", files))
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            same_columns(spark, given)
            seconds.append(time.perf_counter() - begin)
        assert min(seconds) < 2.0
        write(tmp_path / "in", {"999.csv": "id,body,agent\n1,zanzibar,b\n"})
        assert "1 file (999.csv)" in refused(spark, given, check=same_columns)

    def test_torn_lines_read_one_by_one(self, spark, tmp_path: Path) -> None:
        content = HEAD + '1,a,"the day\nof zanzibar, b, c\n5, and more"\n2,b,"the ""night"""\n'
        given = source(write(tmp_path / "in", {"a.csv": content}), multiLine=False)
        assert re.search(r"[23] records of 1 file \(a\.csv\)", refused(spark, given))
        assert checked(spark, source(tmp_path / "in")) == 0
