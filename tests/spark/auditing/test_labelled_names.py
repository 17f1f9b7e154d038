"""Labelled samples and the words that stayed, on real tables: counted by hand, at every level, without a word elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dptext_spark import spark as dps
from dptext_spark.audit.table.findings import StayedWord, TableAudit
from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.randomness.draws import RunKey
from dptext_spark.spark.auditing import tallies
from dptext_spark.spark.runner import run
from tests.core.names import beginning

SECRETS = ("lovelace", "zorblax", "oslo", "ada")
SOURCE = (
    (1, "We met Ada Lovelace in Oslo"), (2, "Then Zorblax spoke of Ada"), (3, "no name at all"), (4, None),
    (5, "Hello Ada Ada Zorblax there"),
)  # fmt: skip
TABLE = (
    (1, "We met Ada cat in Oslo"), (2, "Then Zorblax spoke of Ada"), (3, "no dog at all"), (4, None),
    (5, "Hello Ada Ada Zorblax"),
)  # fmt: skip
LABELS: list[dict[str, Any]] = [
    {"row": 1, "spans": [{"start": 7, "end": 19, "kind": "person"}, {"start": 23, "end": 27, "kind": "GPE"}]},
    {"row": 2, "spans": [{"start": 5, "end": 12, "kind": "product"}]},
    {"row": 3, "spans": []},
]
CONLL = """\
We\tO
met\tO
Ada\tB-person
Lovelace\tI-person
in\tO
Oslo\tB-location

Then\tO
Zorblax\tB-product
spoke\tO
of\tO
Ada\tO

