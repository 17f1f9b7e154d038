"""Which words of one sentence importance chooses, for its preview: the sentence, and each of its words once more alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from dptext_spark.errors import SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.selection import Chosen, Texts


def levels_of_words(privatizer: Privatizer, text: pa.Array, listed: Mapping[int, int]) -> dict[int, int]:
    """Return the level of each word that the policy draws, by where it begins; empty where importance chooses nothing.

    Args:
        privatizer: that chooses.
        text: one text.
        listed: the code of each listed token, by where it begins.

    Raises:
        SettingsError: importance is a column, which a sentence has not, or was not counted yet.
    """
    if privatizer.selector is None:
        return {}
    if privatizer.selector.selection.provider == "column":
        raise SettingsError(
            "importance.provider: 'column' given, but a preview has no column of weights; valid here: idf with a corpus, "
            "attention, random."
        )
    found = privatizer.choose([Texts(text)])
    assert found is not None
    (chosen,) = found
    levels = dict(zip(chosen.starts.tolist(), chosen.levels.tolist(), strict=True))
    return {start: levels[start] for start, code in listed.items() if code >= 0}


def chosen_alone(
    starts: Sequence[int], levels: Mapping[int, int], sizes: Sequence[int], none: int
) -> Chosen | None:
    """Return what was chosen, for a batch of the text and of each of its words where it stands, alone; None for all words.

    Args:
        starts: where each word begins.
        levels: of the words that the policy draws, by where they begin.
        sizes: bytes of the text, then of each word's row.
        none: how many levels there are.
    """
    if not levels:
        return None
    offsets = np.cumsum(sizes[:-1])
    at = np.array([levels.get(start, none) for start in starts] * 2, np.uint8)
    places = np.concatenate([np.array(starts, np.int64), offsets + np.array(starts, np.int64)])
    return Chosen(places, at, none, np.zeros(len(sizes), np.int64))
