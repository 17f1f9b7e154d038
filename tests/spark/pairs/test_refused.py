"""Each refused pair of features: an error of the settings that names the field, before anything is read."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import MECHANISMS
from tests.spark.pairs.table import (
    FEATURES,
    LEVELS,
    REFUSED,
    REFUSED_DETAILS,
    ROWS,
    Refused,
    Row,
    merged,
    settings_of,
)

SESSION = "a stream on Connect"  # tests/spark/pairs/test_connect.py
BY_SETTINGS = {name: entry for name, entry in (REFUSED | REFUSED_DETAILS).items() if name != SESSION}


def refused_by(entry: Refused, folder: Path) -> SettingsError:
    features = entry.pair if entry.pair & set(LEVELS) else entry.pair | {"token"}
    settings = settings_of(Row(features), folder, folder)
    for name, value in entry.more.items():
        replaced = name in ("importance", "mechanism", "key")
        whole = replaced or not isinstance(value, dict)
        settings[name] = value if whole else merged(settings.get(name, {}), value)
    with pytest.raises(SettingsError) as caught:
        parse_config(settings)
    return caught.value


@pytest.mark.parametrize("name", BY_SETTINGS)
def test_the_field_is_named_before_anything_is_read(name: str, tmp_path: Path) -> None:
    entry = BY_SETTINGS[name]
    error = refused_by(entry, tmp_path)
    assert fields_of(error) == {entry.field}
    assert error.exit_code == 2
    assert not any(tmp_path.iterdir())


def fields_of(error: SettingsError) -> set[str]:
    """Return the fields that an error names: each line begins with one."""
    lines = str(error).split("\n")
    named = [line.removeprefix("config: ").strip(" -").split(":")[0] for line in lines]
    return {name for name in named if name}


ALL = set(map(frozenset, combinations(FEATURES, 2))) - set(map(frozenset, combinations(LEVELS, 2)))
RUN = set().union(*(entry.pairs for entry in ROWS.values()))
# What only a session can tell, or what is no part of the settings.
BY_SESSION = "connect"


def with_level(pair: frozenset[str]) -> Row:
    """Return the settings of two features; at token level, which all but other levels go with."""
    return Row(pair if pair & set(LEVELS) else pair | {"token"})


def test_every_pair_is_run_or_refused() -> None:
    refused = {entry.pair for entry in REFUSED.values()}
    assert refused | RUN == ALL
    assert not refused & RUN


def test_what_is_refused_in_detail_is_of_supported_pairs() -> None:
    assert {entry.pair for entry in REFUSED_DETAILS.values()} <= RUN


@pytest.mark.parametrize("pair", sorted(map(" ".join, map(sorted, ALL))))
def test_the_settings_agree(pair: str, tmp_path: Path) -> None:
    features = frozenset(pair.split())
    try:
        parse_config(settings_of(with_level(features), tmp_path, tmp_path))
        accepted = True
    except SettingsError:
        accepted = False
    assert accepted == (features in RUN or BY_SESSION in features)


def test_every_mechanism_draws_in_one_row() -> None:
    named = {entry.more.get("mechanism", {}).get("name", "custext") for entry in ROWS.values()}
    assert named == set(MECHANISMS)


def test_how_many_run_in_each_target() -> None:
    quick = [entry for entry in ROWS.values() if entry.quick]
    assert 25 <= len(ROWS) <= 32
    assert len(quick) >= 8
    assert set().union(*(entry.features for entry in quick)) == set(FEATURES)