no\tO
name\tO
at\tO
all\tO
"""
# Ada, Lovelace and Oslo are found, Zorblax is not; Ada of row 2 is found without a label. Lovelace alone was replaced.
EXPECTED = {
    "annotated_texts": 3, "annotated_words": 4, "annotated_recall": 0.75, "annotated_recall_whole": 2 / 3,
    "annotated_precision": 0.75, "annotated_kept": 0.75, "annotated_kept_whole": 2 / 3,
    "annotated_persons_recall": 1.0, "annotated_persons_recall_whole": 1.0, "annotated_persons_precision": 2 / 3,
    "annotated_persons_kept": 0.5, "annotated_persons_kept_whole": 0.0,
    "annotated_locations_recall": 1.0, "annotated_locations_recall_whole": 1.0, "annotated_locations_precision": 1.0,
    "annotated_locations_kept": 1.0, "annotated_locations_kept_whole": 1.0,
    "annotated_others_recall": 0.0, "annotated_others_recall_whole": 0.0, "annotated_others_kept": 1.0,
    "annotated_others_kept_whole": 1.0,
}  # fmt: skip


@pytest.fixture
def places(spark: SparkSession, tmp_path: Path) -> list[str]:
    """The arguments of an audit of a small table."""
    for name, rows in (("table", TABLE), ("source", SOURCE)):
        frame = spark.createDataFrame(rows, "id long, body string").repartition(3)
        frame.write.format("delta").save(str(tmp_path / name))
    return [
        str(tmp_path / "table"),
        "--against",
        str(tmp_path / "source"),
        "--columns",
        "body",
        "--row-key",
        "id",
    ]


@pytest.fixture
def sample(tmp_path: Path) -> Callable[[str | list[dict[str, Any]]], str]:
    """Write a labelled sample."""

    def write(content: str | list[dict[str, Any]]) -> str:
        text = content if isinstance(content, str) else "\n".join(map(json.dumps, content))
        (tmp_path / "sample").write_text(text, encoding="utf-8")
        return str(tmp_path / "sample")

    return write


def values(found: TableAudit) -> dict[str, float | None]:
    return {one.name: one.value for one in found.figures if one.column is None}


@pytest.mark.parametrize("form", [LABELS, CONLL], ids=["spans", "CoNLL"])
def test_figures_are_those_counted_by_hand(spark: SparkSession, places, sample, capsys, form) -> None:
    required = ["--require", "annotated_persons_kept <= 0.4", "--require", "annotated_recall >= 0.7"]
    assert main(["audit", *places, "--annotations", sample(form), *required, "--json"]) == 7
    out, err = capsys.readouterr()
    found = json.loads(out)
    written = spark.read.format("delta").load(found["metrics"]).collect()
    figures = {
        row["metric"].removeprefix("audit_"): row["value"]
        for row in written
        if row["column"] is None and row["metric"].startswith("audit_")
    }
    assert {name: value for name, value in figures.items() if name.startswith("annotated")} == EXPECTED
    assert [one["holds"] for one in found["requirements"]] == [False, True]
    # Without --internal nothing is shown of names but whether what was required holds.
    shown = {one["name"] for one in found["figures"]}
    assert "original_share" in shown
    assert set(found["withheld"]) == shown ^ set(figures) >= {"names_kept", *EXPECTED}
    assert [one["name"] for one in found["results"]] == ["kept words"]
    assert not any("name" in one for one in found["results"][0]["figures"])
    assert found["released"] == ["annotated_persons_kept <= 0.4", "annotated_recall >= 0.7"]
    assert "stayed" not in found
    said = (out + err + str(written)).lower()
    assert not any(word in said for word in SECRETS)


@pytest.mark.cluster
def test_the_words_that_stayed_most_are_shown_to_who_asks(places, monkeypatch, capsys) -> None:
    place, source = places[0], places[2]
    found = dps.audit(place, against=source, columns=["body"], row_key="id", internal=True)
    assert found.stayed == (StayedWord("ada", 2), StayedWord("oslo", 1))
    assert found.withheld == found.released == []
    monkeypatch.setattr(tallies, "MOST_STAYED", 1)
    assert main(["audit", *places, "--internal"]) == 0
    out = capsys.readouterr().out
    assert "PRIVATE TEXT  words of names that stayed most: ada 2" in out
    assert re.search(r"names_kept +75[.0]* %", out)
    assert main(["audit", *places, "--internal", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stayed"] == [{"word": "ada", "times": 2}]
    assert not any(word in json.dumps({**found, "stayed": None}).lower() for word in SECRETS)


def test_without_labelled_names_there_is_no_figure_and_the_requirement_is_broken(
    places, sample, capsys
) -> None:
    given = ["audit", *places, "--annotations", sample([{"row": 3, "spans": []}])]
    assert main([*given, "--require", "annotated_kept <= 1", "--require", "annotated_recall >= 0"]) == 7
    out = capsys.readouterr().out
    assert out.count("BROKEN") == 2
    assert main(["audit", *places, "--require", "annotated_kept <= 1"]) == 2
    assert "'annotated_kept' is no figure of this audit" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ([*LABELS, {"row": 77, "spans": []}], "1 of the 4 labelled rows of .* are not in the source: line 4; valid: rows"),
        (CONLL + "\n\n" + "Lovelace\tO\n", "1 of the 4 labelled texts of .* are not in the source: line 20; valid: texts"),
        ([{**LABELS[0], "spans": [{"start": 23, "end": 28, "kind": "x"}]}, *LABELS[1:]], "outside their texts: line 1;"),
        ([{"row": n, "spans": []} for n in range(10, 20)], "10 of the 10 .*: lines 1, 2, 3, 4, 5 and 5 more;"),
        ([{"row": "a", "spans": []}, *LABELS], "1 of the 4 labelled rows"),
    ],
)  # fmt: skip
def test_a_sample_of_other_texts_is_refused(spark: SparkSession, places, sample, content, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        dps.audit(
            places[0],
            against=places[2],
            columns=["body"],
            row_key="id",
            annotations=sample(content),
            spark=spark,
        )
    assert not any(word in str(caught.value).lower() for word in SECRETS)


@pytest.mark.cluster
@pytest.mark.parametrize("level", ["record", "token", "dataset"])
def test_tables_of_each_level_with_lists_of_texts(
    spark: SparkSession, tmp_path: Path, sample, level: str
) -> None:
    rows = [
        (1, "Mrs. Ada Lovelace called the people", ["in paris", None, "Zorblax time"], "c1"),
        (2, "the time of Zorblax", [], "c1"), (3, None, ["Robert said"], "c2"),
    ]  # fmt: skip
    schema = "id long, body string, notes array<string>, customer string"
    spark.createDataFrame(rows, schema).write.format("delta").save(str(tmp_path / "in"))
    beginning(Lexicon.default(), 300).save(tmp_path / "lexicon")
    config = parse_config({
        "input": {"path": str(tmp_path / "in")}, "columns": ["body", "notes"], "row_key": "id", "consistency": level,
        "lexicon": {"source": str(tmp_path / "lexicon")}, "mechanism": {"name": "custext", "epsilon": 2.0, "k": 5},
        "policy": {"names": {"lists": True, "person": "keep"}},
        "output": {"path": str(tmp_path / "out"), "other_columns": "keep"},
        **({"record_key": "customer"} if level == "record" else {}),
    })  # fmt: skip
    run(config, spark, key=RunKey.generate())
    labels = [
        {"row": 1, "column": "body", "spans": [{"start": 5, "end": 17, "kind": "PER"}]},
        # "in paris", a line without text, and "Zorblax time".
        {"row": 1, "column": "notes", "spans": [{"start": 3, "end": 8, "kind": "LOC"}, {"start": 10, "end": 17, "kind": "PER"}]},
        {"row": 2, "column": "notes", "spans": []},
        {"row": 3, "column": "notes", "spans": [{"start": 0, "end": 6, "kind": "PER"}]},
    ]  # fmt: skip
    found = values(
        dps.audit(
            config.output.path,
            against=config.input.path,
            config=config,
            annotations=sample(labels),
            spark=spark,
        )
    )
    # Zorblax is found by nobody; what the policy finds is masked, and the lexicon holds no other of these names.
    assert (found["annotated_texts"], found["annotated_words"]) == (4, 5)
    assert (found["annotated_persons_recall"], found["annotated_persons_recall_whole"]) == (0.75, 2 / 3)
    assert (found["annotated_locations_recall"], found["annotated_locations_precision"]) == (1.0, 1.0)
    assert found["annotated_kept"] == found["annotated_kept_whole"] == found["names_kept"] == 0.0
