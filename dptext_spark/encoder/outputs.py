"""What a masked language model takes for the likeliest word at a place: one mask for the whole word, one place at a time.

Vectors are those of the last layer, of texts and of their sub-words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dptext_spark.arrays import F32, I64
from dptext_spark.encoder.encoder import Encoder
from dptext_spark.encoder.tokenizer import ADDED_TOKENS, MASK, Pieces, batches, padded_lengths, windows
from dptext_spark.errors import DataError
from dptext_spark.text.chunks import Spans


class _Masked(NamedTuple):
    """Texts with one word masked each.

    Attributes:
        text: int64[n], the first sub-word of the text.
        word: int64[n], the first sub-word of the word, counted from there.
        cut: int64[n], sub-words that the mask stands for, less itself.
        start: int64[n], the first sub-word of the window, counted from there.
        size: int64[n], sub-words of the window, the mask among them.
    """

    text: I64
    word: I64
    cut: I64
    start: I64
    size: I64


def guesses(encoder: Encoder, words: Spans) -> Iterator[tuple[I64, list[str]]]:
    """Guess words from the rest of their text, of which the encoder sees as much as it takes, the mask in the middle.

    It costs a run over the text for each word.

    Args:
        encoder: opened with what guesses masked words.
        words: n words.

    Yields:
        (places among the words, int64[b]; the likeliest sub-word at each, in the spelling of the encoder: a part of a word begins
        with `##`), until every word was guessed once.

    Raises:
        DataError: the encoder guesses no masked words, or has no [MASK].
    """
    mask = encoder.tokenizer.mask
    if mask is None:
        raise DataError(f"masked model: its tokenizer lacks {MASK}.")
    run = encoder.running("masked")
    known = encoder.tokenizer.words()
    pieces = encoder.tokenizer.pieces(words.data, words.rows)
    positions = encoder.model.sizes.positions
    masked = _masked(pieces, words, positions - ADDED_TOKENS)
    lengths = padded_lengths(masked.size, positions)
    for batch in batches(lengths):
        one = _Masked(*(part[batch, None] for part in masked))
        place = np.arange(int(lengths[batch[0]]))[None, :]
        content = (place > 0) & (place <= one.size)
        at = one.start + place - 1
        source = one.text + at + np.where(at > one.word, one.cut, 0)
        ids = np.full(content.shape, encoder.tokenizer.padding, np.int64)
        beside = content & (at != one.word)
        ids[beside] = pieces.ids[source[beside]]
        ids[content & (at == one.word)] = mask
        ids[:, 0] = encoder.tokenizer.start
        ids[place == one.size + 1] = encoder.tokenizer.end
        present = (place < one.size + ADDED_TOKENS).astype(np.float32)
        found = run(ids=ids, present=present, at=(one.word - one.start + 1)[:, 0])
        yield batch, [known[i] if i < len(known) else "" for i in found.tolist()]


def _masked(pieces: Pieces, words: Spans, most: int) -> _Masked:
    text = np.repeat(np.arange(len(words.bounds) - 1), np.diff(words.bounds))
    begin, end = pieces.bounds[text], pieces.bounds[text + 1]
    first = np.clip(np.searchsorted(pieces.ends, words.starts, side="right"), begin, end)
    last = np.clip(np.searchsorted(pieces.starts, words.ends, side="left"), first, end)
    word, cut = first - begin, last - first - 1
    length = end - begin - cut
    start = np.clip(word - most // 2, 0, np.maximum(length - most, 0))
    return _Masked(begin, word, cut, start, np.minimum(length, most))


class TextVectors(NamedTuple):
    """Vectors of some texts, each of length 1.

    Attributes:
        texts: float32[r, d]: the mean of the vectors of a text's tokens, [CLS] and [SEP] among them, as sentence-transformers
            pools them; 0 for a text without a sub-word.
        pieces: float32[m, d]: those of its sub-words, without [CLS] and [SEP].
        bounds: int64[r + 1], those of text i are pieces[bounds[i]:bounds[i + 1]].
    """

    texts: F32
    pieces: F32
    bounds: I64


def vectors(encoder: Encoder, texts: Sequence[str]) -> TextVectors:
    """Return the vectors of texts; a long text counts window by window, see :mod:`dptext_spark.encoder.tokenizer`.

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
        tokens = place < within.sizes[batch, None] + ADDED_TOKENS
        found = run(ids=ids, present=tokens.astype(np.float32))
        piece = within.starts[batch, None] + place - 1
        own = content & (piece >= within.first[batch, None]) & (piece < within.last[batch, None])
        parts[piece[own]] = found[own]
        np.add.at(whole, within.texts[batch], (found * (own | (tokens & ~content))[:, :, None]).sum(axis=1))
    return TextVectors(_unit(whole), _unit(parts), cut.bounds)


def _unit(rows: F32) -> F32:
    """Divide each row by its length; what has none stays 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), np.float32)
