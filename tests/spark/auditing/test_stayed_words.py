"""Figures of names and the words that stayed, on real tables: counted by hand, without a word elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dptext_spark import spark as dps
from dptext_spark.audit.table_audit import StayedWord
from dptext_spark.cli.app import main
from dptext_spark.spark import pair_tables

SECRETS = ("lovelace", "zorblax", "oslo", "ada")
SOURCE = (
    (1, "We met Ada Lovelace in Oslo"), (2, "Then Zorblax spoke of Ada"), (3, "no name at all"), (4, None),
    (5, "Hello Ada Ada Zorblax there"),
)  # fmt: skip
TABLE = (
    (1, "We met Ada cat in Oslo"), (2, "Then Zorblax spoke of Ada"), (3, "no dog at all"), (4, None),
    (5, "Hello Ada Ada Zorblax"),
)  # fmt: skip


@pytest.fixture
def places(spark, tmp_path: Path) -> list[str]:
    for name, rows in (("table", TABLE), ("source", SOURCE)):
        frame = spark.createDataFrame(rows, "id long, body string").repartition(3)
        frame.write.format("delta").save(str(tmp_path / name))
    table, source = (str(tmp_path / name) for name in ("table", "source"))
    return [table, "--against", source, "--columns", "body", "--row-key", "id"]


@pytest.mark.long
def test_figures_are_those_counted_by_hand(spark, places, capsys) -> None:
    required = ["--require", "persons_kept <= 0.4", "--require", "names_kept >= 0.7"]
    assert main(["audit", *places, *required, "--json"]) == 7
    out, err = capsys.readouterr()
    found = json.loads(out)
    written = spark.read.format("delta").load(found["metrics"]).collect()
    named = [row for row in written if row["column"] is None and row["metric"].startswith("audit_")]
    figures = {row["metric"].removeprefix("audit_"): row["value"] for row in named}
    # Ada, Lovelace, Oslo and Ada are found, of which Lovelace was replaced; row 5 could not be compared.
    assert (figures["names_found"], figures["names_kept"]) == (4, 0.75)
    assert [one["holds"] for one in found["requirements"]] == [False, True]
    # Without --internal nothing is shown of names but whether what was required holds.
    shown = {one["name"] for one in found["figures"]}
    assert "original_share" in shown
    assert set(found["withheld"]) == shown ^ set(figures) >= {"names_kept", "persons_kept"}
    assert [one["name"] for one in found["results"]] == ["kept words"]
    assert not any("name" in one for one in found["results"][0]["figures"])
    assert found["released"] == ["persons_kept <= 0.4", "names_kept >= 0.7"]
    assert "stayed" not in found
    said = (out + err + str(written)).lower()
    assert not any(word in said for word in SECRETS)


@pytest.mark.cluster
def test_the_words_that_stayed_most_are_shown_to_who_asks(places, monkeypatch, capsys) -> None:
    place, source = places[0], places[2]
    found = dps.audit(place, against=source, columns=["body"], row_key="id", internal=True)
    assert found.stayed == (StayedWord("ada", 2), StayedWord("oslo", 1))
    assert found.withheld == found.released == []
    monkeypatch.setattr(pair_tables, "MOST_STAYED", 1)
    assert main(["audit", *places, "--internal", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stayed"] == [{"word": "ada", "times": 2}]
    assert not any(word in json.dumps({**found, "stayed": None}).lower() for word in SECRETS)
