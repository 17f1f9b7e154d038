"""A small transformer encoder on texts: what attention words receive.

A window's figures do not depend on the batch that it is in, bit for bit on one machine: each is padded by its own length alone,
only windows of one length share a batch, and no sum in the graph runs over texts.

The importance of a word is made from the attention that its sub-words receive (concepts/mechanisms, Importance; Fu 2024).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dptext_spark.arrays import F32, F64, I64, Bools
from dptext_spark.encoder.model import EncoderModel
from dptext_spark.encoder.onnx import Kind, Running
from dptext_spark.encoder.tokenizer import Pieces, Tokenizer, Windows, batches, padded_lengths, windows
from dptext_spark.encoder.weights import MODULES
from dptext_spark.errors import DataError, require_extra
from dptext_spark.text.chunks import Spans


class Encoder:
    """An encoder that is ready to run.

    Attributes:
        model: its arrays.
        tokenizer: its tokenizer.
    """

    def __init__(self, model: EncoderModel, threads: int = 1) -> None:
        """Take a model.

        Args:
            model: the arrays.
            threads: of its matrix products; a worker of Spark has one core.

        Raises:
            SettingsError: the extra is not installed.
            DataError: the tokenizer cannot be read, or has more sub-words than the encoder.
        """
        require_extra("encoder", *MODULES)
        self.model = model
        self.tokenizer = Tokenizer(model.tokenizer.tobytes().decode())
        if self.tokenizer.most >= model.sizes.words:
            raise DataError(
                f"encoder: its tokenizer has the id {self.tokenizer.most:,}; valid: below {model.sizes.words:,} (its sub-words)."
            )
        self._threads = threads
        self._running: dict[Kind, Running] = {}

    @classmethod
    def open(
        cls, source: str | Path, *, head: bool = False, threads: int = 1, field: str = "encoder"
    ) -> Encoder:
        """Open an encoder.

        Args:
            source: a folder as the encoder's makers ship it, the name of an installed package that holds one, or a folder that
                :meth:`dptext_spark.encoder.model.EncoderModel.save` wrote, which is memory-mapped.
            head: whether to read the masked-language-modelling head, too.
            threads: of its matrix products.
            field: what messages call it.

        Raises:
            SettingsError: the extra is not installed; neither a folder nor a package.
            DataError: a file or a weight is missing or damaged, or the architecture is not supported.
        """
        require_extra("encoder", *MODULES)
        return cls(EncoderModel.open(source, head=head, field=field), threads)

    def running(self, kind: Kind) -> Running:
        """Return a graph, made ready once."""
        if kind not in self._running:
            self._running[kind] = Running(kind, self.model, self._threads)
        return self._running[kind]

    def importance(self, words: Spans) -> F32:
        """Return the importance of words: the attention that each receives (concepts/mechanisms, Importance).

        Attention is averaged over heads, layers, and the queries other than [CLS], [SEP] and padding; sub-words are summed to
        words, and words divided by the sum of their text. Of a text longer than the encoder takes, see
        :mod:`dptext_spark.encoder.tokenizer`, each window's attention is divided by what its sub-words receive together.

        Args:
            words: n words of some texts.

        Returns:
            float32[n], in 0..1; those of a text sum to 1, or to 0 where no word has a sub-word.
        """
        pieces = self.tokenizer.pieces(words.data, words.rows)
        return of_words(self.attention(pieces), pieces, words)

    def attention(self, pieces: Pieces) -> F64:
        """Return the share of its window's attention that each sub-word receives: float64[m]; a text of one window sums to 1."""
        cut = windows(pieces.bounds, self.model.sizes.positions)
        received = np.zeros(int(cut.sizes.sum()), np.float32)
        ends = np.cumsum(cut.sizes)
        lengths = padded_lengths(cut.sizes, self.model.sizes.positions)
        run = self.running("importance")
        for batch in batches(lengths):
            ids, content = self.filled(pieces.ids, cut, batch, int(lengths[batch[0]]))
            sizes = cut.sizes[batch, None]
            present = np.arange(ids.shape[1]) < sizes + 2
            found = run(
                ids=ids, present=present.astype(np.float32), queries=(content / sizes).astype(np.float32)
            )
            places = (ends[batch] - cut.sizes[batch])[:, None] + np.arange(-1, ids.shape[1] - 1)
            received[places[content]] = found[content]
        return of_pieces(received, cut)

    def filled(self, pieces: I64, cut: Windows, batch: I64, length: int) -> tuple[I64, Bools]:
        """Return windows as rows: (int64[b, length], ids between [CLS] and [SEP], then padding; bool, which are sub-words).

        Args:
            pieces: int64[m], ids of all sub-words.
            cut: the windows.
            batch: int64[b], which of them.
            length: of the rows.
        """
        sizes = cut.sizes[batch, None]
        place = np.arange(length)[None, :]
        content = (place > 0) & (place <= sizes)
        ids = np.full((len(batch), length), self.tokenizer.padding, np.int64)
        ids[content] = pieces[(cut.starts[batch, None] + place - 1)[content]]
        ids[:, 0] = self.tokenizer.start
        ids[np.arange(len(batch)), sizes[:, 0] + 1] = self.tokenizer.end
        return ids, content


def of_pieces(received: F32, cut: Windows) -> F64:
    """Return what each sub-word receives, as a share of what all sub-words of its window do: float64[m].

    All windows of a text that has several hold equally many sub-words, so that shares of one compare with shares of another.

    Args:
        received: float32[sum of sizes], of the sub-words of all windows, one window after the other.
        cut: the windows.
    """
    ends = np.cumsum(cut.sizes)
    window = np.repeat(np.arange(len(cut.sizes)), cut.sizes)
    whole = np.bincount(window, received, len(cut.sizes))
    shares = received / np.maximum(whole, np.finfo(np.float64).tiny)[window]
    looked_at = cut.last - cut.first
    from_window = np.repeat(ends - cut.sizes + cut.first - cut.starts, looked_at)
    within = np.arange(int(looked_at.sum())) - np.repeat(np.cumsum(looked_at) - looked_at, looked_at)
    return np.asarray(shares[from_window + within], np.float64)


def of_words(shares: F64, pieces: Pieces, words: Spans) -> F32:
    """Sum sub-words to words, and divide by the sum over the words of the text.

    A sub-word belongs to the first word that it shares a byte with; what stands between words belongs to none. A word without a
    sub-word has 0.

    Args:
        shares: float64[m], of the sub-words.
        pieces: where they stand.
        words: n words.

    Returns:
        float32[n], in 0..1; those of a text sum to 1, or to 0 where none has a sub-word.
    """
    n = len(words.starts)
    if not n:
        return np.zeros(0, np.float32)
    word = np.searchsorted(words.ends, pieces.starts, side="right")
    inside = np.flatnonzero((word < n) & (words.starts[np.minimum(word, n - 1)] < pieces.ends))
    sums = np.bincount(word[inside], shares[inside], n)
    text = np.repeat(np.arange(len(words.bounds) - 1), np.diff(words.bounds))
    whole = np.bincount(text, sums, len(words.bounds) - 1)[text]
    return np.divide(sums, whole, out=np.zeros(n), where=whole > 0).astype(np.float32)
