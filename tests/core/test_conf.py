"""Every file in conf/ is loaded as a user would load it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from docs.generate.references import defaults, flat
from dptext_spark.config.file import read_settings
from dptext_spark.config.load import STYLE_SECTIONS, load_config, load_model_config, parse_model_config
from dptext_spark.config.sections import STYLES
from dptext_spark.errors import SettingsError
from dptext_spark.importance.levels import Importance
from dptext_spark.mechanisms import CusText

CONF = Path(__file__).resolve().parents[2] / "conf"
FILES = sorted(CONF.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_each_file_is_valid_and_begins_with_what_it_is_for(file: Path) -> None:
    (load_model_config if file.stem in STYLES else load_config)(file)
    assert file.read_text(encoding="utf-8").startswith("# ")


@pytest.mark.parametrize("file", [*CONF.rglob("settings.yaml"), *FILES], ids=lambda file: file.stem)
def test_each_run_names_its_ledger(file: Path) -> None:
    settings = read_settings(file)
    if "output" in settings:
        assert {"path", "table"} & set(settings["ledger"])


def test_the_examples_are_what_they_say() -> None:
    levels = [load_config(CONF / f"{name}.yaml").consistency for name in ("record", "dataset")]
    assert levels == ["record", "dataset"]
    assert load_config(CONF / "ledger.yaml").ledger.limit == 4.0
    papers = load_model_config(CONF / "papers.yaml")
    assert (papers.policy.tokenizer, papers.policy.stop_words) == ("whitespace", "draw")
    assert papers.mechanism == CusText(mapping="conservative", metric="euclidean", remainder="own")
    importance = load_config(CONF / "importance.yaml")
    assert importance.mechanism == replace(papers.mechanism, epsilon=3.0)  # type: ignore[type-var]
    assert importance.importance == Importance(
        "attention", "top", 30, "aggressive", rank_punctuation=True, model="/data/encoder"
    )
    modes = [load_config(CONF / f"{name}.yaml").mode for name in ("incremental", "streaming")]
    assert modes == ["incremental", "streaming"]
    assert load_config(CONF / "csv.yaml").input.options == {"header": "true", "sep": ";"}


@pytest.mark.parametrize("name", STYLES)
def test_a_style_says_how_and_of_no_table(name: str) -> None:
    assert set(read_settings(CONF / f"{name}.yaml")) <= {"style", *STYLE_SECTIONS}
    assert load_model_config(CONF / f"{name}.yaml") == parse_model_config({"style": name})
    with pytest.raises(SettingsError, match=r"input\.path, columns and output\.path: not set"):
        load_config(CONF / f"{name}.yaml")
    given = ["input.path=/in", "columns=[body]", "row_key=id", "output.path=/out"]
    assert load_config(CONF / f"{name}.yaml", given).columns == ("body",)


@pytest.mark.parametrize("name", STYLES)
def test_the_command_in_a_style_is_one_that_runs(name: str) -> None:
    said = (CONF / f"{name}.yaml").read_text(encoding="utf-8").replace("\\\n#", " ")
    (line,) = re.findall(r"^#   dptext run (.*)$", said, flags=re.MULTILINE)
    assert line.startswith(f"conf/{name}.yaml ")
    assert load_config(CONF / f"{name}.yaml", re.findall(r"--set (\S+)", line)).output.path is not None


def test_settings_that_share_a_ledger_agree_on_its_limit() -> None:
    """The ledger keeps one limit for an input: a second file that named another would be refused, or bound itself by less."""
    named: dict[tuple[str, str], set[float]] = {}
    for file in (one for one in FILES if one.stem not in STYLES):
        config = load_config(file)
        if config.ledger.path is not None and config.ledger.limit is not None:
            place = (config.ledger.path, str(config.input.path or config.input.table))
            named.setdefault(place, set()).add(config.ledger.limit)
    assert named
    assert all(len(limits) == 1 for limits in named.values()), named


def test_the_reference_names_every_setting_with_its_default() -> None:
    assert flat(read_settings(CONF / "reference.yaml")) == defaults()


def test_sparks_defaults_name_delta_and_no_secret() -> None:
    lines = (CONF / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    settings = dict(line.split(None, 1) for line in lines if line.strip() and not line.startswith("#"))
    assert settings["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"
    assert settings["spark.sql.extensions"] == "io.delta.sql.DeltaSparkSessionExtension"
    assert settings["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert all(re.fullmatch(r"spark\.[\w.]+", name) for name in settings)
    assert not any("key" in name or "secret" in name for name in settings)
