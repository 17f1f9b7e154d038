"""Runs that are refused by what schemas, keys and targets tell: the dry run and the run are asked for the same of them."""

from __future__ import annotations

import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, DPTextError, RunError, SettingsError

MARKER = "zqxmarker"  # stands for a private word
COLUMNS = {
    "id": ("long", pa.array([1, 2], pa.int64())),
    "customer": ("string", pa.array(["a", "b"])),
    "body": ("string", pa.array([f"the {MARKER} day", None])),
    "n": ("double", pa.array([1.0, 2.0])),
    "a.b": ("string", pa.array(["x", "y"])),
    'q"u`o': ("string", pa.array(["x", "y"])),
    "meta": (
        {"type": "struct", "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in (("note", "string"), ("n", "long"))
        ]},
        pa.array([{"note": MARKER, "n": 1}, None]),
    ),
    "tags": ({"type": "array", "elementType": "string", "containsNull": True}, pa.array([["x"], None])),
}  # fmt: skip
ALL = [*COLUMNS]


def delta_table(
    folder: Path, columns: list[str], run: str = "", made: str = "", by: str = "CREATE TABLE"
) -> None:
    """Write the log of an empty Delta table: one that runs of ours wrote (`run`), that one made (`made`), or of others (`by`)."""
    fields = [{"name": n, "type": COLUMNS[n][0], "nullable": True, "metadata": {}} for n in columns]
    info: dict[str, Any] = {
        "timestamp": 1_700_000_000_000,
        "operation": by,
        "operationParameters": {"properties": json.dumps({"dptext_created": made} if made else {})},
    }
    if run:
        info |= {"operation": "WRITE", "userMetadata": json.dumps({"dptext_run": run})}
    described = {
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, str(folder))),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 1_700_000_000_000,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    actions = [{"commitInfo": info}, {"protocol": protocol}, {"metaData": described}]
    (folder / "_delta_log").mkdir(parents=True)
    (folder / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, actions)) + "\n")


def write_places(root: Path) -> None:
    """Write inputs and targets."""
    pq.write_table(pa.table({name: values for name, (_, values) in COLUMNS.items()}), root / "in.parquet")
    pq.write_table(pa.table({"n": pa.array([1, 2])}), root / "numbers.parquet")
    pq.write_table(pa.table({"__dptext": ["x"], "body": ["x"]}), root / "reserved.parquet")
    pq.write_table(pa.table({"body": ["x"], "at": pa.array([1], pa.timestamp("ns"))}), root / "nanos.parquet")
    (root / "semicolon.csv").write_text(f"id;body\n1;{MARKER}\n")
    (root / "rows.csv").write_text(f"1,the {MARKER}\n2,the day\n")
    (root / "utf16.csv").write_text(f"id,body\n1,{MARKER}\n", encoding="utf-16")
    (root / "plain.csv").write_text(f"id,body\n1,{MARKER}\n")
    (root / "letters").mkdir()
    (root / "letters" / "a.csv").write_text("id,body\n1,x\n")
    (root / "letters" / "b.csv").write_text(f"body,id\n{MARKER},2\n")
    (root / "piped").mkdir()
    (root / "piped" / "a.csv").write_text("id,body\n1,x\n")
    os.mkfifo(root / "piped" / "b.csv")
    (root / "records.json").write_text(json.dumps({"id": 1, "body": MARKER, "n": 1.5}) + "\n")
    (root / "notes").mkdir()
    (root / "notes" / "readme.md").write_text(f"{MARKER}\n")
    (root / "empty").mkdir()
    (root / "taken").mkdir()
    (root / "taken" / "old.parquet").write_bytes((root / "numbers.parquet").read_bytes())
    delta_table(root / "theirs", ALL, by="WRITE")
    delta_table(root / "created", ALL)
    delta_table(root / "ours", ALL, run="then")
    delta_table(root / "narrow", ["id", "body"], run="then")
    delta_table(root / "made", ["id", "body"], made="r1")
    delta_table(root / "source", ALL)
    key = root / "run.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)


@dataclass(frozen=True)
class Case:
    """A run that is refused."""

    settings: dict[str, Any]  # beside those of `config_of`
    kind: type[DPTextError]  # of the error
    said: str  # a part of its message
    # whether run and dry run say the same to the letter; else the reason in parentheses differs.
    alike: bool = field(default=True)


def _csv(file: str, **options: str) -> dict[str, Any]:
    return {"input": {"path": f"ROOT/{file}", "format": "csv", "options": options}}


def _parquet(file: str) -> dict[str, Any]:
    return {"input": {"path": f"ROOT/{file}", "format": "parquet"}}


def _out(place: str, **more: Any) -> dict[str, Any]:
    return {"output": {"path": f"ROOT/{place}", **more}}


