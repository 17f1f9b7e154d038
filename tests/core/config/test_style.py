"""A style and what settings name beside it: which of them decides, and what does not go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dptext_spark
from dptext_spark.config.load import load_config, load_model_config, of_style, parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import STYLES
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import TEM, CusText
from dptext_spark.text.names.search import NameSearch
from tests.core.config import test_model

LEAST: dict[str, Any] = {**test_model.LEAST, "row_key": "id"}
PSEUDONYMS = NameSearch(lists=True, person="pseudonym", location="pseudonym")


def styled(style: str, **sections: Any) -> RunConfig:
    return parse_config({**LEAST, "style": style, **sections})


def refused(style: str, **sections: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        styled(style, **sections)
    return str(caught.value)


def read(folder: Path, *overrides: str, **sections: Any) -> RunConfig:
    (folder / "s.yaml").write_text(json.dumps({**LEAST, **sections}))
    return load_config(folder / "s.yaml", overrides)


def test_settings_of_a_file_are_balanced_unless_they_name_a_style(tmp_path: Path) -> None:
    assert read(tmp_path).style == load_model_config().style == "balanced"
    assert read(tmp_path, "style=null").style == "balanced"
    assert read(tmp_path).mechanism == styled("balanced").mechanism == load_model_config().mechanism
    assert read(tmp_path).policy.names == PSEUDONYMS
    assert read(tmp_path, style="strict") == styled("strict") == read(tmp_path, "style=strict")
    assert parse_config(LEAST).style is None
    assert parse_config(LEAST).mechanism == CusText()


def test_a_mechanism_and_a_search_for_names_replace_the_whole_section() -> None:
    # No remap, and published.
    assert styled("balanced", mechanism={"epsilon": 3.0}).mechanism == CusText(epsilon=3.0)
    assert styled("strict", mechanism={"name": "tem", "epsilon": 3.0}).mechanism == TEM(epsilon=3.0)
    assert styled("balanced", policy={"names": {"lists": True}}).policy.names == NameSearch(lists=True)
    assert styled("balanced", policy={"names": "none"}).policy.names == NameSearch()
    assert styled("balanced", policy={"names": None}, mechanism=None) == styled("balanced")


def test_other_keys_are_merged_one_by_one() -> None:
    policy = styled("strict", policy={"case": "carry", "identifiers": {"email": "fake"}}).policy
    assert (policy.case, policy.numbers, policy.gaps) == ("carry", "mask", "normalise")
    assert policy.names.lists
    assert (policy.identifiers.email, policy.identifiers.date) == ("fake", "mask")
    config = styled("balanced", consistency="token", policy={"stop_words": "draw"})
    assert (config.consistency, config.policy.stop_words) == ("token", "draw")
    assert config.policy.names == PSEUDONYMS


@pytest.mark.parametrize(
    ("style", "sections", "named"),
    [
        ("balanced", {"mechanism": {"fluent": True}}, "consistency: record"),
        ("balanced", {"lexicon": {"source": "/a.vec", "more": ["/b.vec"]}}, "mechanism"),
        ("balanced", {"importance": {"percent": 30, "strategy": "aggressive"}}, "consistency: record"),
    ],
)
def test_a_conflict_names_the_style(style: str, sections: dict[str, Any], named: str) -> None:
    said = refused(style, **sections)
    assert f"style {style!r}" in said
    assert named in said.split(f"style {style!r}")[1]


def test_what_is_wrong_by_itself_is_not_blamed_on_the_style() -> None:
    assert "style" not in refused("balanced", policy={"case": "title"})
    assert "style" not in refused("balanced", mechanism={"epsilon": -1})
    assert "conflicts" not in refused("balanced", polcy={})
    with pytest.raises(SettingsError, match=r"^style: 'strickt' is not valid. .* Did you mean 'strict'"):
        styled("strickt")


def test_half_a_mechanism_does_not_become_another_one() -> None:
    said = refused("strict", mechanism={"epsilon": 5.0})
    assert said.startswith("mechanism.name: not set")


@pytest.mark.parametrize("style", STYLES)
def test_what_is_recorded_holds_the_style_and_all_of_its_sections(style: str) -> None:
    recorded = styled(style).as_dict()
    assert recorded["style"] == style
    assert recorded["mechanism"]["name"] == of_style(style)["mechanism"]["name"]
    assert {"stop_words", "oov", "numbers", "identifiers"} <= set(recorded["policy"])
    assert parse_config(recorded) == styled(style)
    assert parse_config({**recorded, "style": None}).policy == styled(style).policy


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("names", ["none", {"lists": False}])
def test_a_record_without_a_search_for_names_is_read_again_without_one(style: str, names: Any) -> None:
    config = styled(style, policy={"names": names})
    recorded = json.loads(json.dumps(config.as_dict()))
    assert recorded["policy"]["names"] == "none"
    again = parse_config(recorded)
    assert not again.policy.names
    assert again.policy == config.policy
    assert again.as_dict() == recorded
    plain = parse_config({**recorded, "style": None})
    assert plain.spec() == config.spec()  # one model, with the style and without it


@pytest.mark.parametrize("row_key", [None, {}, {"none": "yes"}, {"none": "accept", "more": 1}])
def test_a_run_without_a_row_key_is_refused_until_that_is_accepted(tmp_path: Path, row_key: Any) -> None:
    with pytest.raises(SettingsError, match=r"^row_key: .*unique column.*\{none: accept\}"):
        read(tmp_path, row_key=row_key)
    assert read(tmp_path, row_key={"none": "accept"}).row_key is None
    least = {name: value for name, value in LEAST.items() if name != "row_key"}
    (tmp_path / "s.yaml").write_text(json.dumps(least))
    assert load_config(tmp_path / "s.yaml", ["row_key.none=accept"]).row_key is None
    with pytest.raises(SettingsError, match=r"row_key: (not set|.* is not valid)"):
        load_config(tmp_path / "s.yaml")


def test_settings_made_by_hand_are_refused() -> None:
    """The public surface has one door to the settings of a run: `load_config`."""
    for settings in (LEAST, {**LEAST, "row_key": None}, {**LEAST, "style": "balanced"}):
        with pytest.raises(SettingsError, match=r"^RunConfig: .*Use load_config"):
            RunConfig(**settings)
        with pytest.raises(SettingsError, match=r"^RunConfig: .*Use load_config"):
            RunConfig.model_validate(settings)
    assert load_config(overrides=["input.path=/in", "columns=[body]", "row_key=id", "output.path=/out"]).style
    assert not hasattr(dptext_spark, "parse_config")


@pytest.mark.parametrize("row_key", [None, {"none": "accept"}])
def test_a_stream_needs_a_row_key_whatever_is_accepted(tmp_path: Path, row_key: Any) -> None:
    with pytest.raises(SettingsError, match=r"row_key: not set, but mode incremental needs a unique column"):
        read(tmp_path, row_key=row_key, mode="incremental", key={"file": "/k"})
