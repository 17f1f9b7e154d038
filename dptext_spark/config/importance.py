"""What a selection of words by importance must agree on with the rest: each function yields sentences, naming the field."""

from __future__ import annotations

from collections.abc import Iterable

from dptext_spark.config.locations import holds_credentials
from dptext_spark.config.model import ModelConfig, RunConfig
from dptext_spark.config.names import parts_of
from dptext_spark.errors import SettingsError
from dptext_spark.importance.selection import agree, check_record_key


def about_importance(config: ModelConfig) -> Iterable[str]:
    """Yield what is wrong with the strategy, the mechanisms of the levels and the corpus."""
    selection = config.importance
    if selection is None:
        return
    try:
        agree(selection.strategy, config.consistency)
    except SettingsError as error:
        yield str(error)
    for number, level in enumerate(selection.levels):
        try:
            mechanism = level.drawn_by(config.mechanism)
        except SettingsError as error:
            yield f"importance.levels[{number}]: {error}"
            continue
        if len(config.lexicon.more) + 1 not in mechanism.embeddings():
            yield (
                f"importance.levels[{number}].mechanism: {mechanism.name} is compiled for another number of embeddings than "
                f"lexicon.source with lexicon.more ({len(config.lexicon.more) + 1}); valid: mechanisms for the same lexicons."
            )
    if selection.own_data and config.run.artifact is not None:
        yield (
            "importance.corpus: none given with run.artifact, but what is counted in the run's own texts is part of the model; "
            "valid: a text file, or run.artifact: null."
        )
    for name in ("corpus", "model"):
        place = getattr(selection, name)
        if place is not None and holds_credentials(place):
            yield f"importance.{name}: holds a password or a signature; valid: a path without."


def about_rows(config: RunConfig) -> Iterable[str]:
    """Yield what is wrong with records of several rows, with the columns of weights, and with counting in a stream."""
    selection = config.importance
    if selection is None:
        return
    try:
        check_record_key(config.consistency, config.row_key, config.record_key)
    except SettingsError as error:
        yield str(error)
    if selection.own_data and config.is_stream:
        yield (
            f"importance.corpus: none given with mode {config.mode}, whose texts are not all known when it begins; valid: a text "
            "file, a document a line."
        )
    if not selection.weights:
        return
    if len(selection.weights) != len(config.columns):
        yield (
            f"importance.weights: {len(selection.weights)} given for {len(config.columns)} text columns; valid: one for each, in "
            "the order of columns."
        )
    lowered = {column.lower() for column in config.columns}
    for column in config.columns:
        if len(parts_of(column) or (column,)) > 1:
            yield f"columns: {column!r} is nested, and given with importance.weights; valid with it: columns of one text a row."
    for name in selection.weights:
        if name.lower() in lowered:
            yield f"importance.weights: {name!r} is a text column; valid: a column of lists of numbers."
