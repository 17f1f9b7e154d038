"""The behaviour that is kept: models and what comes out under them, and the help of each command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.main import get_command

from dptext_spark.cli.app import app
from dptext_spark.mechanisms import MECHANISMS
from tests.frozen import behaviour

KEPT = json.loads(behaviour.MODELS.read_text(encoding="utf-8"))


def test_all_mechanisms_at_all_levels_are_kept() -> None:
    assert set(behaviour.PARAMETERS) == set(MECHANISMS)
    assert set(KEPT) == {*behaviour.CASES, "glove"}
    of_mechanisms = {name: KEPT[name] for name in MECHANISMS}
    assert {tuple(one["level"] for one in kept) for kept in of_mechanisms.values()} == {behaviour.LEVELS}
    texts = [one["texts"] for kept in KEPT.values() for one in kept]
    assert len(set(texts)) == len(texts)  # each is a law, a level or a policy of its own


# Of `make test`: two laws, the packaged lexicon and a policy. The others are long.
QUICK = ("custext", "tem", "packaged lexicon", "identifiers: none")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in behaviour.CASES],
)
def test_models_and_what_comes_out_are_as_they_were(name: str) -> None:
    assert [behaviour.described(one) for one in behaviour.CASES[name]()] == KEPT[name]


def test_a_lexicon_from_text_is_read_as_it_was(shared_data: Path) -> None:
    assert [behaviour.described(one) for one in behaviour.of_glove(shared_data)] == KEPT["glove"]


def test_the_help_of_each_command_is_as_it_was() -> None:
    commands = get_command(app).commands
    of_lexicon = {f"lexicon {name}" for name, each in commands["lexicon"].commands.items() if not each.hidden}
    assert {*behaviour.COMMANDS} == {"", *commands, *of_lexicon}
    assert behaviour.help_of_all() == behaviour.HELP.read_text(encoding="utf-8")
