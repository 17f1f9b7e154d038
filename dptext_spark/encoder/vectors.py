"""Texts and their sub-words as vectors of an encoder's last layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.encoder.encoder import Encoder
from dptext_spark.encoder.windows import SIGNS, batches, padded_lengths, windows

Reals = npt.NDArray[np.float32]


class TextVectors(NamedTuple):
    """Vectors of some texts, each of length 1.

    Attributes:
        texts: float32[r, d]: the mean of the vectors of a text's tokens, [CLS] and [SEP] among them, as sentence-transformers
            pools them; 0 for a text without a sub-word.
        pieces: float32[m, d]: those of its sub-words, without [CLS] and [SEP].
        bounds: int64[r + 1], those of text i are pieces[bounds[i]:bounds[i + 1]].
    """

    texts: Reals
    pieces: Reals
    bounds: npt.NDArray[np.int64]


def vectors(encoder: Encoder, texts: Sequence[str]) -> TextVectors:
    """Return the vectors of texts; a long text counts window by window, see :mod:`dptext_spark.encoder.windows`.

    Args:
        encoder: that is asked.
        texts: [r]; they and the vectors of all their sub-words are held at once.
    """
    raw = [text.encode("utf-8", "replace") for text in texts]
    rows = np.append(0, np.cumsum([len(one) for one in raw], dtype=np.int64)).astype(np.int64)
    cut = encoder.tokenizer.pieces(np.frombuffer(b"".join(raw), np.uint8), rows)
    sizes = encoder.model.sizes
    within = windows(cut.bounds, sizes.positions)
    lengths = padded_lengths(within.sizes, sizes.positions)
    whole = np.zeros((len(texts), sizes.width), np.float32)
    parts = np.zeros((len(cut.ids), sizes.width), np.float32)
    run = encoder.running("vectors")
    for batch in batches(lengths):
        ids, content = encoder.filled(cut.ids, within, batch, int(lengths[batch[0]]))
        place = np.arange(ids.shape[1])
        tokens = place < within.sizes[batch, None] + SIGNS
        found = run(ids=ids, present=tokens.astype(np.float32))
        piece = within.starts[batch, None] + place - 1
        own = content & (piece >= within.first[batch, None]) & (piece < within.last[batch, None])
        parts[piece[own]] = found[own]
        np.add.at(whole, within.texts[batch], (found * (own | (tokens & ~content))[:, :, None]).sum(axis=1))
    return TextVectors(_unit(whole), _unit(parts), cut.bounds)


def _unit(rows: Reals) -> Reals:
    """Divide each row by its length; what has none stays 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), np.float32)
