"""Load settings: read them, merge them with their style, and validate them in one place before a byte of data is read.

A style is a file of conf/ with the sections of :data:`STYLE_SECTIONS`. Where settings name `mechanism` or `policy.names`, these
replace the style's whole section; of the other sections keys are merged one by one, and those of the settings win.

Each `check_` function yields a sentence for each disagreement of sections, with the field and its valid values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dptext_spark.config.file import override, read_settings
from dptext_spark.config.locations import holds_credentials, inside, parts_of, same_path, same_table, spelled
from dptext_spark.config.model import STREAMS, ModelConfig, RunConfig
from dptext_spark.config.requirements import ATTACKS, FREQUENCY, contradictions
from dptext_spark.config.sections import STYLES, Stream
from dptext_spark.config.values import as_settings_error, check_bounded, check_left, refusal
from dptext_spark.errors import SettingsError, either, require_choice
from dptext_spark.importance.budget import check_budget, check_whole_records
from dptext_spark.importance.levels import agree, check_record_key
from dptext_spark.mechanisms import CusText
from dptext_spark.mechanisms.base import check_context
from dptext_spark.runtime.paths import folder_of


def check_lexicons(config: ModelConfig) -> Iterable[str]:
    """Check the number of lexicons, and yield problems. With an artifact, none is needed."""
    if config.run.artifact is not None and "lexicon" not in config.model_fields_set:
        return
    yield from _refusals(lambda: config.mechanism.require_lexicons(len(config.lexicon.more) + 1))


def _refusals(check: Callable[[], object]) -> Iterator[str]:
    """Yield the message of a check that fails."""
    try:
        check()
    except SettingsError as error:
        yield str(error)


def check_columns(config: RunConfig) -> Iterable[str]:
    """Check the columns, and yield problems. Spark ignores case in their names."""
    lowered = [spelled(parts_of(column.lower()) or (column.lower(),)) for column in config.columns]
    texts, earlier = set(lowered), set[str]()
    for name, column in zip(lowered, config.columns, strict=True):
        if name in earlier:
            yield f"columns: {column!r} is named twice. Name it once."
        earlier.add(name)
    for name in ("row_key", "record_key"):
        key = getattr(config, name)
        if key is not None and key.lower() in texts:
            yield (
                f"{name}: {key!r} is a text column to sanitize, but a key stays in clear. Choose another column."
            )
    others = config.output.other_columns
    for column in others if isinstance(others, tuple) else ():
        if column.lower() in texts:
            yield f"output.other_columns: {column!r} is already in the output, because `columns` names it. Remove it here."
    yield from _check_partitions(config, texts)
    if config.input.format == "text" and config.input.path is not None and config.columns != ("value",):
        yield f"columns: {list(config.columns)} is not valid with format text. Choose [value], the only column of this format."


def _check_partitions(config: RunConfig, texts: set[str]) -> Iterable[str]:
    """Check the partition columns, and yield problems: their values name folders."""
    earlier: set[str] = set()
    for column in config.output.partition_by:
        if column.lower() in texts:
            yield f"output.partition_by: {column!r} is a text column, but partition values name folders. Choose another column."
        if column.lower() in earlier:
            yield f"output.partition_by: {column!r} is named twice. Name it once."
        earlier.add(column.lower())


def check_places(config: RunConfig) -> Iterable[str]:
    """Check the places of input and output, and yield problems."""
    source, target = config.input, config.output
    if source.table and target.table and same_table(source.table, target.table):
        yield f"output.table: {target.table!r} is the input. Choose another table."
    places = {
        "input.path": source.path,
        "output.path": target.path,
        "audit.shareable": config.shareable,
        "audit.restricted": config.restricted,
        "stream.checkpoint": config.checkpoint,
    }
    sources = {"lexicon.source": config.lexicon.source, "lexicon.vocabulary": config.lexicon.vocabulary}
    sources |= {"run.artifact": config.run.artifact, "lexicon.exclude": config.lexicon.exclude}
    corpus = None if config.lexicon.prior is None else config.lexicon.prior.corpus
    sources |= {"lexicon.prior.corpus": corpus}
    private = None if source.path is None or holds_credentials(source.path) else source.path
    if corpus is not None and private is not None and (same_path(corpus, private) or inside(corpus, private)):
        yield f"lexicon.prior.corpus: {corpus!r} is the input, and the input is private. Choose a public text."
    for n, embedding in enumerate(config.lexicon.more):
        sources |= {
            f"lexicon.more[{n}].source": embedding.source,
            f"lexicon.more[{n}].vocabulary": embedding.vocabulary,
        }
    for name, path in {**places, **sources}.items():
        if path is not None:
            yield from _unfit(name, path)
    known = [(n, path) for n, path in places.items() if path is not None and not holds_credentials(path)]
    for position, (name, path) in enumerate(known):
        for other, against in known[:position]:
            if same_path(path, against):
                place = "the input" if other == "input.path" else other
                yield f"{name}: {path!r} is {place}. Choose another place."
            elif inside(path, against) or inside(against, path):
                yield f"{name}: {path!r} and {other} {against!r} overlap. Choose separate folders."


def _unfit(name: str, path: str) -> Iterable[str]:
    """Check that a path is valid, wherever it leads, and yield problems."""
    if holds_credentials(path):
        yield f"{name}: the path holds a password or a signature. Remove it, and use your platform's credentials."
    if path.startswith("~"):
        yield f"{name}: {path!r} begins with ~, but dptext does not expand it. Choose an absolute path."


def check_stream(config: RunConfig) -> Iterable[str]:
    """Check settings against the mode, and yield problems: a stream needs row_key, a Delta source and a checkpoint folder."""
    if not config.is_stream:
        for name, default in Stream().model_dump().items():
            if getattr(config.stream, name) != default:
                value = getattr(config.stream, name)
                yield f"stream.{name}: {value!r} is not valid with mode batch. Choose mode incremental or streaming."
        return
    mode, source = config.mode, config.input
    if config.row_key is None:
        yield f"row_key: not set, but mode {mode} needs a unique column. Name one: files and row positions change in a stream."
    if source.path is not None and source.format != "delta":
        yield f"input.format: {source.format!r} is not valid with mode {mode}. Choose delta: it records additions."
    if source.options:
        yield f"input.options: not valid with mode {mode}. Remove it: the section `stream` has the settings for reading."
    if config.output.mode != "append":
        yield f"output.mode: {config.output.mode!r} is not valid with mode {mode}. Choose append."
    if mode == "incremental" and config.stream.trigger is not None:
        yield (
            f"stream.trigger: {config.stream.trigger!r} is not valid with mode incremental: such a run ends by itself. "
            "Choose null, or mode streaming."
        )
    if config.checkpoint is None:
        yield "stream.checkpoint: not set, but a catalog name as output.table needs it. Choose a folder."


def check_ledger(config: RunConfig) -> Iterable[str]:
    """Check the place of the ledger, and yield problems: others may share it, so it lies in nobody's table."""
    path = config.ledger.path
    if path is None:
        return
    yield from _unfit("ledger.path", path)
    places = {"input.path": config.input.path, "output.path": config.output.path}
    audits = {"audit.shareable": config.shareable, "audit.restricted": config.restricted}
    for name, place in {**places, **audits}.items():
        if place is None:
            continue
        beside = name == "audit.shareable" and inside(path, place) and not _is_audit_table(path, place)
        if not beside and (same_path(path, place) or inside(path, place) or inside(place, path)):
            yield f"ledger.path: {path!r} and {name} {place!r} overlap. Choose separate folders."


