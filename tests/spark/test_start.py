"""`dptext start` and `dptext preview --input`: from a table to settings that a run takes."""

from __future__ import annotations

import codecs
import gzip
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dptext_spark.cli.app import main
from dptext_spark.config.file import read_settings
from dptext_spark.config.load import load_config, parse_model_config
from dptext_spark.config.locations import spelled
from dptext_spark.config.sections import STYLES
from dptext_spark.config.styles import TableSettings, settings_file
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model import table_files
from dptext_spark.model.first_look import columns_of, paths_in, text_at
from dptext_spark.model.table_files import AsText
from dptext_spark.spark.table_sample import place_of, read_sample
from dptext_spark.spark.tables import Target
from dptext_spark.text.policy import Policy

PRIVATE = "Zebedee"
BODIES = [
    f"Please send the parcel to {PRIVATE} before Friday",
    "My mail is anna@example.net and my phone is +1 555 123 4567",
    "The app crashed again and I lost all of my notes",
    "I cannot log in on my phone since last week",
]
HEAD = ["ticket_id", "customer_id", "body", "stars"]


def lines(separator: str = ",", header: bool = True) -> str:
    rows = [[str(n), "c7" if n < 2 else "c8", body, "5"] for n, body in enumerate(BODIES)]
    return "".join(separator.join(row) + "\n" for row in ([HEAD] if header else []) + rows)


