"""A small transformer encoder on texts: what attention words receive, vectors of texts, and guesses of masked words.

A window's figures do not depend on its batch, bit for bit on one machine. Each is padded by its own length alone, and only
windows of equal length share a batch. No sum in the graph runs over texts.

The importance of a word is made from the attention that its sub-words receive (concepts/mechanisms, Importance; Fu 2024).

A masked language model takes one mask for the whole word, one place at a time. Vectors are those of the last layer.

The graphs that an encoder runs: what attention its tokens receive, their vectors, or the sub-word behind a mask.

A graph is a text in ONNX's own syntax; onnxruntime runs it. Weights are inputs: every process of a machine reads the same pages
of a file that is memory-mapped. Packed weights would be a tenth faster, and cost each process a copy of half the weights.

No table of tokens by tokens leaves a graph: attention is summed over its queries inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, F64, I64, Bools
from dptext_spark.encoder import sub_words
from dptext_spark.encoder.sub_words import Pieces, Tokenizer, Windows
from dptext_spark.encoder.weights import ACTIVATIONS, MODULES, EncoderModel
from dptext_spark.errors import DataError, require_extra
from dptext_spark.text.chunks import Spans

Kind = Literal["importance", "vectors", "masked"]
AWAY = np.float32(-1e30)  # what keys that are padding score: their attention is 0 exactly

# States are [b * s, width]: the tokens of b texts, one text after the other. `away` is 0 for a token and AWAY for padding.
_GRAPH = Template("""
<ir_version: 10, opset_import: ["" : 20, "bert" : 1]>
$kind (int64[b, s] ids, float[b, 1, 1, s] away, $inputs) => ($output) {
  start = Constant <value_ints = [0]> ()
  length = Shape <start = 1> (ids)
  positions = Slice (embeddings_position_embeddings_weight, start, length)
  places = Add (positions, embeddings_token_type_embeddings_weight)
  words = Gather (embeddings_word_embeddings_weight, ids)
  tokens = Add (words, places)
  flat = Constant <value_ints = [-1, $width]> ()
  rows = Reshape (tokens, flat)
  state0 = bert.norm (rows, embeddings_LayerNorm_weight, embeddings_LayerNorm_bias)
  shape = Shape (ids)
  heads = Constant <value_ints = [$heads, $size]> ()
  by_head = Concat <axis = 0> (shape, heads)
$nodes
}

<domain: "bert", opset_import: ["" : 20]>
dense (state, weight, bias) => (out) { out = Gemm <transB = 1> (state, weight, bias) }

<domain: "bert", opset_import: ["" : 20]>
norm (state, weight, bias) => (out) {
  out = LayerNormalization <epsilon: float = $epsilon> (state, weight, bias)
}

<domain: "bert", opset_import: ["" : 20, "bert" : 1]>
attend (state, away, by_head, wq, bq, wk, bk, wv, bv) => (attention, values) {
  scale = Constant <value_float: float = $scale> ()
  query = bert.dense (state, wq, bq)
  key = bert.dense (state, wk, bk)
  value = bert.dense (state, wv, bv)
  scaled = Mul (query, scale)
  query_by_head = Reshape (scaled, by_head)
  key_by_head = Reshape (key, by_head)
  value_by_head = Reshape (value, by_head)
  queries = Transpose <perm = [0, 2, 1, 3]> (query_by_head)
  keys = Transpose <perm = [0, 2, 3, 1]> (key_by_head)
  values = Transpose <perm = [0, 2, 1, 3]> (value_by_head)
  products = MatMul (queries, keys)
  scores = Add (products, away)
  attention = Softmax <axis = -1> (scores)
}