def _is_audit_table(path: str, shareable: str) -> bool:
    runs = f"{shareable.rstrip('/')}/runs"
    return same_path(path, runs) or inside(path, runs)


def check_importance(config: ModelConfig) -> Iterable[str]:
    """Check the strategy, the mechanisms of the levels and the corpus, and yield problems."""
    selection = config.importance
    if selection is None:
        return
    yield from _refusals(lambda: agree(selection.strategy, config.consistency))
    for number, level in enumerate(selection.levels):
        try:
            level.drawn_by(config.mechanism).require_lexicons(len(config.lexicon.more) + 1)
        except SettingsError as error:
            yield f"importance.levels[{number}]: {error}"
    if selection.own_data and config.run.artifact is not None:
        yield (
            "importance.corpus: not set, but run.artifact is. Counts of the run's own texts would be part of the model. "
            "Choose a text file, or run.artifact: null."
        )
    for name in ("corpus", "model"):
        place = getattr(selection, name)
        if place is not None and holds_credentials(place):
            yield f"importance.{name}: the path holds a password or a signature. Remove it, and use your platform's credentials."


def check_fluent(config: ModelConfig) -> Iterable[str]:
    """Yield conflicts with draws that depend on the word before them: another level of consistency, several levels."""
    selection = config.importance
    try:
        mechanisms = config.mechanisms()
    except SettingsError:
        return  # said of the levels
    if any(mechanism.reads_context for mechanism in mechanisms):
        levels = 1 if selection is None else len(mechanisms)
        yield from _refusals(lambda: check_context(config.consistency, levels))


def check_budgets(config: ModelConfig) -> Iterable[str]:
    """Yield conflicts with a budget: importance, dataset level, fluent draws, records of several rows."""
    if config.budget is None:
        return
    yield from _refusals(
        lambda: check_budget(config.mechanism, config.policy, config.consistency, config.importance)
    )
    if isinstance(config, RunConfig):
        yield from _refusals(lambda: check_whole_records(config.row_key, config.record_key))


