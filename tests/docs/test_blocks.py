"""What stands in the blocks of README and pages: settings are valid, commands are parsed, and those that need no data run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.__main__ import arguments
from docs.generate.references import LEAST
from docs.generate.references import commands as of_the_command_line
from dptext_spark.audit import calibrate
from dptext_spark.cli.app import main
from dptext_spark.config.load import parse_config
from tests.docs.pages import CHECKOUT, README, WRITTEN, blocks, commands, name_of, text

PAGES = [file for file in WRITTEN if blocks(file, "yaml")]


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    (tmp_path / "reviews.yaml").write_text(blocks(README, "yaml")[0], encoding="utf-8")
    return tmp_path / "reviews.yaml"


def with_settings(words: list[str], settings: Path) -> list[str]:
    return [str(settings) if word == "reviews.yaml" else word for word in words if word != "--dry-run"]


@pytest.mark.parametrize("file", PAGES, ids=name_of)
def test_settings_are_valid(file: Path) -> None:
    for block in blocks(file, "yaml"):
        lines = block.splitlines()
        # Keys stand below each other, as choices; all else is one document, whole or a part of one.
        alone = lines if all(line.startswith("key:") for line in lines) else [block]
        for part in alone:
            given: dict[str, Any] = yaml.safe_load(part)
            sensitive = re.search(r"\{file: (\S+?)\}", part) if "santext" in part else None
            if sensitive:
                continue  # its list of words is a file of the user's: the next test has one
            assert parse_config({**LEAST, "style": "balanced", **given}).columns


def test_a_list_of_sensitive_words_is_a_file(tmp_path: Path) -> None:
    (block,) = [one for one in blocks(CHECKOUT / "docs/guide/mechanism.md", "yaml") if "sensitive" in one]
    words = tmp_path / "sensitive.txt"
    words.write_text("sister\nlondon\n", encoding="utf-8")
    given = yaml.safe_load(block.replace("sensitive.txt", str(words)))
    assert parse_config({**LEAST, **given}).mechanism.name == "santext"


def test_the_settings_of_whole_jobs_have_the_same_columns() -> None:
    every = [yaml.safe_load(block) for file in PAGES for block in blocks(file, "yaml")]
    whole = [given for given in every if "output" in given and "input" in given]
    assert len(whole) >= 4
    assert {parse_config(given).columns for given in whole} == {("title", "body")}


def test_every_command_is_one_that_the_command_line_takes() -> None:
    known = dict(of_the_command_line())
    assert len(commands("dptext")) > 10
    for page, words in commands("dptext"):
        size = 2 if words[0] == "lexicon" else 1
        name, rest = " ".join(words[:size]), words[size:]
        with known[name].make_context(name, [word for word in rest if word not in ("--full", "--json")]):
            pass  # an unknown option, or a missing argument, is an error
        assert page


def test_commands_in_sentences_exist(capsys: pytest.CaptureFixture[str]) -> None:
    known = {name.split()[0] for name, _ in of_the_command_line()}
    pages = [" ".join(file.read_text(encoding="utf-8").split()) for file in WRITTEN]
    said = {word for page in pages for word in re.findall(r"`dptext ([a-z]+)\b", page)}
    assert said <= known
    assert said | {words[0] for _, words in commands("dptext")} == known
    for name in said:
        assert main([name, "--help"]) == 0
    capsys.readouterr()


def test_targets_scripts_extras_and_sections_exist() -> None:
    makefile, project = text("Makefile"), text("pyproject.toml")
    for file in (*WRITTEN, CHECKOUT / "CONTRIBUTING.md", CHECKOUT / "SECURITY.md"):
        page = file.read_text(encoding="utf-8")
        for target in re.findall(r"(?:`|^)make ([a-z][a-z-]+)", page, flags=re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), (file.name, target)
        for extras in re.findall(r"pip install '\.\[([\w,]+)\]'", page):
            for extra in extras.split(","):
                assert re.search(rf"^{extra} = \[", project, flags=re.MULTILINE), (file.name, extra)
        for section in re.findall(r"python -m benchmarks (\w+)", page):
            assert arguments([section]).sections == [section]
        for path in re.findall(r"`((?:conf|jobs|docs|dptext_spark|tests|benchmarks)/[\w/.-]+)`", page):
            assert "NAME" in path or (CHECKOUT / path).exists(), (file.name, path)
        for job in re.findall(r"spark-submit (jobs/\w+\.py)", page):
            assert (CHECKOUT / job).is_file()


@pytest.mark.long
def test_the_search_for_an_epsilon_finds_one_and_audits_can_be_planned(settings, capsys, monkeypatch) -> None:
    monkeypatch.setitem(calibrate.__kwdefaults__, "steps", 4)
    searches = [words for _, words in commands("dptext") if words[0] == "calibrate"]
    searches = [words for words in searches if "--public" not in words]
    audits = [words for _, words in commands("dptext") if words[0] == "audit"]
    assert (len(searches), len(audits)) == (1, 4)
    assert main(with_settings(searches[0], settings)) == 0
    assert [main([*with_settings(words, settings), "--dry-run"]) for words in audits] == [0] * 4
    printed = " ".join(capsys.readouterr().out.split())
    limits = ("N_w max <= 0.5", "original_share <= 0.4", "accuracy_private_private >= 0.7")
    assert [limit for limit in limits if limit not in printed] == []
