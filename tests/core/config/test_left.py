"""Settings that left: one error for all of them, which says what to do instead."""

from __future__ import annotations

import pytest

from dptext_spark.config.load import load_model_config, parse_config
from dptext_spark.config.messages import _LEFT
from dptext_spark.errors import SettingsError


@pytest.mark.parametrize("path", _LEFT)
def test_the_error_names_the_setting_and_what_to_do_instead(path: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_model_config(None, [f"{path}=lexicon"])
    assert str(caught.value) == f"{path}: no such setting; {_LEFT[path]}."


def test_all_that_left_are_named_at_once_whatever_else_is_wrong() -> None:
    with pytest.raises(SettingsError, match=r"^policy\.segment: no such setting; put spaces"):
        parse_config({"columns": 3, "policy": {"segment": "none"}})