def check_rows(config: RunConfig) -> Iterable[str]:
    """Check records of several rows, the columns of weights and counting in a stream, and yield problems."""
    selection = config.importance
    if selection is None:
        return
    yield from _refusals(lambda: check_record_key(config.consistency, config.row_key, config.record_key))
    if selection.own_data and config.is_stream:
        yield (
            f"importance.corpus: not set, but mode {config.mode} cannot count all texts beforehand. Choose a text file with "
            "one document a line."
        )
    if not selection.weights:
        return
    if len(selection.weights) != len(config.columns):
        yield (
            f"importance.weights: {len(selection.weights)} columns are not valid for {len(config.columns)} text columns. "
            "Name one for each, in the order of `columns`."
        )
    lowered = {column.lower() for column in config.columns}
    for column in config.columns:
        if len(parts_of(column) or (column,)) > 1:
            yield f"columns: {column!r} is nested and not valid with importance.weights. Choose columns with one text a row."
    for name in selection.weights:
        if name.lower() in lowered:
            yield f"importance.weights: {name!r} is a text column. Choose a column of lists of numbers."


def check_required(config: RunConfig) -> Iterable[str]:
    """Yield requirements that no table can meet, and those of a figure that nobody measures with these settings."""
    for cap, floor in contradictions(config.require):
        yield f"require: {cap!r} and {floor!r} contradict each other. Change one of these limits."
    figures = dict.fromkeys(requirement.subject for requirement in config.require)
    for name in figures:
        if name in ATTACKS and config.importance is not None:
            yield f"require: {name!r} is not measured with importance: the drawn words are not known. Remove it."
        if name in FREQUENCY and config.consistency != "dataset":
            yield f"require: {name!r} is measured at level dataset only. Remove it, or choose consistency: dataset."
        if name == "record_epsilon" and config.consistency == "dataset":
            yield f"require: {name!r} is not defined at level dataset, because all records share the draws. Remove it."


def require_lasting(kind: str, mode: str) -> None:
    """Refuse a key that is gone when the process ends.

    Raises:
        SettingsError: it is of the operating system.
    """
    if kind == "os":
        raise SettingsError(
            f"key: not set, but mode {mode} needs a key that outlives the run. Set key.file, key.env or key.secret. "
            "Otherwise an interrupted micro-batch could not repeat its draws."
        )


STYLE_SECTIONS = ("consistency", "mechanism", "policy")  # sections that a style decides
WHOLE = ("mechanism", "names")  # its sections that are replaced, not merged
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
    """Read the settings of a privatizer, from a file of a whole run or of these sections only.

    Raises:
        SettingsError: as :func:`load_config`.
    """
    settings = _read(path, overrides)
    of_a_run = any(name in settings for name in ("input", "columns", "output"))
    return parse_config(settings) if of_a_run else parse_model_config(settings)


def parse_config(settings: Mapping[str, Any]) -> RunConfig:
    """Validate the settings of a run; without a `style`, mechanism, policy and consistency have their own defaults.

    Raises:
        SettingsError: names every invalid setting, its value and the valid values.
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
    """Validate settings with the sections of their style. Errors of a conflict with these name the style."""
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
            f"mechanism.name: not set, but this section replaces mechanism {sections['mechanism']['name']!r} of style "
            f"{style!r}. Set the mechanism's name, or choose style: {STYLES[0]}."
        )
    try:
        return _agreeing(_validated(kind, _merged(sections, settings)))
    except SettingsError as error:
        plain = {**settings, "style": None}
        without = "".join(_refusals(lambda: _agreeing(_validated(kind, plain))))
        decided = settings.get("mechanism") is None
        new = [
            line.strip() not in without or (decided and "mechanism" in line.partition(" Choose ")[0])
            for line in str(error).splitlines()
        ]
        if not any(new):
            raise
        own = [
            name
            for name in sections
            if not isinstance(sections[name], Mapping) and settings.get(name) is None
        ]
        decisions = ", ".join(
            [*(f"{name}: {sections[name]}" for name in own), *({"mechanism"} if decided else ()), "policy"]
        )
        raise SettingsError(
            f"{error}\n  This conflicts with style {style!r}. It sets each setting that you do not name: {decisions}. Name "
            f"these settings, or choose another style: {either(STYLES)}."
        ) from None


def _merged(sections: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the settings with those of a style; where both are sections their keys are merged."""
    merged = {
        **sections,
        **{name: value for name, value in settings.items() if name not in sections or value is not None},
    }
    for name in sections:
        both = (sections[name], merged[name])
        if name not in WHOLE and all(isinstance(section, Mapping) for section in both):
            merged[name] = _merged(*both)
    return merged


def _validated(kind: type[C], settings: Mapping[str, Any]) -> C:
    check_bounded(settings)
    try:
        return kind.model_validate(dict(settings), context={"by": __name__})
    except ValidationError as error:
        raise as_settings_error(error, kind) from None


def _agreeing(config: C) -> C:
    """Check that the sections agree with each other, and return the settings."""
    problems = [
        *check_lexicons(config),
        *check_importance(config),
        *check_fluent(config),
        *check_budgets(config),
    ]
    if isinstance(config, RunConfig):
        problems += [
            *check_columns(config),
            *check_rows(config),
            *check_places(config),
            *check_stream(config),
            *check_ledger(config),
            *check_required(config),
        ]
    if problems:
        raise refusal(problems) from None
    return config
