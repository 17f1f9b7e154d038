"""Texts as the sub-words of an encoder, each with its place in the text.

Long texts are cut into windows that an encoder takes at once. Windows of equal length make a batch.

A text that fits is one window. A longer one is cut into full windows that overlap by a quarter. The last one is moved back
until it is full, too. Each sub-word is read in the window where it is most central: two windows share their overlap by
halves. Nothing is lost and nothing counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dptext_spark.arrays import I64, U8, Bools
from dptext_spark.errors import DataError

SPECIAL = ("[CLS]", "[SEP]", "[PAD]")
MASK = "[MASK]"
ADDED_TOKENS = 2  # [CLS] and [SEP]
OVERLAP = 4  # a window shares one in so many of its sub-words with the next
AT_ONCE = 512  # tokens of a batch: more are slower, since they leave the processor's cache


class Pieces(NamedTuple):
    """The sub-words of some texts.

    Attributes:
        ids: int64[m], without [CLS] and [SEP].
        starts: int64[m], where each begins among the bytes of the texts.
        ends: int64[m], where it ends.
        bounds: int64[r + 1], those of text i are ids[bounds[i]:bounds[i + 1]].
    """

    ids: I64
    starts: I64
    ends: I64
    bounds: I64


class Tokenizer:
    """The tokenizer of an encoder, unchanged. It never reads text as [CLS] or another special token.

    Attributes:
        start: the id of [CLS].
        end: of [SEP].
        padding: of [PAD].
        mask: of [MASK]; None where it has none.
    """

    def __init__(self, text: str, field: str = "encoder") -> None:
        """Read it from its JSON; :class:`DataError`: it cannot be read, or a special token is missing."""
        from tokenizers import Tokenizer as Library

        try:
            self._library: Any = Library.from_str(text)
        except Exception as error:  # the library raises no narrower one
            raise DataError(f"{field}: its tokenizer cannot be read ({type(error).__name__}).") from None
        self._library.no_truncation()
        self._library.no_padding()
        self._library.encode_special_tokens = True
        special_ids: list[int] = [
            place for sign in SPECIAL if (place := self._library.token_to_id(sign)) is not None
        ]
        if len(special_ids) < len(SPECIAL):
            raise DataError(f"{field}: its tokenizer lacks one of the special tokens {', '.join(SPECIAL)}.")
        self.start, self.end, self.padding = special_ids
        self.mask: int | None = self._library.token_to_id(MASK)

    @property
    def most(self) -> int:
        """The greatest id of a sub-word."""
        return int(max(self._library.get_vocab(with_added_tokens=True).values()))

    @property
    def count(self) -> int:
        """Number of sub-words, with the added ones."""
        return int(self._library.get_vocab_size(with_added_tokens=True))

    def by_id(self) -> dict[int, str]:
        """Return every sub-word by its id, those added to it among them."""
        return {place: word for word, place in self._library.get_vocab(with_added_tokens=True).items()}

    def words(self) -> list[str]:
        """Return the sub-words by id."""
        count = self._library.get_vocab_size()
        return [self._library.id_to_token(place) or "" for place in range(count)]

    def form(self, word: str) -> str:
        """Return a word as the sub-words are spelt: without case, if theirs have none."""
        normalizer = self._library.normalizer
        return str(word if normalizer is None else normalizer.normalize_str(word)).strip()

    def pieces(self, data: U8, rows: I64) -> Pieces:
        """Cut texts.

        Args:
            data: uint8[...], their bytes; bytes that are not UTF-8 count as replacement characters (U+FFFD).
            rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        """
        ids: list[int] = []
        places: list[I64] = []
        counts = np.zeros(len(rows), np.int64)
        for row, (start, end) in enumerate(zip(rows[:-1].tolist(), rows[1:].tolist(), strict=True)):
            text, at = _characters(data[start:end].tobytes())
            cut = self._library.encode(text, add_special_tokens=False)
            ids += cut.ids
            spans = np.array(cut.offsets, np.int64).reshape(-1, 2)
            places.append((spans if at is None else at[spans]) + start)
            counts[row + 1] = len(spans)
        every = np.concatenate([np.empty((0, 2), np.int64), *places])
        return Pieces(np.array(ids, np.int64), every[:, 0].copy(), every[:, 1].copy(), np.cumsum(counts))

    def rows(self, ids: I64, places: I64, sizes: I64) -> tuple[I64, Bools, Bools]:
        """Return windows as an encoder takes them: between [CLS] and [SEP], then padding.

        Args:
            ids: int64[m], of sub-words.
            places: int64[b, length], the sub-word at each place of a row.
            sizes: int64[b, 1], how many do, from the second place on.

        Returns:
            (int64[b, length], ids; bool, which are tokens; bool, which are sub-words).
        """
        place = np.arange(places.shape[1])
        content = (place > 0) & (place <= sizes)
        rows = np.full(content.shape, self.padding, np.int64)
        rows[content] = ids[places[content]]
        rows[:, 0] = self.start
        rows[place == sizes + 1] = self.end
        return rows, place < sizes + ADDED_TOKENS, content


def _characters(raw: bytes) -> tuple[str, I64 | None]:
    """Return (text, int64[characters + 1], the byte at which each begins); None where each is one byte."""
    text = raw.decode("utf-8", "surrogateescape")
    if text.isascii():
        return text, None
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).copy()
    broken = (codes >= 0xD800) & (codes < 0xE000)  # a byte each
    sizes = 1 + (codes >= 0x80) + (codes >= 0x800).astype(np.int64) + (codes >= 0x10000)
    sizes[broken] = 1
    if broken.any():
        codes[broken] = 0xFFFD
        text = codes.tobytes().decode("utf-32-le")
    return text, np.append(0, np.cumsum(sizes))


def read_tokenizer(file: Path, lower: bool = True) -> str:
    """Return a tokenizer as JSON.

    Args:
        file: `tokenizer.json`, or a `vocab.txt`, a sub-word a line, of which a BERT's tokenizer is made.
        lower: whether the sub-words of a `vocab.txt` are without case and accents.

    Raises:
        DataError: it cannot be read.
    """
    from tokenizers import Tokenizer as Library
    from tokenizers import decoders, models, normalizers, pre_tokenizers

    try:
        if file.suffix == ".json":
            return file.read_text(encoding="utf-8")
        tokenizer = Library(models.WordPiece.from_file(str(file), unk_token="[UNK]"))
    except Exception as error:  # the library raises no narrower one
        raise DataError(f"encoder: {str(file)!r} cannot be read ({type(error).__name__}).") from None
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return str(tokenizer.to_str())


class Windows(NamedTuple):
    """Windows on the sub-words of some texts, in order.

    Attributes:
        texts: int64[w], the text of each.
        starts: int64[w], its first sub-word.
        sizes: int64[w], how many it has.
        first: int64[w], the first sub-word that is looked at in it.
        last: int64[w], one past the last such sub-word.
    """

    texts: I64
    starts: I64
    sizes: I64
    first: I64
    last: I64


def windows(bounds: I64, positions: int) -> Windows:
    """Cut texts into windows.

    Args:
        bounds: int64[r + 1], where the sub-words of each text begin and end.
        positions: how many tokens the encoder takes, [CLS] and [SEP] among them.
    """
    most = positions - ADDED_TOKENS
    step = most - most // OVERLAP
    lengths = np.diff(bounds)
    counts = np.where(lengths > most, -(-(lengths - most) // step) + 1, lengths > 0)
    texts = np.repeat(np.arange(len(lengths)), counts)
    number = np.arange(len(texts)) - np.repeat(np.cumsum(counts) - counts, counts)
    starts = bounds[texts] + np.minimum(number * step, np.maximum(lengths[texts] - most, 0))
    sizes = np.minimum(lengths[texts], most)
    first = starts.copy()
    shared = np.flatnonzero(number > 0)
    first[shared] = (starts[shared] + starts[shared - 1] + sizes[shared - 1]) // 2
    last = bounds[texts + 1]
    last[shared - 1] = first[shared]
    return Windows(texts, starts, sizes, first, last)


def padded_lengths(sizes: I64, positions: int) -> I64:
    """Return the padded lengths of windows in tokens, int64[w]: at most a sixteenth above their own.

    It depends on the window alone, so that its figures are the same in every batch, bit for bit.
    """
    tokens = sizes + ADDED_TOKENS
    digits = np.frexp(tokens)[1].astype(np.int64)  # binary digits
    step = 2 ** np.maximum(digits - 5, 0)
    return np.asarray(np.minimum(-(-tokens // step) * step, positions), np.int64)


def batches(lengths: I64) -> Iterator[I64]:
    """Yield windows of one length, some at a time: places in `lengths`, int64[b]."""
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    edges = np.append(np.flatnonzero(np.diff(ordered, prepend=-1)), len(order))
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        most = max(1, AT_ONCE // int(ordered[start]))
        for at in range(start, end, most):
            yield order[at : min(at + most, end)]
