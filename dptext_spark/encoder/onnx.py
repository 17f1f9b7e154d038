"""The graphs that an encoder runs: what attention its tokens receive, their vectors, or the sub-word behind a mask.

A graph is a text in ONNX's own syntax, which onnxruntime runs. Weights are inputs: every process of a machine reads the same
pages of a file that is memory-mapped. Packing them for the processor would be a tenth faster, and cost each process a copy of
half of them.

No table of tokens by tokens leaves a graph: attention is summed over its queries inside.
"""

from __future__ import annotations

from string import Template
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import Bools
from dptext_spark.encoder.model import EncoderModel
from dptext_spark.encoder.weights import ACTIVATIONS
from dptext_spark.errors import DataError

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


class _Form(NamedTuple):
    """What is a kind's own: an input, the output, the nodes after each attention, and the nodes at the end."""

    takes: str
    gives: str
    each: str
    end: str


_FORMS: dict[Kind, _Form] = {
    # Heads stand below each other, so that one product sums over them, too: a reduction would add in an order that depends on
    # how many texts the batch holds.
    "importance": _Form(
        "float[b, 1, q] queries",
        "float[b, 1, s] received",
        """
  below$layer = Constant <value_ints = [0, -1, 0]> ()
  attentions$layer = Reshape (attention$layer, below$layer)
  received$layer = MatMul (queries, attentions$layer)""",
        "received = Sum ($received)",
    ),
    "vectors": _Form("", "float[r, $width] vectors", "", "vectors = Identity (state$layers)"),
    "masked": _Form(
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
    """A graph that is ready to run.

    Attributes:
        kind: which.
    """

    def __init__(self, kind: Kind, model: EncoderModel, threads: int = 1) -> None:
        """Make it ready.

        Args:
            kind: which graph.
            model: the encoder.
            threads: of its matrix products.

        Raises:
            DataError: the encoder lacks the weights of this graph.
        """
        from onnx.parser import parse_model
        from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions

        if kind == "masked" and not model.sizes.head:
            raise DataError("masked model: it was read without the weights that guess masked words.")
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
        """Return what the graph gives.

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
