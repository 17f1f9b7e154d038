"""CSV and TSV files by RFC 4180: what is read of them, and which of them are refused before a run begins."""

from __future__ import annotations

import gzip
import re
import time
from pathlib import Path

import pytest
from pyspark.sql import types as T

from dptext_spark.config.sections import Input
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.spark.tables import records
from dptext_spark.spark.tables.csv_files import layout_of
from dptext_spark.spark.tables.tables import check_same_columns, checked_records, read_input

SECRET = "zanzibar"
HEAD = "id,agent,body\n"


def write(folder: Path, files: dict[str, str | bytes], encoding: str = "utf-8") -> Path:
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
    return records._compared_here(spark, layout_of(spark, given, str(given.path)), given)


def refused(spark, given: Input, columns: tuple[str, ...] = ("body",), check=checked) -> str:
    with pytest.raises(DataError) as caught:
        check(spark, given, columns)
    said = str(caught.value)
    assert SECRET not in said
    assert caught.value.__cause__ is None
    return said


class TestReading:
    def test_a_quoted_field_may_hold_line_breaks_and_doubled_quotes(self, spark, tmp_path: Path) -> None:
        plain = HEAD + '1,a,"the day"\n'
        odd = HEAD + '2,a,"one\r\ntwo, ""three""\nfour"\n3,"b ""c"", d","5\\"\n'
        given = source(write(tmp_path / "in", {"a.csv": plain, "b.csv": odd}))
        assert rows(spark, given) == [
            ("1", "a", "the day"),
            ("2", "a", 'one\r\ntwo, "three"\nfour'),
            ("3", 'b "c", d', "5\\"),
        ]
        assert checked(spark, given) == 0

    def test_settings_may_say_otherwise(self, spark, tmp_path: Path) -> None:
        write(tmp_path, {"a.csv": HEAD + '1,a,"5\\" of it"\n'})
        assert rows(spark, source(tmp_path / "a.csv", Escape="\\")) == [("1", "a", '5" of it')]
        assert checked(spark, source(tmp_path / "a.csv", Escape="\\")) == 0
        write(tmp_path, {"b.csv": "id;agent;body\n1;'a;b';'it''s'\n"})
        quoted = source(tmp_path / "b.csv", quote="'", sep=";")
        assert rows(spark, quoted) == [("1", "a;b", "it's")]
        assert checked(spark, quoted) == 0
        write(tmp_path, {"c.csv": HEAD + '1,a,5" of it\n'})
        assert checked(spark, source(tmp_path / "c.csv", quote="")) == 0

    @pytest.mark.parametrize("form", ["csv", "parquet", "json", "text"])
    def test_values_of_folders_are_texts(self, spark, tmp_path: Path, form: str) -> None:
        frame = spark.createDataFrame(
            [("007", "0.50", "a day"), ("012", "1e3", "a night")], "b string, p string, body string"
        )
        writer = frame.coalesce(1).write.partitionBy("b", "p").format(form).option("header", True)
        writer.save(str(tmp_path / "in"))
        given, text = source(tmp_path / "in", form), "value" if form == "text" else "body"
        df, _ = read_input(spark, given, [text])
        assert {field.dataType for field in df.schema} == {T.StringType()}
        assert sorted((r["b"], r["p"], r[text]) for r in df.collect()) == [
            ("007", "0.50", "a day"),
            ("012", "1e3", "a night"),
        ]
        assert checked(spark, given, (text,)) in (0, None)
        assert spark.conf.get("spark.sql.sources.partitionColumnTypeInference.enabled") == "true"

    def test_a_column_is_not_in_the_files_and_in_their_folders(self, spark, tmp_path: Path) -> None:
        given = source(write(tmp_path / "in", {"agent=1/a.csv": HEAD + "1,a,the day\n"}))
        with pytest.raises(DataError, match=r"'agent' is in the files and in the names of their folders"):
            read_input(spark, given, ["body"])

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("content", "options"),
        [
            ('sep=;\r\nid;agent;body\r\n1;"a;b";"the\r\nday"\r\n', {}),
            ('sep=;\nid;agent;body\n1;"a;b";"the\nday"\n', {"sep": ";"}),
            ('sep=,\nid,agent,body\n1,"a;b","the\nday"\n', {}),
            ('sep=\t\nid\tagent\tbody\n1\ta;b\t"the\nday"\n', {}),
            ('\ufeffsep=;\n"id";"agent";"body"\n1;"a;b";"the\nday"\n', {}),
        ],
        ids=["semicolon", "named", "comma", "tab", "mark"],
    )
    def test_the_line_of_excel_names_the_separator(
        self, spark, tmp_path: Path, content: str, options: dict[str, str]
    ) -> None:
        given = source(
            write(tmp_path / "in", {"a.csv": content, "b.csv": content.replace("\n1", "\n2")}), **options
        )
        df, _ = read_input(spark, given, ["body"])
        assert df.columns == ["id", "agent", "body"]
        assert sorted(map(tuple, df.collect())) == [("1", "a;b", "the\nday"), ("2", "a;b", "the\nday")]
        assert checked(spark, given) == 0

    def test_the_line_of_excel_before_rows_without_names(self, spark, tmp_path: Path) -> None:
        given = source(write(tmp_path / "in", {"a.csv": "sep=;\n1;the day\n2;a night\n"}), header=False)
        assert rows(spark, given, ("_c1",)) == [("1", "the day"), ("2", "a night")]
        assert checked(spark, given, ("_c1",)) == 0

    def test_the_line_of_excel_against_another_separator(self, spark, tmp_path: Path) -> None:
        write(tmp_path, {"a.csv": "sep=;\nid;body\n1;the day\n"})
        with pytest.raises(SettingsError, match=r"input\.options\.sep: ',' given.*sep=;; valid: ';'"):
            read_input(spark, source(tmp_path / "a.csv", sep=","), ["body"])

    def test_the_line_of_excel_in_one_file_of_two(self, spark, tmp_path: Path) -> None:
        content = "id;agent;body\n1;a;zanzibar\n"
        given = source(write(tmp_path / "in", {"a.csv": f"sep=;\n{content}", "b.csv": content}), sep=";")
        assert "1 file (b.csv)" in refused(spark, given)


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
    @pytest.mark.parametrize(("several", "mode"), [(True, {}), (False, {"mode": "PERMISSIVE"})])
    @pytest.mark.parametrize("place", ["here", "elsewhere"])
    def test_files_with_other_columns_are_refused(
        self, spark, tmp_path: Path, monkeypatch, second: str, several: bool, mode: dict[str, str], place: str
    ) -> None:
        if place == "elsewhere":
            monkeypatch.setattr(records, "_compared_here", lambda *_: False)
        else:  # no row is read
            monkeypatch.delattr(records, "_rows")
        first = HEAD + "1,a,the day\n"
        given = source(
            write(tmp_path / "in", {"a.csv": first, "b.csv": second, "c.csv": first}),
            multiLine=several,
            **mode,
        )
        for check in (checked, same_columns):
            said = refused(spark, given, check=check)
            assert "the first line of 1 file (b.csv) does not name the columns" in said

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

    def test_names_that_are_empty_or_repeat(self, spark, tmp_path: Path) -> None:
        first = "id,body,,body,\n1,the day,,x,\n"
        given = source(write(tmp_path / "in", {"a.csv": first, "b.csv": first}))
        df, _ = read_input(spark, given, ["body1"])
        assert df.columns == ["id", "body1", "_c2", "body3", "_c4"]
        assert checked(spark, given, ("body1",)) == 0
        write(tmp_path / "in", {"b.csv": "id,body,,text,\n1,zanzibar,,x,\n"})
        assert "1 file (b.csv)" in refused(spark, given, ("id",))

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

    def test_in_partitions_and_without_names(self, spark, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "k=1/a.csv": HEAD + "1,a,the day\n",
            "k=2/b [c].csv": "id,body,agent\n2,zanzibar,b\n",
        }
        assert "1 file (k=2/b [c].csv)" in refused(spark, source(write(tmp_path / "in", files)))
        files = {"a.csv": "1,a,the day\n2,b,the night\n", "b.csv": "3,zanzibar\n"}
        for mode in ({}, {"mode": "PERMISSIVE"}):
            given = source(write(tmp_path / "bare", files), header=False, **mode)
            assert "the first line of 1 file (b.csv) has not 3 fields" in refused(spark, given, ("_c1",))
        write(tmp_path / "bare", {"b.csv": "3,b,zanzibar\n"})
        assert checked(spark, source(tmp_path / "bare", header=False), ("_c1",)) == 0

    @pytest.mark.parametrize("options", [{}, {"header": False}, {"escape": "\\"}, {"multiLine": False}])
    def test_first_records_that_are_odd(self, spark, tmp_path: Path, options: dict[str, str | bool]) -> None:
        first = '"id, of it","the ""agent""",body\n' if not options else "id,5 x,body\n"
        files: dict[str, str | bytes] = {
            "a.csv": first + "1,a,the day\n",
            "b.csv": first.replace("\n", "\r") + "2,a,x",
        }
        files["c.csv"] = first + "3,a," + "the day " * 20_000
        given = source(write(tmp_path / "in", files), **options)
        assert compared_here(spark, given)
        assert checked(spark, given, ("_c2",) if "header" in options else ("body",)) == 0

    def test_names_that_hold_a_line_break(self, spark, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "a.csv": '"id\nof it","5"" agent",body\n1,a,the day\n',
            "b.csv": '"id\nof it","5"" AGENT",body\n2,a,the day\n',
        }
        given = source(write(tmp_path / "in", files))
        assert compared_here(spark, given)
        assert checked(spark, given) == 0
        write(tmp_path / "in", {"b.csv": '"id\nof it","body","5"" agent"\n2,zanzibar,a\n'})
        assert "1 file (b.csv)" in refused(spark, given)

    def test_what_spark_has_to_compare(self, spark, tmp_path: Path) -> None:
        write(tmp_path / "in", {"a.csv": "id,body\n1,the day\n", "b.csv": "# x\nid,body\n2,the day\n"})
        given = source(tmp_path / "in", comment="#")
        assert not compared_here(spark, given)
        assert checked(spark, given) == 0
        write(tmp_path / "long", {"a.csv": "id," + "x" * 70_000 + "\n1,the day\n"})
        assert not compared_here(spark, source(tmp_path / "long"))
        assert not compared_here(spark, source(tmp_path / "in", encoding="UTF-16"))

    def test_many_files(self, spark, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {f"{n}.csv": HEAD + f"{n},a,the day\n" for n in range(40)}
        given = source(
            write(tmp_path / "in", files | {f"x{n}.csv": "id,body,agent\n1,zanzibar,b\n" for n in range(8)})
        )
        assert "8 files (x0.csv, x1.csv, x2.csv, x3.csv, x4.csv and 3 more)" in refused(spark, given)

    def test_a_thousand_files_are_compared_in_two_seconds(self, spark, tmp_path: Path, monkeypatch) -> None:
        monkeypatch.delattr(records, "_rows")  # no row is read
        given = source(
            write(tmp_path / "in", {f"{n:03}.csv": HEAD + '1,a,"the ""day"""\n' for n in range(1_000)})
        )
        seconds = []
        for _ in range(3):
            begin = time.perf_counter()
            same_columns(spark, given)
            seconds.append(time.perf_counter() - begin)
        assert min(seconds) < 2.0
        write(tmp_path / "in", {"999.csv": "id,body,agent\n1,zanzibar,b\n"})
        assert "1 file (999.csv)" in refused(spark, given, check=same_columns)

    def test_a_first_file_without_the_text_column_is_named(self, spark, tmp_path: Path) -> None:
        given = source(
            write(tmp_path / "in", {"a [1].csv": "id,text\n1,zanzibar\n", "b.csv": "id,body\n2,x\n"})
        )
        assert "the first line of 'a [1].csv', taken for the names" in refused(spark, given)


class TestRecords:
    def test_those_with_another_number_of_fields(self, spark, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "a.csv": HEAD + "1,a,the day\n2,zanzibar\n3,a,the,zanzibar\n",
            "b.csv": HEAD + "4,a,the day\n",
            "c.csv": HEAD + "zanzibar\n",
        }
        for several in (True, False):
            given = source(write(tmp_path / "in", files), multiLine=several)
            assert "3 records of 2 files (a.csv, c.csv) have another number of fields" in refused(
                spark, given
            )
            accepted = source(tmp_path / "in", multiLine=several, Mode="permissive")
            assert checked(spark, accepted) == 3

    @pytest.mark.long
    @pytest.mark.parametrize(
        "content",
        ['1,a,"the day\n2,b,zanzibar\n', '1,"a,the day\n2,b,zanzibar\n', '1,a,5" zanzibar\n'],
        ids=["last", "middle", "inside"],
    )
    def test_a_quote_that_does_not_close(self, spark, tmp_path: Path, content: str) -> None:
        given = source(
            write(tmp_path / "in", {"a.csv": HEAD + '0,a,"the ""day"""\n', "b.csv": HEAD + content})
        )
        assert "1 record of 1 file (b.csv)" in refused(spark, given)
        assert checked(spark, source(tmp_path / "in", mode="PERMISSIVE")) == 1

    def test_torn_lines_read_one_by_one(self, spark, tmp_path: Path) -> None:
        content = HEAD + '1,a,"the day\nof zanzibar, b, c\n5, and more"\n2,b,"the ""night"""\n'
        given = source(write(tmp_path / "in", {"a.csv": content}), multiLine=False)
        assert re.search(r"[23] records of 1 file \(a\.csv\)", refused(spark, given))
        assert checked(spark, source(tmp_path / "in")) == 0

    def test_of_json(self, spark, tmp_path: Path) -> None:
        files: dict[str, str | bytes] = {
            "a.json": '{"body": "the day"}\n{"body": zanzibar\n',
            "b.json": '{"body": "x"}\n',
        }
        given = source(write(tmp_path / "in", files), "json")
        assert "1 record of 1 file (a.json) are no JSON" in refused(spark, given)
        assert checked(spark, source(tmp_path / "in", "json", mode="PERMISSIVE")) == 1