<domain: "bert", opset_import: ["" : 20, "bert" : 1]>
layer (state, attention, values, wm, bm, wn, bn, wi, bi, wo, bo, wl, bl) => (out) {
  by_head = MatMul (attention, values)
  by_token = Transpose <perm = [0, 2, 1, 3]> (by_head)
  flat = Constant <value_ints = [-1, $width]> ()
  context = Reshape (by_token, flat)
  mixed = bert.dense (context, wm, bm)
  sum = Add (mixed, state)
  middle = bert.norm (sum, wn, bn)
  inner = bert.dense (middle, wi, bi)
  active = $activation (inner)
  outer = bert.dense (active, wo, bo)
  whole = Add (outer, middle)
  out = bert.norm (whole, wl, bl)
}
""")


class _GraphForm(NamedTuple):
    """The parts of a kind of graph: an input, the output, the nodes after each attention, and the nodes at the end."""

    takes: str
    gives: str
    each: str
    end: str


_FORMS: dict[Kind, _GraphForm] = {
    # Heads are stacked, so that one product sums over them, too: a reduction would add in an order that depends on
    # how many texts the batch holds.
    "importance": _GraphForm(
        "float[b, 1, q] queries",
        "float[b, 1, s] received",
        """
  below$layer = Constant <value_ints = [0, -1, 0]> ()
  attentions$layer = Reshape (attention$layer, below$layer)
  received$layer = MatMul (queries, attentions$layer)""",
        "received = Sum ($received)",
    ),
    "vectors": _GraphForm("", "float[r, $width] vectors", "", "vectors = Identity (state$layers)"),
    "masked": _GraphForm(
        "int64[b] at",
        "int64[b] guess",
        "",
        """
  masks = Gather (state$layers, at)
  inner = bert.dense (masks, cls_predictions_transform_dense_weight, cls_predictions_transform_dense_bias)
  active = $activation (inner)
  ready = bert.norm (active, cls_predictions_transform_LayerNorm_weight, cls_predictions_transform_LayerNorm_bias)
  scores = bert.dense (ready, cls_predictions_decoder_weight, cls_predictions_bias)
  guess = ArgMax <axis = 1, keepdims = 0> (scores)""",
    ),
}


def graph(kind: Kind, model: EncoderModel) -> str:
    """Write a graph.

    Its inputs are the weights by name, `ids` int64[b, s], sub-words, and `away`. The rest:

    - importance: `queries` float32[b, 1, heads * s], how much each counts as a query, once for each head; gives `received`
      float32[b, 1, s], the attention that a token receives, summed over layers, heads, and queries by that count.
    - vectors: gives `vectors` float32[b * s, width], those of the last layer.
    - masked: `at` int64[b], the row of each mask among all tokens; gives `guess` int64[b], the likeliest sub-word there.
    """
    sizes, form = model.sizes, _FORMS[kind]
    weights = [_plain(name) for name in model.named()]
    nodes = []
    for layer in range(sizes.layers):
        own = [name for name in weights if name.startswith(f"encoder_layer_{layer}_")]
        state = f"state{layer}, away, by_head, {', '.join(own[:6])}"
        nodes.append(f"  attention{layer}, values{layer} = bert.attend ({state})")
        nodes.append(Template(form.each).substitute(layer=layer))
        if kind != "importance" or layer + 1 < sizes.layers:  # its last layer asks for attention only
            state = f"state{layer}, attention{layer}, values{layer}, {', '.join(own[6:])}"
            nodes.append(f"  state{layer + 1} = bert.layer ({state})")
    size = sizes.width // sizes.heads
    inputs = [form.takes] * bool(form.takes) + [f"float[] {name}" for name in weights]
    template = _GRAPH.safe_substitute(
        kind=kind, inputs=", ".join(inputs), output=form.gives, nodes="\n".join([*nodes, form.end])
    )
    return Template(template).substitute(
        layers=sizes.layers,
        width=sizes.width,
        heads=sizes.heads,
        size=size,
        scale=size**-0.5,
        epsilon=sizes.epsilon,
        activation=ACTIVATIONS[sizes.activation],
        received=", ".join(f"received{layer}" for layer in range(sizes.layers)),
    )


def _plain(name: str) -> str:
    """Return a name as ONNX's syntax takes it."""
    return name.replace(".", "_")


