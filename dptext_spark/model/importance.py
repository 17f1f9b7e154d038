"""Let a privatizer choose its words: the provider that a selection names is made once, where the model is compiled."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from dptext_spark.errors import DataError
from dptext_spark.importance.idf import Frequencies
from dptext_spark.importance.selection import Importance
from dptext_spark.importance.selector import Selector, provider_of
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer

PIECE = 1 << 20  # bytes of a corpus that are read at a time


def with_importance(
    privatizer: Privatizer,
    selection: Importance,
    further: tuple[Sampler, ...] = (),
    frequencies: Frequencies | None = None,
) -> Privatizer:
    """Return a privatizer that draws only the words that a selection chooses.

    Args:
        privatizer: that draws all words; its sampler is that of the first level.
        selection: what the user chose.
        further: the samplers of the other levels.
        frequencies: of the very texts that are sanitized, where importance is measured by them; None where that is still to come.

    Raises:
        SettingsError: the selection does not agree with the level of consistency or the samplers.
        DataError: a corpus cannot be read.
    """
    assert privatizer.table is not None
    provider = provider_of(selection, privatizer.table, privatizer.engine, frequencies)
    return replace(privatizer, selector=Selector(selection, provider, further), fingerprint="")


def made_from(selection: Importance, frequencies: Frequencies | None) -> list[Any]:
    """Return what a selection's provider is made from, JSON-able: the settings, the bytes of a corpus or a model, the counts.

    Raises:
        DataError: the corpus or the model cannot be read.
    """
    made: str | None = None
    if selection.corpus is not None:
        made = file_digest("importance.corpus", selection.corpus)
    elif selection.provider == "attention":
        from dptext_spark.importance.providers import Attention

        made = Attention.open(str(selection.model)).fingerprint
    return [selection.as_dict(), made, None if frequencies is None else frequencies.digest]


def file_digest(field: str, file: str) -> str:
    """Return the sha256 of a file, hex.

    Raises:
        DataError: it cannot be read; the message names the field.
    """
    digest = hashlib.sha256()
    try:
        with Path(file).open("rb") as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
    except OSError as error:
        raise DataError(f"{field}: {file!r} cannot be read ({error.strerror}).") from None
    return digest.hexdigest()
