"""How the packaged lists of names are made: shares of people and counts of words decide the class of a name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dptext_spark.errors import SettingsError
from tools.names import build

SOURCES = {
    "dist.male.first": "JAMES 3.318 3.318 1\nWILL 0.010 3.328 2\n",
    "dist.female.first": "MARY 2.629 2.629 1\nWILL 0.002 2.631 2\n",
    "dist.all.last": "SMITH 1.006 1.006 1\nOF 0.001 1.007 2\n",
    "cities15000.json": json.dumps(
        {"1": {"name": "Oslo", "population": 9}, "2": {"name": "New York", "population": 1}}
    ),
    "countries.json": json.dumps({"TR": {"name": "Turkey"}}),
    "us_states.json": json.dumps({"OH": {"name": "Ohio"}}),
    "frequency_dictionary_en_82_765.txt": "of 900\nwill 90\nmary 1\nsmith 1\nturkey 8\n",
}


def test_the_lists_have_names_and_classes(tmp_path: Path) -> None:
    for name, text in SOURCES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "out").mkdir()
    build(tmp_path, tmp_path / "out")
    lists = {file.stem: file.read_text().splitlines() for file in (tmp_path / "out").iterdir()}
    assert lists["given"] == ["James 3", "Mary 4", "Will 1"]
    assert lists["surname"] == ["Smith 3", "Of 1"]
    assert lists["city"] == ["Oslo 3", "New York 3"]
    assert {"Turkey 2", "Ohio 3", "England 3"} <= set(lists["region"])


def test_a_source_that_lacks(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="frequency_dictionary"):
        build(tmp_path, tmp_path)
