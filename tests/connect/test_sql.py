"""Functions of SQL, pipelines and rows by a client of Spark Connect: the bytes of the core, the key's way, and clear errors."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.compile import compile
from dptext_spark.randomness import RunKey
from tests.connect.conftest import Server, run_client
from tests.connect.sql_client import ROWS
from tests.core.names import beginning

pytestmark = pytest.mark.cluster

MARKER = "zanzibarmarker"


@pytest.fixture(scope="module")
def folder(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sql")
    save_model(compile(CusText(epsilon=2.0, k=10), beginning(Lexicon.default(), 600)), folder / "model")
    key = folder / "run.key"
    key.write_bytes(os.urandom(32))
    key.chmod(0o600)
    ended = run_client("tests.connect.sql_client", server, folder)
    assert ended.returncode == 0, ended.stderr[-3000:]
    assert MARKER not in ended.stdout + ended.stderr
    return folder


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "sql.json").read_text(encoding="utf-8"))
    return read


def by_the_core(folder: Path) -> list[str | None]:
    ids, texts = zip(*ROWS, strict=True)
    drawn, _ = open_model(folder / "model").privatize(
        pa.array(texts),
        column="body",
        row_ids=pa.array(ids),
        key=RunKey.from_file(folder / "run.key"),
        run_id="first",
    )
    return list(drawn.to_pylist())


@pytest.mark.parametrize("name", ["dptext", "travels"])
def test_a_select_has_the_bytes_of_the_core(found: dict[str, Any], folder: Path, name: str) -> None:
    assert [text for _, text in found[name]] == by_the_core(folder)


def test_a_key_that_travels_is_warned_of(found: dict[str, Any]) -> None:
    assert found["warned_of_executors"] == []
    (said,) = found["warned"]
    assert said.startswith("travels: The function carries the key to the server of Spark Connect")
    assert not any("Connect" in note for note in found["notes"])
    assert any("Connect" in note for note in found["travel_notes"])


def test_what_is_known_is_said_and_the_ledger_is_charged(found: dict[str, Any]) -> None:
    assert found["said"] == [f"dptext: {note}" for note in found["notes"]]
    assert found["entries"] == [["spent", "function dptext"]]
    assert any("ledger" in note for note in found["travel_notes"])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("dptext(body)", "dptext: one argument given."),
        ("dptext(body, NULL)", "NULL identity"),
        ("dptext(body, id, 1)", "dptext: 3 arguments given."),
        ("taken", "name: 'dptext' is another release of this session"),
        ("concat", "name: 'concat' is a function of Spark"),
        ("nvl", "name: 'nvl' is a function of Spark"),
        ("mask", "name: 'mask' is a function of Spark"),
        ("stopped", "spark: the session was stopped"),
        ("preview_raising", "Spark failed with USER_RAISED_EXCEPTION"),
        ("preview_nowhere", "Spark failed with TABLE_OR_VIEW_NOT_FOUND"),
        ("preview_number", "id: a column of type int64 "),
        ("preview_stopped", "Spark failed with"),
        ("compared_frames", "of a Spark DataFrame"),
        ("compared_columns", "of a Spark DataFrame"),
    ],
)
def test_errors_are_clear_and_show_no_text(found: dict[str, Any], call: str, said: str) -> None:
    assert said in found[call]
    assert MARKER not in found[call]


def test_rows_are_previewed_and_set_beside_what_they_became(found: dict[str, Any], folder: Path) -> None:
    before, after = found["preview"]
    texts = [text for _, text in ROWS]
    assert before == texts[:3]
    assert after[1:] == ["", None]
    drawn, *unknown = after[0].split(" ")
    assert drawn in beginning(Lexicon.default(), 600).vocabulary.strings().to_pylist()  # under a fresh key
    assert unknown == ["[OOV]", "[OOV]"]
    assert found["preview_repr"].startswith("TablePreview(3 rows, 1 column, not shown")
    assert found["compared"] == [texts, by_the_core(folder)]


def test_a_step_of_a_chain_has_the_bytes_of_the_core(found: dict[str, Any], folder: Path) -> None:
    assert found["transformed"] == by_the_core(folder)
