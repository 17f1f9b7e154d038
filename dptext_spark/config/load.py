"""The one door to settings: read, merged, and validated in one place before a byte of data is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dptext_spark.config import checks
from dptext_spark.config.file import override, read_settings
from dptext_spark.config.limits import check_bounded
from dptext_spark.config.messages import as_settings_error, refusal
from dptext_spark.config.model import ModelConfig, RunConfig

C = TypeVar("C", bound=ModelConfig)


def load_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> RunConfig:
    """Read the settings of a run: a YAML file (None: no file) and `a.b=value` overrides.

    Raises:
        SettingsError: see :func:`parse_config` and :mod:`dptext_spark.config.file`.

    Examples:
        >>> config = dp.load_config("reviews.yaml", ["mechanism.epsilon=1.5", "consistency=record"])
        >>> config.mechanism.epsilon, config.consistency
        (1.5, 'record')
    """
    return parse_config(_read(path, overrides))


def load_model_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> ModelConfig:
    """Read what a privatizer is made of, from a file of a whole run or of these sections only.

    Raises:
        SettingsError: as :func:`load_config`.
    """
    settings = _read(path, overrides)
    of_a_run = any(name in settings for name in ("input", "columns", "output"))
    return parse_config(settings) if of_a_run else parse_model_config(settings)


def parse_config(settings: Mapping[str, Any]) -> RunConfig:
    """Validate the settings of a run.

    Raises:
        SettingsError: names every setting that is not right, what was given and what is valid.
    """
    return _agreeing(_validated(RunConfig, settings))


def parse_model_config(settings: Mapping[str, Any]) -> ModelConfig:
    """Validate the settings that a privatizer is made of.

    Raises:
        SettingsError: as :func:`parse_config`.
    """
    return _agreeing(_validated(ModelConfig, settings))


def _read(path: str | Path | None, overrides: Iterable[str]) -> dict[str, Any]:
    return override({} if path is None else read_settings(path), overrides)


def _validated(kind: type[C], settings: Mapping[str, Any]) -> C:
    check_bounded(settings)
    try:
        return kind.model_validate(dict(settings))
    except ValidationError as error:
        raise as_settings_error(error, kind) from None


def _agreeing(config: C) -> C:
    """Return the settings, if their sections agree with each other."""
    problems = [
        *checks.check_lexicons(config),
        *checks.check_importance(config),
        *checks.check_fluent(config),
        *checks.check_budgets(config),
    ]
    if isinstance(config, RunConfig):
        problems += [
            *checks.check_columns(config),
            *checks.check_rows(config),
            *checks.check_places(config),
            *checks.check_stream(config),
            *checks.check_ledger(config),
            *checks.check_required(config),
        ]
    if problems:
        raise refusal(problems) from None
    return config
