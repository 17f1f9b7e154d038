"""Every pair of features is run or refused, and the settings themselves say which."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.errors import SettingsError
from dptext_spark.mechanisms import MECHANISMS
from tests.spark.pairs.table import FEATURES, LEVELS, REFUSED, REFUSED_DETAILS, ROWS, Row, settings_of

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
    assert set().union(*(entry.features for entry in quick)) == set(FEATURES) - {BY_SESSION}
    assert not [entry for entry in quick if BY_SESSION in entry.features]
