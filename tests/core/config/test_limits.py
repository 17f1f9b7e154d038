"""Settings that are too many, too deep or hold themselves are refused at once, by name."""

from __future__ import annotations

import cProfile
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dptext_spark.config.file import override
from dptext_spark.config.load import load_model_config, parse_config, parse_model_config
from dptext_spark.config.values import MOST_COLUMNS
from dptext_spark.encoder.weights import read_json
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.report.facts import read_results

RUN: dict[str, Any] = {"input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}}
ITSELF: dict[str, Any] = {"policy": {}}
ITSELF["policy"]["policy"] = ITSELF
LIST: list[Any] = []
LIST.append(LIST)


MOST_CALLS = 4_000_000  # of functions; reading as many values as a file may hold takes half of them
MOST_SECONDS = 30  # of this process: far more than any takes, far less than work in the square of its text


@contextmanager
def at_once() -> Iterator[None]:
    """Bound the calls, which no busy machine changes; the seconds are for C code, whose work is no call."""
    profile = cProfile.Profile()
    began = time.process_time()
    with profile:
        yield
    assert sum(one.callcount for one in profile.getstats()) < MOST_CALLS
    assert time.process_time() - began < MOST_SECONDS


def laughs(levels: int, kind: str) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, levels):
        inside = [f"*a{level - 1}"] * 10
        named = [f"k{i}: {one}" for i, one in enumerate(inside)]
        held = f"[{', '.join(inside)}]" if kind == "lists" else f"{{{', '.join(named)}}}"
        lines.append(f"a{level}: &a{level} {held}")
    return "\n".join(lines)


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (laughs(9, "lists"), "entries of lists|names and values"),
        (laughs(9, "mappings"), "names of settings"),
        ("policy: &p\n  oov: mask\n  more: *p\n", "levels of sections and lists inside each other"),
        ("columns: &c [*c]\n", "levels of sections and lists inside each other"),
        ("\n".join(f"name{i}: 1" for i in range(300_000)), "characters"),
        ("\n".join(f"n{i}: 1" for i in range(30_000)), "names and values"),
        ("\n".join(f"n{i}: 1" for i in range(4_000)), "names of settings"),
        (f"columns: [{', '.join(f'c{i}' for i in range(10_000))}]", "names and values"),
        ("a: " + "[" * 100_000, "levels of sections and lists inside each other"),
        ("[" * 100_000 + "]" * 100_000, "levels of sections and lists inside each other"),
        ("a: '" + "x" * 5_000_000 + "'", "characters"),
    ],
    ids=lambda value: value[:24],
)
def test_a_file_that_no_run_needs(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    said = f"settings.yaml', .*({said}).*. Use at most"
    with at_once(), pytest.raises(SettingsError, match=said) as caught:
        load_model_config(file)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"columns": [f"c{i}" for i in range(10_000)]}, "columns: 10,000 is not valid. Choose at most 1,000"),
        ({"output": {"path": "/o", "partition_by": ["c"] * 10_000}}, "output.partition_by: 10,000"),
        ({f"name{i}": i for i in range(300_000)}, "or more names of settings. Use at most 1,000"),
        ({"mechanism": {f"name{i}": i for i in range(900)}}, "mechanism: 880 more names"),
        ({"run": {f"name{i}": i for i in range(900)}}, "900 settings are not valid"),
        ({"x" * 1_000_000: 1}, "x{200}\\.\\.\\.: no such setting"),
        ({"mechanism": {"x" * 1_000_000: 1}}, "mechanism.x{200}: no such setting"),
        ({"columns": [["c"] * 900] * 1_000}, "columns"),
        ({"policy": {"stop_word_list": [["w"] * 1_000] * 1_000}}, "entries of lists"),
        (ITSELF, "levels of sections and lists inside each other"),
        ({"columns": LIST}, "levels of sections and lists inside each other"),
        ({"input": {"path": "/in", "options": ITSELF}}, "levels of sections and lists inside each other"),
    ],
    ids=lambda value: (value if isinstance(value, str) else "+".join(value))[:24],
)
def test_a_dictionary_that_no_run_needs(more: dict[str, Any], said: str) -> None:
    with at_once(), pytest.raises(SettingsError, match=said) as caught:
        parse_config(RUN | more)
    assert len(str(caught.value)) < 20_000


def test_as_many_columns_as_are_allowed() -> None:
    names = [f"c{i}" for i in range(MOST_COLUMNS)]
    with at_once():
        assert len(parse_config(RUN | {"columns": names}).columns) == MOST_COLUMNS
    with at_once(), pytest.raises(SettingsError, match="named twice"):
        parse_config(RUN | {"columns": [*names[1:], names[1]]})


def test_long_lists_of_words_are_no_trouble() -> None:
    words = [f"word{i}" for i in range(100_000)]
    assert parse_model_config({"policy": {"stop_word_list": words}}).policy.stop_word_list == tuple(words)


def test_what_stands_in_two_places_may_be_written_once(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("policy: &p {oov: keep}\nlexicon: &l {source: default}\nrun: {id: &i x}\n")
    assert load_model_config(file).policy.oov == "keep"


def test_overrides_are_bounded_too() -> None:
    with at_once():
        found = override({}, ["columns=" + "[" * 100_000, "policy=&a [*a]"])
    assert found["columns"].startswith("[[[")
    assert found["policy"] == "&a [*a]"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])
def test_brackets_are_no_manifest(tmp_path: Path, text: str) -> None:
    Lexicon(Vocabulary.of(["a", "b"]), np.eye(2, dtype=np.float32)).save(tmp_path / "lexicon")
    (manifest,) = (tmp_path / "lexicon").glob("*.json")
    assert json.loads(manifest.read_text())
    manifest.write_text(text)
    with at_once():
        with pytest.raises(DataError, match="is damaged"):
            Lexicon.open(tmp_path / "lexicon")
        with pytest.raises(DataError, match="cannot be read"):
            read_json(manifest)
        with pytest.raises(DataError, match="cannot be read as JSON"):
            read_results([manifest])