def table(rows: int = len(BODIES)) -> pa.Table:
    return pa.table(
        {
            "ticket_id": pa.array(range(rows)),
            "customer_id": pa.array([n // 2 for n in range(rows)]),
            "body": pa.array([BODIES[n % len(BODIES)] for n in range(rows)]),
            "stars": pa.array([0.5] * rows),
        }
    )


def dptext(*arguments: object) -> int:
    return main([str(one) for one in arguments])


@pytest.fixture(autouse=True)
def by_spark(spark) -> None:
    """Every test reads in the session of the tests."""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.long
def test_a_csv_file_becomes_settings_that_a_run_takes(here: Path, tmp_path: Path, capsys) -> None:
    source = tmp_path / "tickets.csv"
    source.write_text(lines(";"))
    assert dptext("start", source) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("RESTRICTED")
    assert all(said in shown for said in (BODIES[0], *STYLES, "candidates: ticket_id"))
    written = (here / "tickets.yaml").read_text()
    assert not any(word in written for body in BODIES for word in body.split() if len(word) > 5)
    config = load_config(here / "tickets.yaml")
    assert config.columns == ("body",)
    assert (config.row_key, config.record_key) == ("ticket_id", None)
    assert config.input.options == {"header": "true", "sep": ";"}
    assert config.other_columns == ("ticket_id",)
    assert config.style == "balanced"
    # The style, and not what it consists of.
    sections = ["input", "columns", "row_key", "style", "output", "require"]
    assert list(read_settings(here / "tickets.yaml")) == sections
    assert config.mechanism == parse_model_config({"style": "balanced"}).mechanism
    assert dptext("run", here / "tickets.yaml", "--dry-run") == 0
    capsys.readouterr()
    # It is not written over.
    assert dptext("start", source) == 2
    assert "exists" in capsys.readouterr().err
    assert (here / "tickets.yaml").read_text() == written


def test_its_json_counts_what_stands_in_the_sample(here: Path, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "t.parquet"
    (folder / "more").mkdir(parents=True)
    pq.write_table(table(), folder / "a.parquet")
    pq.write_table(table(9), folder / "more" / "b.parquet")  # in another folder: no part of the table
    assert dptext("start", folder, "--style", "strict", "--to", "s.yaml", "--json") == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["rows_are_exact"], found["sampled_rows"]) == (4, True, 4)
    assert found["text_columns"] == ["body"]
    assert found["row_key_candidates"] == ["ticket_id"]
    assert found["record_key_candidates"] == ["customer_id"]
    assert found["found"]["email"] == found["found"]["phone"] == 1
    assert found["unknown_words"] == 1  # the name that no list holds
    assert [row["before"] for row in found["shown"]] == BODIES
    assert all(set(row["after"]) == set(STYLES) for row in found["shown"])
    assert all("anna@" not in after for row in found["shown"] for after in row["after"].values())
    assert load_config(here / "s.yaml").columns == ("body",)


def test_a_table_in_another_language_is_sent_to_a_lexicon(here: Path, tmp_path: Path, capsys) -> None:
    words = ["Lieferung", "Drucker", "gestern", "kaputt", "zurück", "bitte", "überweisen", "Rechnung"]
    bodies = [" ".join(words[(i * j) % len(words)] for j in range(1, 9)) for i in range(1, 60)]
    table = pa.table({"id": range(59), "kunde": [f"K{n // 3}" for n in range(59)], "body": bodies})
    pq.write_table(table, tmp_path / "de.parquet")
    assert dptext("start", tmp_path / "de.parquet", "--column", "body") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for said in ("policy.allow_unknown", "candidates: kunde", "lexicon.source", "policy.names: none"):
        assert said in shown
    written = (here / "de.yaml").read_text()
    balanced = parse_model_config({"style": "balanced"}).policy
    assert load_config(here / "de.yaml").policy == replace(balanced, names=Policy().names)
    assert "policy:\n  names: none\n" in written


def test_preview_shows_rows_with_changed_words_marked(here: Path, tmp_path: Path, capsys) -> None:
    source = tmp_path / "t.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in table().to_pylist()))
    assert dptext("preview", "--input", source, "--rows", 2) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("RESTRICTED")
    assert shown.count("  before  ") == 2
    assert "«[EMAIL]»" not in shown  # the rows are the first and the last
    assert "«" in shown
    assert dptext("preview", "--input", source, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["before"] for row in rows] == BODIES
    assert "[EMAIL]" in rows[1]["after"]["after"]
    assert list(here.iterdir()) == []
    assert dptext("preview") == dptext("preview", "a b", "--input", source) == 2


def test_preview_reads_the_input_of_settings_as_their_run_does(here: Path, tmp_path: Path, capsys) -> None:
    rows = "".join(f"{n};'{body}; and more';{n % 2}\n" for n, body in enumerate(BODIES))
    (source := tmp_path / "t.csv").write_text(f"id;body;kind\n{rows}")
    options = "{sep: ';', quote: \"'\"}, where: {kind: '1'}"
    settings = f"input: {{path: {source}, format: csv, options: {options}}}\ncolumns: [body]\nrow_key: id\n"
    Path("s.yaml").write_text(f"{settings}output: {{path: out}}\n")
    assert dptext("preview", "-c", "s.yaml", "--input", source, "--json") == 0
    shown = json.loads(capsys.readouterr().out)["rows"]
    assert [row["before"] for row in shown] == [f"{body}; and more" for body in BODIES[1::2]]


def test_columns_of_few_values_are_proposed_as_attributes(here: Path, tmp_path: Path, capsys) -> None:
    rows = 60
    columns = {
        "country": [["DE", "AT", None][n % 3] for n in range(rows)],
        "stars": [float(n % 5) for n in range(rows)],
        "alone": ["x"] * rows,  # of one value
        "many": [n % 21 for n in range(rows)],
        "seldom": ["x" if n < 3 else None for n in range(rows - 1)] + ["y"],
        "read_at": [bytes([n % 2]) for n in range(rows)],  # no class
    }
    few = table(rows).drop_columns(["stars"])
    for name, values in columns.items():
        few = few.append_column(name, pa.array(values))
    pq.write_table(few, tmp_path / "t.parquet")
    assert columns_of(read_sample(tmp_path / "t.parquet")).attributes == ("country", "stars", "seldom")
    assert dptext("start", tmp_path / "t.parquet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["attribute_candidates"] == ["country", "stars", "seldom"]
    assert "--attribute COLUMN` measures" in (written := (here / "t.yaml").read_text())
    assert "# - country\n# - stars\n# - seldom\n# What must hold" in written


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "name", ["a.b", 'it\'s "so"', "`tick`", "text: # {x}", "ünï", "null", "1", "08", "1e3", "no"]
)
def test_odd_names_of_columns_survive_the_file(style: str, name: str, tmp_path: Path) -> None:
    others = (f"{name} x", "line\nbreak")
    names = ((spelled((name,)),), f"{name} key", (), (f"{name} user",), others)
    made = TableSettings("/data/in.csv", "csv", *names)
    text, config = settings_file(made, style)
    file = tmp_path / "s.yaml"
    file.write_text(text, encoding="utf-8")
    read = load_config(file)
    assert read == config
    assert read.row_key == f"{name} key"
    assert read.output.path == "/data/in_sanitized"


def test_a_packed_file_is_counted_by_its_bytes(tmp_path: Path) -> None:
    records = "".join(f'{{"n": {n}, "body": "{BODIES[n % 4]}\u2028"}}\n' for n in range(20_000))
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(records.encode()))
    packed = read_sample(tmp_path / "t.json.gz")
    assert not packed.is_exact
    assert abs(packed.total - 20_000) < 2_000


@pytest.mark.long
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [True, False])
def test_separator_and_header_are_found(separator: str, header: bool, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(lines(separator, header))
    sample = read_sample(tmp_path / "t.csv")
    assert sample.rows.column_names == (HEAD if header else ["_c0", "_c1", "_c2", "_c3"])
    assert sample.rows.column(2).to_pylist() == BODIES
    assert sample.options["header"] is header
    assert any("first line" in one for one in sample.assumed)
    # Where no header can be told no row becomes names.
    (tmp_path / "t.csv").write_text("Anna,ok\nBert,fine\nCleo,good\n")
    assert read_sample(tmp_path / "t.csv").rows.column_names == ["_c0", "_c1"]
    assert read_sample(tmp_path / "t.csv", as_text=AsText(header=True)).rows.column_names == ["Anna", "ok"]


@pytest.mark.parametrize("separator", [";", ",", "|"])
def test_the_line_of_excel_names_the_separator(tmp_path: Path, separator: str) -> None:
    plain = lines(separator).replace("\n", "\r\n")
    (tmp_path / "t.csv").write_bytes(f"sep={separator}\r\n{plain}".encode())
    sample = read_sample(tmp_path / "t.csv")
    assert (sample.rows.column_names, sample.rows.num_rows) == (HEAD, len(BODIES))
    assert sample.options == {"header": True}  # a run reads that line, too


@pytest.mark.long
def test_first_lines_of_files_are_compared_and_large_ones_named(tmp_path: Path, monkeypatch) -> None:
    text = lines(";")
    for n in range(40):
        (tmp_path / f"{n:02}.csv").write_text(text)
    assert (read_sample(tmp_path).files, read_sample(tmp_path).read) == (40, 10)
    names, _, rows = text.partition("\n")
    other = f"{';'.join(reversed(names.split(';')))}\n{rows}"
    for n in (1, 39):
        (tmp_path / f"{n:02}.csv").write_text(other)
    with pytest.raises(DataError, match=r"2 files \(01\.csv, 39\.csv\) does not name the columns") as refused:
        read_sample(tmp_path)
    assert PRIVATE not in str(refused.value)
    (tmp_path / "01.csv").write_text(f"{names.upper()}\n")
    (tmp_path / "39.csv").write_text("")
    assert read_sample(tmp_path).files == 39  # an empty one is none, as for a run
    (tmp_path / "39.csv").write_text("a;b\n")
    with pytest.raises(DataError, match=r"1 file \(39\.csv\) does not have"):
        read_sample(tmp_path, as_text=AsText(header=False))
    monkeypatch.setattr(table_files, "LARGE_FILE", 100)
    (tmp_path / "39.csv").write_bytes(b"")
    (tmp_path / "40.csv.gz").write_bytes(gzip.compress(text.encode() * 9))
    assert any(" above 1 GB" in one for one in read_sample(tmp_path).assumed)


def test_json_may_have_another_encoding(tmp_path: Path) -> None:
    lines = [{"id": n, "body": f"über {body}"} for n, body in enumerate(BODIES)]
    records = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    for encoding in ("ISO-8859-1", "UTF-16LE"):
        (tmp_path / "t.json").write_bytes(records.encode(encoding))
        with pytest.raises(DataError):
            read_sample(tmp_path / "t.json")
        sample = read_sample(tmp_path / "t.json", as_text=AsText(encoding=encoding))
        assert sample.options == {"encoding": encoding}
        assert sample.rows["body"].to_pylist() == [f"über {body}" for body in BODIES]
    with pytest.raises(SettingsError, match="'UTF-16' is not valid for JSON"):
        read_sample(tmp_path / "t.json", as_text=AsText(encoding="UTF-16"))
    (tmp_path / "t.json").write_text(records + '{"id": 9, "a\\ud83d\\ude00": "x", "body": "the day"}')
    assert "a\U0001f600" in read_sample(tmp_path / "t.json").rows.column_names


def test_quotes_encodings_and_packed_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text('id,body\n1,"a ""b"",\nc d e"\n2,f g h i\n3,f g h i\n')
    quoted = read_sample(tmp_path / "q.csv")
    assert quoted.rows["body"].to_pylist()[0] == 'a "b",\nc d e'
    assert quoted.options == {"header": True}
    (tmp_path / "u.csv").write_bytes(codecs.BOM_UTF16_LE + lines().encode("utf-16-le"))
    marked = read_sample(tmp_path / "u.csv")
    assert (marked.options["encoding"], marked.rows["body"].to_pylist()) == ("UTF-16", BODIES)
    assert (marked.total, marked.is_exact) == (len(BODIES), True)
    (tmp_path / "b.csv").write_bytes(codecs.BOM_UTF8 + lines().encode())
    assert read_sample(tmp_path / "b.csv").rows.column_names == HEAD
    (tmp_path / "n.csv").write_text("id,body,,\n" + f'1,"{BODIES[0]}",,\n' * 5)
    assert any("get numbers" in text for text in read_sample(tmp_path / "n.csv").assumed)
    (tmp_path / "z.csv.gz").write_bytes(gzip.compress(lines().encode()))
    assert read_sample(tmp_path / "z.csv.gz").rows.column_names == HEAD
    latin = tmp_path / "l.csv"
    latin.write_bytes(f"id,body\n1,{PRIVATE} ging über die Straße\n2,a b c d\n3,a b c d\n".encode("latin-1"))
    with pytest.raises(DataError, match="--encoding") as refused:
        read_sample(latin)
    assert PRIVATE not in str(refused.value)
    found = read_sample(latin, as_text=AsText(encoding="latin-1"))
    assert "über" in str(found.rows["body"][0])
    assert found.options["encoding"] == "ISO-8859-1"  # as Spark calls it
    for unread in ("windows-1252", "none"):
        with pytest.raises(SettingsError, match=r"encoding: .* Spark does not read it"):
            read_sample(latin, as_text=AsText(encoding=unread))


BAD: dict[str, tuple[str, bytes, int, str]] = {
    "nothing there": ("", b"", 2, "does not exist"),
    "no ending": ("t.bin", b"a", 2, "no known ending"),
    "empty": ("t.csv", b"", 8, "no row"),
    "a header alone": ("t.csv", b"id,body\n", 3, "has a single line"),
    "numbers": ("t.csv", b"n\n1\n2\n3\n", 3, "none of 1 has text"),
    "no parquet": ("t.parquet", f"{PRIVATE} is here".encode(), 3, "'t.parquet' cannot be read as parquet"),
    "no json": ("t.json", f"{PRIVATE} is here\n".encode(), 3, "not have one JSON record a line"),
    "binary": ("t.csv", b"a,b\0c\n", 3, "zero bytes"),
    "ragged": ("t.csv", f"id,x\n{PRIVATE} a\n{PRIVATE} b\n".encode(), 3, "another number of fields"),
    "brackets": ("t.json", b"[" * 5000 + b"]" * 5000, 3, "does not have one JSON record a line"),
    "keys": ("t.json", b'{"a":' * 300 + b'"a text of words"' + b"}" * 300, 3, "nests more than 50 levels"),
    "an empty parquet": ("t.parquet", b"", 8, "no row"),
    "no footer": ("t.parquet", b"PAR1 no footer", 3, "'t.parquet' cannot be read as parquet"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named_and_nothing_is_written(case: str, here: Path, tmp_path: Path, capsys) -> None:
    name, content, code, said = BAD[case]
    if name:
        (tmp_path / name).write_bytes(content)
    more = ["--separator", ",", "--header"] if case == "ragged" else []
    assert dptext("start", tmp_path / (name or "none.csv"), *more) == code
    out, error = capsys.readouterr()
    assert said in error
    assert PRIVATE not in error + out
    assert list(here.iterdir()) == []


def test_what_is_no_table_is_refused(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    assert dptext("start", folder) == 2
    (folder / "a.csv").write_text(lines())
    (folder / "b.json").write_text("{}\n")
    assert dptext("start", folder) == 2
    assert "files of csv, json" in capsys.readouterr().err
    pq.write_table(table(), folder / "c.parquet")
    assert dptext("start", folder / "c.parquet", "--column", "bodi") == 2
    assert "Did you mean 'body'" in capsys.readouterr().err
    assert dptext("start", folder / "c.parquet", "--column", "stars") == 3
    assert dptext("start", folder / "c.parquet", "--to", tmp_path / "no" / "s.yaml") == 2
    assert list(here.iterdir()) == []


def test_columns_are_told_apart(tmp_path: Path) -> None:
    rows = table().append_column("tags", pa.array([["a"]] * 4))
    rows = rows.append_column("note", pa.array([None] * 4, pa.string()))
    pq.write_table(rows, tmp_path / "t.parquet")
    found = columns_of(read_sample(tmp_path / "t.parquet"))
    assert (found.texts, found.nested, found.record_keys) == (("body",), ("tags",), ("customer_id",))
    assert (found.row_keys, found.row_key) == (("ticket_id",), "ticket_id")
    assert found.others == ("customer_id", "stars", "note")


def test_a_unique_column_whose_name_says_nothing_is_no_key_of_the_settings(tmp_path: Path) -> None:
    days = pa.array(range(4), pa.int32()).cast(pa.date32())
    pq.write_table(pa.table({"body": BODIES, "day": days}), tmp_path / "t.parquet")
    found = columns_of(read_sample(tmp_path / "t.parquet"))
    assert (found.row_keys, found.row_key, found.others) == (("day",), None, ("day",))
    named = TableSettings("/in.csv", "csv", found.texts, found.row_key, found.row_keys)
    text, config = settings_file(named, "strict")
    assert "# row_key: day" in text
    assert (config.row_key, config.output.other_columns) == (None, "drop")


def test_short_codes_in_lists_are_no_text_and_titles_are(tmp_path: Path) -> None:
    times = ["Mon Jan 05 10:15:00 UTC 2026", "2026-01-05 10:15", "5 March 2026 at 10:15 AM"]
    rest = {"sender": "customer service", "state": "open"}
    said = [[{**rest, "at": time, "text": body} for time in times] for body in BODIES]
    rows = {
        "thread": pa.array(said),
        "labels": pa.array([["open", "late", "paid back"]] * 4),
        "subject": pa.array(["Refund Ilse", "Invoice Bruno", "Broken lamp", "Parcel Ana"]),
        "state": pa.array(["in progress", "in progress", "on hold", "in progress"]),
        "sent": pa.array([f"Mon Jan 0{n} 10:15:00 UTC 2026" for n in range(4)]),
    }
    pq.write_table(pa.table(rows), tmp_path / "t.parquet")
    found = columns_of(read_sample(tmp_path / "t.parquet"))
    assert found.texts == ("thread.text", "subject")
    assert set(found.others) == {"thread.sender", "thread.at", "thread.state", "state", "sent"}


@pytest.mark.parametrize(
    ("values", "is_key"),
    [
        ([7, 8, 9, 10], True),
        (["K-1", "K-2", "K-3", "K-4"], True),
        (["2026-01-01", "2026-01-02", "2026-01-03", "2026-01-04"], False),
        (["1.50", "2.50", "3.50", "4.50"], False),
        (["ana1@example.net", "ana2@example.net", "b3@example.net", "c4@example.net"], False),
        (["Ana", "Ben", "Cid", "Dora"], False),
    ],
)
def test_a_unique_column_of_codes_is_a_row_key_in_any_language(values, is_key: bool, tmp_path) -> None:
    pq.write_table(pa.table({"tekst": BODIES, "znak": pa.array(values)}), tmp_path / "t.parquet")
    found = columns_of(read_sample(tmp_path / "t.parquet"))
    assert found.row_keys == ("znak",)
    assert found.row_key == ("znak" if is_key else None)
    assert found.others == (() if is_key else ("znak",))


def test_a_map_with_one_key_twice_names_its_column_and_the_cure(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.string())
    notes = pa.array([[("zorb", BODIES[0]), ("zorb", BODIES[1])]] * 2, kind)
    pq.write_table(pa.table({"body": BODIES[:2], "notes": notes}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match=r"^columns: notes: a map has the same key twice.*LAST_WIN") as error:
        columns_of(read_sample(tmp_path / "t.parquet"))
    assert "zorb" not in str(error.value)
    assert columns_of(read_sample(tmp_path / "t.parquet"), ["body"]).texts == ("body",)


def test_tables_of_one_name_have_targets_of_their_own(tmp_path: Path) -> None:
    for name in ("a.csv", "a.json", "b.csv", "b.yaml"):
        (tmp_path / name).write_text("")
    for name, target in (("a.csv", "a_csv"), ("a.json", "a_json"), ("b.csv", "b")):
        made = TableSettings(str(tmp_path / name), "csv", ("x",))
        assert Path(made.target).name == f"{target}_sanitized"
    assert TableSettings("s3a://b/c/in.csv", "csv", ("x",)).target == "s3a://b/c/in_sanitized"
    named = TableSettings("db.`my t`", "delta", ("x",), is_name=True).settings("strict")
    assert (named["input"], named["output"]["table"]) == ({"table": "db.`my t`"}, "db.`my t_sanitized`")


def test_what_is_no_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path / "pipe.csv", "/dev/zero"):
        with pytest.raises(SettingsError, match="is a pipe, a device or a socket"):
            read_sample(path)


def test_dictionaries_are_their_values_and_bad_text_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"body": pa.array(BODIES).dictionary_encode()}), tmp_path / "t.parquet")
    assert columns_of(read_sample(tmp_path / "t.parquet")).texts == ("body",)
    wrong = pa.array([f"{PRIVATE} a b ".encode() + b"\xff"]).cast(pa.string(), safe=False)
    pq.write_table(pa.table({"body": wrong}), tmp_path / "w.parquet")
    with pytest.raises(DataError, match="a text is not valid Unicode") as refused:
        read_sample(tmp_path / "w.parquet")
    assert PRIVATE not in str(refused.value)


NESTED = pa.table(
    {
        "meta": pa.array([{"a.b": body, "at": {"x": 1}} for body in BODIES]),
        "a.b": pa.array(BODIES),
        "said": pa.array([[{"text": BODIES[0], "by": "x"}, {"text": None, "by": "y"}], [], None, []]),
        "marks": pa.array([[("k", BODIES[1])], [("k", None)], None, []], pa.map_(pa.string(), pa.string())),
        "deep": pa.array([[[BODIES[0]]]] * 4),
    }
)


def test_nested_texts_are_named_as_a_run_takes_them() -> None:
    found = paths_in(NESTED.schema)
    assert list(found) == ["meta.`a.b`", "`a.b`", "said.text", "said.by", "marks"]
    assert text_at(NESTED, found["meta.`a.b`"]).to_pylist() == BODIES
    assert text_at(NESTED, found["said.text"]).to_pylist() == [f"{BODIES[0]}\n", None, None, None]
    assert text_at(NESTED, found["said.by"]).to_pylist() == ["x\ny", None, None, None]
    assert text_at(NESTED, found["marks"]).to_pylist() == [BODIES[1], None, None, None]


def test_nested_texts_are_shown_and_written(here: Path, tmp_path: Path, capsys) -> None:
    pq.write_table(NESTED, tmp_path / "t.parquet")
    assert dptext("start", tmp_path / "t.parquet", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["text_columns"] == ["meta.`a.b`", "`a.b`", "said.text", "marks"]
    shown = {row["column"]: row["before"] for row in found["shown"] if row["column"] != "`a.b`"}
    assert set(shown) == {"meta.`a.b`", "said.text", "marks"}
    assert load_config(here / "t.yaml").columns == tuple(found["text_columns"])
    assert "# - said.by" in (here / "t.yaml").read_text()
    rows = ("preview", "-c", here / "t.yaml", "--input", tmp_path / "t.parquet")
    assert dptext(*rows, "-s", "columns=[said.text]", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 1
    assert dptext(*rows, "-s", "columns=[said.texts]") == 2
    assert "Did you mean 'said.text'" in capsys.readouterr().err


def test_a_file_that_is_there_wins_over_a_catalog_name(here: Path, tmp_path: Path) -> None:
    assert place_of("db.tickets") == Target(name="db.tickets")
    pq.write_table(table(), here / "db.tickets")
    assert place_of("db.tickets") == Target(path=str(here / "db.tickets"))
    assert place_of("s3a://bucket/t") == Target(path="s3a://bucket/t")
    assert place_of(f"file://{tmp_path}") == Target(path=str(tmp_path))
    for misspelt in ("tickets.csv", "tickets.json.gz", "no/such", "file:///no/such"):
        with pytest.raises(SettingsError, match="does not exist"):
            place_of(misspelt)
    with pytest.raises(SettingsError, match="holds a password") as refused:
        place_of("s3a://me:hushed@bucket/t")
    assert "hushed" not in str(refused.value)