class Running:
    """A graph that is ready to run."""

    def __init__(self, kind: Kind, model: EncoderModel, threads: int = 1) -> None:
        """Make it ready; :class:`DataError`: the encoder lacks the weights of this graph."""
        from onnx.parser import parse_model
        from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

        if kind == "masked" and not model.sizes.head:
            raise DataError("masked model: it was read without the weights for masked words.")
        self.kind = kind
        self._weights = {_plain(name): weight for name, weight in model.named().items()}
        options = SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        # As it is written: rewriting the graph gains nothing here.
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        options.enable_mem_pattern = False  # lengths differ from batch to batch
        options.log_severity_level = 4
        written = parse_model(graph(kind, model)).SerializeToString()
        self._session: Any = InferenceSession(written, options, providers=["CPUExecutionProvider"])

    def __call__(self, ids: npt.NDArray[Any], tokens: Bools, **inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the outputs of the graph.

        Args:
            ids: int64[b, s], sub-words.
            tokens: bool[b, s], false for padding.
            inputs: see :func:`graph`.
        """
        away = np.where(tokens, np.float32(0), AWAY)[:, None, None]
        out: npt.NDArray[Any] = self._session.run(
            None, {"ids": ids, "away": away, **inputs, **self._weights}
        )[0]
        return out


class Encoder:
    """An encoder that is ready to run."""

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
                f"encoder: its tokenizer has the id {self.tokenizer.most:,}. Choose ids below {model.sizes.words:,}, the "
                "number of its sub-words."
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
                :meth:`dptext_spark.encoder.weights.EncoderModel.save` wrote, which is memory-mapped.
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

        Attention is averaged over heads, layers, and the queries other than [CLS], [SEP] and padding. Sub-words are summed to
        words, and words are divided by the sum of their text. A text longer than the encoder's input has several windows
        (:mod:`dptext_spark.encoder.sub_words`). Each window's attention is divided by the sum over its sub-words.

        Returns:
            float32[n], in 0..1; those of a text sum to 1, or to 0 where no word has a sub-word.
        """
        pieces = self.tokenizer.pieces(words.data, words.rows)
        return of_words(self.attention(pieces), pieces, words)

    def attention(self, pieces: Pieces) -> F64:
        """Return each sub-word's share of its window's attention: float64[m]; a text with a single window sums to 1."""
        cut = sub_words.windows(pieces.bounds, self.model.sizes.positions)
        received = np.zeros(int(cut.sizes.sum()), np.float32)
        begins = np.cumsum(cut.sizes) - cut.sizes
        run = self.running("importance")
        for batch, ids, tokens, content in self.filled(pieces.ids, cut):
            queries = np.tile(content.astype(np.float32), self.model.sizes.heads)[:, None]
            places = begins[batch, None] + np.arange(-1, ids.shape[1] - 1)
            received[places[content]] = run(ids, tokens, queries=queries)[:, 0][content]
        return of_pieces(received, cut)

    def filled(self, pieces: I64, cut: Windows) -> Iterator[tuple[I64, I64, Bools, Bools]]:
        """Yield windows as rows, batch by batch.

        Args:
            pieces: int64[m], ids of all sub-words.
            cut: the windows.

        Yields:
            (int64[b], which windows; int64[b, length], ids between [CLS] and [SEP], then padding; bool, which are tokens; bool,
            which are sub-words).
        """
        lengths = sub_words.padded_lengths(cut.sizes, self.model.sizes.positions)
        for batch in sub_words.batches(lengths):
            places = cut.starts[batch, None] + np.arange(-1, lengths[batch[0]] - 1)
            yield batch, *self.tokenizer.rows(pieces, places, cut.sizes[batch, None])


def of_pieces(received: F32, cut: Windows) -> F64:
    """Return each sub-word's share of the attention on all sub-words of its window: float64[m].

    All windows of a long text hold equally many sub-words, so shares are comparable across windows.

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

    A sub-word belongs to the first word that it shares a byte with; bytes between words belong to none. A word without a sub-word
    has 0.

    Args:
        shares: float64[m], of the sub-words.
        pieces: their positions.
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


class _MaskedTexts(NamedTuple):
    """Texts with one word masked each.

    Attributes:
        text: int64[n], the first sub-word of the text.
        word: int64[n], the first sub-word of the word, counted from there.
        cut: int64[n], sub-words that the mask replaces, less itself.
        start: int64[n], the first sub-word of the window, counted from there.
        size: int64[n], sub-words of the window, the mask among them.
    """

    text: I64
    word: I64
    cut: I64
    start: I64
    size: I64


def guesses(encoder: Encoder, words: Spans) -> Iterator[tuple[I64, list[str]]]:
    """Guess words from the rest of their text: as much as the encoder takes, with the mask in the middle.

    It costs a run over the text for each word.

    Yields:
        (places among the words, int64[b]; the likeliest sub-word at each, in the spelling of the encoder: a part of a word begins
        with `##`), until every word was guessed once.

    Raises:
        DataError: the encoder guesses no masked words, or has no [MASK].
    """
    mask = encoder.tokenizer.mask
    if mask is None:
        raise DataError(f"masked model: its tokenizer lacks {sub_words.MASK}.")
    run = encoder.running("masked")
    known = encoder.tokenizer.words()
    pieces = encoder.tokenizer.pieces(words.data, words.rows)
    positions = encoder.model.sizes.positions
    masked = _masked(pieces, words, positions - sub_words.ADDED_TOKENS)
    lengths = sub_words.padded_lengths(masked.size, positions)
    ids_and_mask = np.append(pieces.ids, mask)
    for batch in sub_words.batches(lengths):
        word = _MaskedTexts(*(part[batch, None] for part in masked))
        at = word.start + np.arange(-1, lengths[batch[0]] - 1)
        behind = np.where(at > word.word, word.cut, 0)
        places = np.where(at == word.word, len(pieces.ids), word.text + at + behind)
        ids, tokens, content = encoder.tokenizer.rows(ids_and_mask, places, word.size)
        likeliest = run(ids, tokens, at=np.flatnonzero(content & (at == word.word)))
        yield batch, [known[i] if i < len(known) else "" for i in likeliest.tolist()]


def _masked(pieces: Pieces, words: Spans, most: int) -> _MaskedTexts:
    text = np.repeat(np.arange(len(words.bounds) - 1), np.diff(words.bounds))
    begin, end = pieces.bounds[text], pieces.bounds[text + 1]
    first = np.clip(np.searchsorted(pieces.ends, words.starts, side="right"), begin, end)
    last = np.clip(np.searchsorted(pieces.starts, words.ends, side="left"), first, end)
    word, cut = first - begin, last - first - 1
    length = end - begin - cut
    start = np.clip(word - most // 2, 0, np.maximum(length - most, 0))
    return _MaskedTexts(begin, word, cut, start, np.minimum(length, most))


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
    """Return the vectors of texts; a long text counts window by window, see :mod:`dptext_spark.encoder.sub_words`.

    Args:
        encoder: that is asked.
        texts: [r]; they and the vectors of all their sub-words are held at once.
    """
    raw = [text.encode("utf-8", "replace") for text in texts]
    rows = np.append(0, np.cumsum([len(encoded) for encoded in raw], dtype=np.int64)).astype(np.int64)
    cut = encoder.tokenizer.pieces(np.frombuffer(b"".join(raw), np.uint8), rows)
    sizes = encoder.model.sizes
    within = sub_words.windows(cut.bounds, sizes.positions)
    whole = np.zeros((len(texts), sizes.width), np.float32)
    parts = np.zeros((len(cut.ids), sizes.width), np.float32)
    run = encoder.running("vectors")
    for batch, ids, tokens, content in encoder.filled(cut.ids, within):
        states = run(ids, tokens).reshape(*ids.shape, sizes.width)
        piece = within.starts[batch, None] + np.arange(-1, ids.shape[1] - 1)
        own = content & (piece >= within.first[batch, None]) & (piece < within.last[batch, None])
        parts[piece[own]] = states[own]
        np.add.at(whole, within.texts[batch], (states * (own | (tokens & ~content))[:, :, None]).sum(axis=1))
    return TextVectors(_unit(whole), _unit(parts), cut.bounds)


def _unit(rows: F32) -> F32:
    """Divide each row by its length; what has none stays 0."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), np.float32)
