"""One stream with lists of names, the search for names, pseudonyms, a provider and a budget: each micro-batch as its rows alone.

Streams with one of these each, and what is theirs alone, are run by `make test-cluster`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dptext_spark.audit.deniability.deniability import OF_RECORD
from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.errors import DPTextError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.runner import run
from dptext_spark.spark.tables.paths import Elements
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.word_list import WordList
from dptext_spark.text.selection import Texts
from tests.core.names import beginning
from tests.core.toy_providers import write

KEY = RunKey.insecure(3)
SCHEMA = "id long, body string, notes array<string>, customer string"
Row = tuple[int, str | None, list[str | None] | None, str | None]
FIRST: list[Row] = [
    (
        0,
        "Qwxyz of T-12 likes Brzezinski",
        ["J. Brzezinski, T-3", None, "Robert and zebras"],
        "Jan Brzezinski",
    ),
    (1, "time and time and time for people", ["people like new music in time"], None),
    (2, None, None, None),
]
SECOND: list[Row] = [
    (3, "Qwxyz met Jan Brzezinski", [], "Brzezinski"),
    (4, "", ["", "Mrs. Ada Lovelace of T-9"], ""),
]
MASKED, KEPT = ["Qwxyz"], ["new music"]
MODULE = "toy_provider_of_a_stream"


@pytest.fixture
def settings(spark: SparkSession, tmp_path: Path) -> Iterator[dict[str, Any]]:
    beginning(Lexicon.default(), 300).save(tmp_path / "lexicon")
    (tmp_path / "mask.txt").write_text("\n".join(MASKED))
    (tmp_path / "keep.txt").write_text("\n".join(KEPT))
    provider = write(tmp_path, MODULE)
    spark.addArtifact(str(tmp_path / f"{MODULE}.py"), pyfile=True)
    sys.path.insert(0, str(tmp_path))
    invalidate_caches()
    yield {
        "mode": "incremental",
        "input": {"path": str(tmp_path / "in")},
        "columns": ["body", "notes"],
        "row_key": "id",
        "record_key": "id",
        "consistency": "record",
        "lexicon": {"source": str(tmp_path / "lexicon")},
        "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "budget": {"record": 0.25, "delta": 1e-9},
        "policy": {
            "stop_words": "draw",
            "providers": [provider],
            "names": {"lists": True, "person": "pseudonym"},
            "mask": [
                {"file": str(tmp_path / "mask.txt")},
                {"column": "customer", "kind": "person", "replace": "pseudonym"},
            ],
            "keep": [{"file": str(tmp_path / "keep.txt")}],
        },
        "output": {"path": str(tmp_path / "out"), "other_columns": ["id"]},
    }
    sys.path.remove(str(tmp_path))


def list_of(entries: list[str]) -> WordList:
    return WordList.of("list", [one.encode() for one in entries])


def alone(
    model: Privatizer, rows: list[Row], run_id: str, masked: list[str]
) -> dict[int, tuple[str | None, list[str | None] | None]]:
    """The rows as the model draws them one by one, each with its lists put together by hand."""
    found: dict[int, tuple[str | None, list[str | None] | None]] = {}
    for number, body, notes, customer in rows:
        masking: list[tuple[list[str], Any]] = [
            (masked, None),
            *([([customer], "person")] if customer else []),
        ]
        table = compile_names(
            [list_of(some) for some in (*(some for some, _ in masking), KEPT)], name_key(KEY, "any")
        )
        made = model.with_names(Names(table, len(masking), kinds=tuple(kind for _, kind in masking)))
        ids, bodies = pa.array([number]), pa.array([body], pa.string())
        elements = Elements.of(pa.array([notes], pa.list_(pa.string())))
        chosen = made.choose([Texts(bodies), Texts(elements.texts, elements.rows)])
        assert chosen is not None
        drawn, _ = made.privatize(
            bodies, column="body", row_ids=ids, record_ids=ids, key=KEY, run_id=run_id, chosen=chosen[0]
        )
        listed, _ = made.privatize(
            elements.texts, column="notes", row_ids=elements.identities(ids),
            record_ids=ids.take(pa.array(elements.rows)), key=KEY, run_id=run_id, chosen=chosen[1],
        )  # fmt: skip
        found[number] = (drawn.to_pylist()[0], elements.whole(listed).to_pylist()[0])
    return found


def test_each_micro_batch_comes_out_as_its_rows_do_alone(
    spark: SparkSession, settings: dict[str, Any], tmp_path: Path
) -> None:
    config = parse_config(settings)
    model = prepare(config)[0]
    expected: dict[int, tuple[Any, Any]] = {}
    for number, (rows, masked) in enumerate([(FIRST, MASKED), (SECOND, ["music"])]):
        (tmp_path / "mask.txt").write_text("\n".join(masked))  # from its next micro-batch on
        spark.createDataFrame(rows, SCHEMA).coalesce(1).write.format("delta").mode("append").save(
            settings["input"]["path"]
        )
        result = run(config, spark, key=KEY)
        facts, outcome = result.facts, result.outcome
        assert (facts["rows"], facts["problems"]) == (len(rows), [])
        expected |= alone(model, rows, f"{facts['run_id']}.{number}", masked)
        out = spark.read.format("delta").load(settings["output"]["path"]).collect()
        assert {row["id"]: (row["body"], row["notes"]) for row in out} == expected
    assert isinstance(outcome, RunFacts)
    assert outcome.expected_change == OF_RECORD  # no band: the budget has a law for each length
    said = json.dumps(facts["disclosure"], ensure_ascii=False)
    for part in ("toy, version 1", "public lists", "[NAME]", "Over a record ε is bounded: at most ε = 0.25"):
        assert part in said
    written = json.dumps(list(expected.values())).lower()
    for mark in ("[name]", "[bgt]", "[ticket]", "[animal]", "new music"):
        assert mark in written
    assert not any(name in written for name in ("brzezinski", "lovelace", "robert", "t-12"))
    surname = expected[0][0].split(" ")[-1]  # of row 0 in its body and in its list
    assert surname in expected[0][1][0]
    with pytest.raises(DPTextError, match="budget"):
        run(parse_config({**settings, "budget": {"record": 2.0}}), spark, key=KEY)
