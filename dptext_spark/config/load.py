"""The one door to settings: read, merged with their style, and validated in one place before a byte of data is read.

A style is a file of conf/ with the sections of :data:`STYLE_SECTIONS`. Where settings name `mechanism` or `policy.names`, these
replace the style's whole section; of the other sections keys are merged one by one, and those of the settings win.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dptext_spark.config import checks
from dptext_spark.config.file import override, read_settings
from dptext_spark.config.messages import as_settings_error, check_bounded, check_left, refusal
from dptext_spark.config.model import STREAMS, ModelConfig, RunConfig
from dptext_spark.config.sections import STYLES
from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.mechanisms import CusText
from dptext_spark.runtime.paths import folder_of

STYLE_SECTIONS = ("consistency", "mechanism", "policy")  # what a style decides
WHOLE = ("mechanism", "names")  # sections of it that are replaced, and not merged
C = TypeVar("C", bound=ModelConfig)


def load_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> RunConfig:
    """Read the settings of a run: a YAML file (None: no file) and `a.b=value` overrides. They have a style and a row key.

    Raises:
        SettingsError: see :func:`parse_config` and :mod:`dptext_spark.config.file`.

    Examples:
        >>> config = dp.load_config("reviews.yaml", ["mechanism.epsilon=1.5", "consistency=record"])
        >>> config.mechanism.epsilon, config.consistency
        (1.5, 'record')
    """
    settings = _read(path, overrides)
    if settings.get("row_key") is None and settings.get("mode") not in STREAMS:  # which always need one
        settings["row_key"] = {}
    return parse_config(settings)


def load_model_config(path: str | Path | None = None, overrides: Iterable[str] = ()) -> ModelConfig:
    """Read what a privatizer is made of, from a file of a whole run or of these sections only.

    Raises:
        SettingsError: as :func:`load_config`.
    """
    settings = _read(path, overrides)
    of_a_run = any(name in settings for name in ("input", "columns", "output"))
    return parse_config(settings) if of_a_run else parse_model_config(settings)


def parse_config(settings: Mapping[str, Any]) -> RunConfig:
    """Validate the settings of a run; without a `style`, mechanism, policy and consistency have their own defaults.

    Raises:
        SettingsError: names every setting that is not right, what was given and what is valid.
    """
    return _by_style(RunConfig, settings)


def parse_model_config(settings: Mapping[str, Any]) -> ModelConfig:
    """Validate the settings that a privatizer is made of.

    Raises:
        SettingsError: as :func:`parse_config`.
    """
    return _by_style(ModelConfig, settings)


def of_style(style: str) -> dict[str, Any]:
    """Return the sections that a style decides.

    Raises:
        SettingsError: an unknown style.
        DataError: conf/ is not installed with the package.
    """
    require_choice("style", style, STYLES)
    settings = read_settings(folder_of("conf") / f"{style}.yaml")
    return {name: settings[name] for name in STYLE_SECTIONS if name in settings}


def _read(path: str | Path | None, overrides: Iterable[str]) -> dict[str, Any]:
    settings = override({} if path is None else read_settings(path), overrides)
    if settings.get("style") is None:
        settings["style"] = STYLES[0]
    return settings


def _by_style(kind: type[C], settings: Mapping[str, Any]) -> C:
    """Validate settings with the sections of their style; what does not go with these names the style."""
    check_left(settings)
    style = settings.get("style")
    if not isinstance(style, str) or style not in STYLES:  # none, or one that is refused
        return _agreeing(_validated(kind, settings))
    check_bounded(settings)
    sections = of_style(style)
    mechanism = settings.get("mechanism")
    if (
        isinstance(mechanism, Mapping)
        and "name" not in mechanism
        and sections["mechanism"]["name"] != CusText.name
    ):
        raise SettingsError(
            f"mechanism.name: none given with style {style!r}, whose mechanism {sections['mechanism']['name']!r} this section "
            f"replaces; valid: mechanism with its name, or style: {STYLES[0]}."
        )
    try:
        return _agreeing(_validated(kind, _merged(sections, settings)))
    except SettingsError as error:
        without, decided = _refused(kind, settings), settings.get("mechanism") is None
        new = [
            line.strip() not in without or (decided and "mechanism" in line)
            for line in str(error).splitlines()
        ]
        if not any(new):
            raise
        own = [
            name
            for name in sections
            if not isinstance(sections[name], Mapping) and settings.get(name) is None
        ]
        said = ", ".join(
            [*(f"{name}: {sections[name]}" for name in own), *({"mechanism"} if decided else ()), "policy"]
        )
        raise SettingsError(
            f"{error}\n  This does not go with style {style!r}, which decides what the settings do not name: {said}. Valid: "
            f"these by name, or another style of {', '.join(STYLES)}."
        ) from None


def _merged(sections: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with what a style says beside them; where both are sections their keys are merged."""
    merged = {
        **sections,
        **{name: value for name, value in settings.items() if name not in sections or value is not None},
    }
    for name in sections:
        both = (sections[name], merged[name])
        if name not in WHOLE and all(isinstance(section, Mapping) for section in both):
            merged[name] = _merged(*both)
    return merged


def _refused(kind: type[C], settings: Mapping[str, Any]) -> str:
    """Return why settings without their style are refused; an empty text where they are not."""
    try:
        _agreeing(_validated(kind, {**settings, "style": None}))
    except SettingsError as error:
        return str(error)
    return ""


def _validated(kind: type[C], settings: Mapping[str, Any]) -> C:
    check_bounded(settings)
    try:
        return kind.model_validate(dict(settings), context={"by": __name__})
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
