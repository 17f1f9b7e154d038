"""A few rows before and after, by one draw under a fresh key that nobody keeps."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np
import pyarrow as pa

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.selection import Texts

THROWN_AWAY = (
    "Drawn under a fresh key that is thrown away: none of it was written, and the ledger counts nothing. That holds only while "
    "nobody shares what is shown here: for whoever sees it, it is one more release of these rows, which no ledger counts."
)


def draw_rows(model: Privatizer, columns: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Draw the texts of some rows once. Each row is a record, and nothing of the draw is kept.

    Args:
        model: the compiled model.
        columns: by name: texts [n], string or large_string.

    Returns:
        What they became, by name: [n].

    Raises:
        SettingsError: importance is a column of weights, or depends on counts that were not made.
        DataError: a text is no valid Unicode.
    """
    selector = model.selector
    if selector is not None and (selector.reads_weights or not model.chooses):
        raise SettingsError(
            "model: which words it draws depends on a column of weights, or on what a run counts in all texts, which a few rows "
            "have not; valid here: importance with idf and a corpus, attention, or random, or none."
        )
    for name, texts in columns.items():
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:  # its message may show the text
            raise DataError(f"{name}: a text is no valid Unicode.") from None
    once = copy(model)
    once.__dict__["_draws"] = {}
    chosen = once.choose([Texts(texts) for texts in columns.values()])
    key, found = RunKey.generate(), {}
    for number, (name, texts) in enumerate(columns.items()):
        rows = pa.array(np.arange(len(texts)))
        found[name], _ = once.privatize(
            texts, column=name, row_ids=rows, key=key, chosen=None if chosen is None else chosen[number]
        )
    return found