KEPT: dict[str, Any] = {"key": {"file": "ROOT/run.key"}}
THERE = 'Choose id, customer, body, n, a.b, q"u`o, meta or tags.'
TEXTS = 'Text columns of the input: customer, body, `a.b`, `q"u``o`, meta.note, tags.'
CASES: dict[str, Case] = {
    "no input": Case(_parquet("nowhere"), DataError, "is empty or does not exist", False),
    "no Delta table": Case({"input": {"path": "ROOT/notes"}}, DataError, "is not a Delta table. Choose "),
    "Parquet taken for Delta": Case({"input": {"path": "ROOT/in.parquet"}}, DataError, "is not a Delta table"),
    "a folder of notes": Case(_parquet("notes"), DataError, "cannot be read as parquet (", False),
    "an empty folder": Case(_parquet("empty"), DataError, "cannot be read as parquet (", False),
    "nanoseconds": Case(_parquet("nanos.parquet"), DataError, "cannot be read as parquet (", False),
    "numbers alone": Case({**_parquet("numbers.parquet"), "columns": ["n"]}, DataError,
                          "columns: 'n' is of type bigint. Text columns of the input: none."),
    "a reserved name": Case(_parquet("reserved.parquet"), DataError, "the column name '__dptext' is reserved"),
    "no such text": Case({"columns": ["boddy"]}, DataError, f"columns: 'boddy' is not in the input. {TEXTS}"),
    "no such field": Case({"columns": ["meta.nope"]}, DataError, f"columns: 'meta.nope' is not in the input. {TEXTS}"),
    "a number": Case({"columns": ["n"]}, DataError, f"columns: 'n' is of type double. {TEXTS}"),
    "a dot": Case({"columns": ["a.c"]}, DataError, f"columns: 'a.c' is not in the input. {TEXTS}"),
    "a quote": Case({"columns": ['q"u']}, DataError, f"columns: 'q\"u' is not in the input. {TEXTS}"),
    "another separator": Case(_csv("semicolon.csv"), DataError, "dptext took its first line for the names"),
    "no header": Case(_csv("rows.csv"), DataError, "set input.options header: false"),
    "no header, no such place": Case({**_csv("rows.csv", header="false"), "columns": ["_c2"]}, DataError,
                                     "columns: '_c2' is not in the input. Text columns of the input: _c0, _c1."),
    "columns of files": Case(_csv("letters"), DataError, "the first line of 1 file (b.csv) does not name the columns"),
    "a pipe": Case(_csv("piped/b.csv"), DataError, "b.csv' is a pipe, a device or a socket"),
    "a pipe in a folder": Case(_csv("piped"), DataError, "b.csv' is a pipe, a device or a socket"),
    "a pipe for a Delta table": Case({"input": {"path": "ROOT/piped/b.csv"}}, DataError, "is not a Delta table"),
    "another encoding": Case(_csv("utf16.csv"), DataError, "set sep or encoding"),
    "no such field of JSON": Case({"input": {"path": "ROOT/records.json", "format": "json"}, "columns": ["boddy"]}, DataError,
                                  "columns: 'boddy' is not in the input. Text columns of the input: body, id, n."),
    "no such row key": Case({"row_key": "nope"}, DataError, f"row_key: 'nope' is not in the input. {THERE}"),
    "no such record key": Case({"record_key": "nope"}, DataError, f"record_key: 'nope' is not in the input. {THERE}"),
    "a key of fractions": Case({"record_key": "n"}, SettingsError, "record_key: column 'n' is of type double. Choose an integer"),
    "no such other column": Case(_out("out", other_columns=["nope"]), DataError,
                                 "output.other_columns: 'nope' is not in the input"),
    "no such partition": Case(_out("out", partition_by=["nope"]), DataError,
                              "output.partition_by: 'nope' is not valid. Choose columns of the target"),
    "a nested partition": Case(_out("out", partition_by=["meta"]), DataError, "output.partition_by: 'meta' is not valid"),
    "no such weights": Case({"importance": {"provider": "column", "percent": 30, "weights": ["nope"]}}, DataError,
                            "importance.weights: 'nope' is not in the input"),
    "weights of words": Case({"importance": {"provider": "column", "percent": 30, "weights": ["tags"]}}, DataError,
                             "importance.weights: column 'tags' is of type array<string>. Choose array<float>."),
    "no such list": Case({"policy": {"mask": [{"column": "nope"}]}}, DataError, ".column: 'nope' is not in the input. Choose "),
    "a list of numbers": Case({"policy": {"mask": [{"column": "n"}]}}, DataError, "column 'n' is of type double. Choose string"),
    "no such column to choose by": Case({"input": {"path": "ROOT/in.parquet", "format": "parquet", "where": {"nope": 1}}},
                                        SettingsError, "input.where.nope: 'nope' is not in the input"),
    "files in the way": Case(_out("taken"), SettingsError, "has files and is not a Delta table. Choose a new or empty folder"),
    "a target that exists": Case(_out("ours"), RunError, "exists. Choose output.mode append or overwrite, or another place."),
    "raw text in the history": Case(_out("theirs", mode="append"), SettingsError,
                                    "It may hold raw text"),
    "fresh noise": Case(_out("ours", mode="append"), SettingsError, "has 1 release(s) of earlier runs. With a key of"),
    "other columns": Case({**KEPT, **_out("narrow", mode="append"), "run": {"second_release": "accept"}}, DataError,
                          "output.mode: append needs the target's columns, but "),
    "below a file": Case(_out("in.csv/out"), SettingsError, "cannot be written, because "),
}  # fmt: skip


def config_of(root: Path, settings: dict[str, Any]) -> RunConfig:
    """Return settings of a run over `root`, with those that are given in the place of its own."""
    (root / "in.csv").touch()
    least = {**_parquet("in.parquet"), "columns": ["body"], **_out("out")}
    return parse_config(json.loads(json.dumps({**least, **settings}).replace("ROOT", str(root))))
