"""Each refused pair of features: an error of the settings that names the field, before anything is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.errors import SettingsError
from tests.spark.pairs.table import LEVELS, REFUSED, REFUSED_DETAILS, Refused, Row, merged, settings_of

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
