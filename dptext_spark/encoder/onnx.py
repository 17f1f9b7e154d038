"""The graphs that an encoder runs: what attention its tokens receive, their vectors, or the sub-word behind a mask.

Written from the sizes alone; the weights stay outside, by name, so that the processes of a machine share one copy of them. No
table of tokens by tokens leaves a graph: attention is summed over its queries inside.

onnxruntime runs them.

Weights that are memory-mapped from a file stay there: the graph names the file, and every process of the machine reads the
same pages. Packing them for the processor would be a tenth faster, and cost each process a copy of half of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32
from dptext_spark.encoder.model import EncoderModel
from dptext_spark.encoder.weights import ACTIVATIONS, Architecture
from dptext_spark.errors import DataError

Kind = Literal["importance", "vectors", "masked"]
KINDS: tuple[Kind, ...] = ("importance", "vectors", "masked")
OPSET, IR = 20, 10
AWAY = -1e30  # what keys that are padding score: their attention is 0 exactly
_ELSEWHERE = "session.model_external_initializers_file_folder_path"


class Placed(NamedTuple):
    """Where the numbers of a weight lie.

    Attributes:
        shape: of the weight.
        offset: in bytes.
        file: without a folder.
    """

    shape: tuple[int, ...]
    offset: int
    file: str


class Graph(NamedTuple):
    """A graph.

    Attributes:
        written: as onnxruntime reads it.
        weights: those that it needs, by name.
    """

    written: bytes
    weights: tuple[str, ...]


class _Drawing:
    """Nodes in order, each named after its place."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        from onnx import helper

        names = [f"{operator.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values: npt.ArrayLike, dtype: type) -> str:
        from onnx import numpy_helper

        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name


def graph(kind: Kind, sizes: Architecture, weights: Mapping[str, Placed]) -> Graph:
    """Write a graph.

    Its inputs are `ids` int64[b, s], sub-words, and `present` float32[b, s], 1 for a token and 0 for padding. The rest:

    - importance: `queries` float32[b, s], how much each counts as a query; gives `received` float32[b, s], the attention that a
      token receives, averaged over heads and layers and summed over queries by that count.
    - vectors: gives `vectors` float32[b, s, width], those of the last layer.
    - masked: `at` int64[b], the place of the mask; gives `guess` int64[b], the likeliest sub-word there.

    Args:
        kind: which.
        sizes: of the encoder.
        weights: by name, as :func:`dptext_spark.encoder.weights.read_weights` names them.
    """
    from onnx import TensorProto, helper

    draw = _Drawing()
    inputs: dict[str, tuple[int, list[str]]] = {
        "ids": (TensorProto.INT64, ["b", "s"]),
        "present": (TensorProto.FLOAT, ["b", "s"]),
    }
    state = _embedded(draw, sizes)
    away = draw(
        "Mul", draw("Sub", "present", draw.constant(1.0, np.float32)), draw.constant(-AWAY, np.float32)
    )
    bias = draw("Unsqueeze", away, draw.constant([1, 2], np.int64))
    received = []
    for layer in range(sizes.layers):
        attention, values = _attention(draw, sizes, layer, state, bias)
        received.append(attention)
        if (
            kind != "importance" or layer + 1 < sizes.layers
        ):  # of the last layer only its attention is asked for
            state = _layer(draw, sizes, layer, state, attention, values)
    result: tuple[str, str, int, list[Any]]
    if kind == "importance":
        inputs["queries"] = (TensorProto.FLOAT, ["b", "s"])
        result = (_received(draw, sizes, received), "received", TensorProto.FLOAT, ["b", "s"])
    elif kind == "masked":
        inputs["at"] = (TensorProto.INT64, ["b"])
        result = (_guess(draw, sizes, state), "guess", TensorProto.INT64, ["b"])
    else:
        result = (state, "vectors", TensorProto.FLOAT, ["b", "s", sizes.width])
    name, output, dtype, shape = result
    draw.nodes.append(helper.make_node("Identity", [name], [output]))
    read = {one for node in draw.nodes for one in node.input}
    needed = tuple(one for one in weights if one in read)
    made = helper.make_graph(
        draw.nodes,
        kind,
        [helper.make_tensor_value_info(one, *of) for one, of in inputs.items()],
        [helper.make_tensor_value_info(output, dtype, shape)],
        [*draw.constants, *(_outside(one, weights[one]) for one in needed)],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
    return Graph(model.SerializeToString(), needed)


def _outside(name: str, place: Placed) -> Any:
    """Return a weight that is not in the graph."""
    from onnx import TensorProto

    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=place.shape)
    tensor.data_location = TensorProto.EXTERNAL
    said = {"location": place.file, "offset": place.offset, "length": 4 * math.prod(place.shape)}
    for key, value in said.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _dense(draw: _Drawing, name: str, state: str) -> str:
    found: str = draw("Add", draw("MatMul", state, f"{name}.weight"), f"{name}.bias")
    return found


def _norm(draw: _Drawing, sizes: Architecture, name: str, state: str) -> str:
    found: str = draw(
        "LayerNormalization", state, f"{name}.weight", f"{name}.bias", axis=-1, epsilon=sizes.epsilon
    )
    return found


def _active(draw: _Drawing, sizes: Architecture, state: str) -> str:
    operator, approximate = ACTIVATIONS[sizes.activation]
    found: str = (
        draw(operator, state) if approximate is None else draw(operator, state, approximate=approximate)
    )
    return found


def _embedded(draw: _Drawing, sizes: Architecture) -> str:
    length = draw("Shape", "ids", start=1, end=2)
    start, axis = draw.constant([0], np.int64), draw.constant([0], np.int64)
    places = draw("Slice", "positions", start, length, axis)
    return _norm(draw, sizes, "first", draw("Add", draw("Gather", "words", "ids"), places))


def _attention(draw: _Drawing, sizes: Architecture, layer: int, state: str, bias: str) -> tuple[str, str]:
    """Return (attention [b, heads, queries, keys], values [b, heads, s, width of a head])."""
    mixed = _dense(draw, f"{layer}.attention", state)
    by_head = draw.constant([0, 0, sizes.heads, sizes.width // sizes.heads], np.int64)
    query, key, value = (
        draw("Transpose", draw("Reshape", part, by_head), perm=order)
        for part, order in zip(
            draw("Split", mixed, outputs=3, axis=-1, num_outputs=3),
            ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3]),
            strict=True,
        )
    )
    return draw("Softmax", draw("Add", draw("MatMul", query, key), bias), axis=-1), value


def _layer(draw: _Drawing, sizes: Architecture, layer: int, state: str, attention: str, values: str) -> str:
    together = draw.constant([0, 0, sizes.width], np.int64)
    context = draw(
        "Reshape", draw("Transpose", draw("MatMul", attention, values), perm=[0, 2, 1, 3]), together
    )
    mixed = draw("Add", _dense(draw, f"{layer}.mixed", context), state)
    state = _norm(draw, sizes, f"{layer}.mixed_norm", mixed)
    inner = _active(draw, sizes, _dense(draw, f"{layer}.inner", state))
    return _norm(
        draw, sizes, f"{layer}.outer_norm", draw("Add", _dense(draw, f"{layer}.outer", inner), state)
    )


def _received(draw: _Drawing, sizes: Architecture, attentions: Sequence[str]) -> str:
    """Return [b, s]: the attention of all layers and heads, averaged, and summed over the queries by how much each counts."""
    # Heads stand below each other, so that one product sums over them, too: a reduction would add in an order that depends on
    # how many texts the batch holds.
    counts = draw("Concat", *["queries"] * sizes.heads, axis=1)
    row = draw("Unsqueeze", counts, draw.constant([1], np.int64))
    shape = draw("Shape", "ids")
    texts, length = draw("Split", shape, outputs=2, axis=0, num_outputs=2)
    flat = draw("Concat", texts, draw.constant([-1], np.int64), length, axis=0)
    summed = draw("Sum", *(draw("MatMul", row, draw("Reshape", one, flat)) for one in attentions))
    mean = draw("Mul", summed, draw.constant(1.0 / (sizes.layers * sizes.heads), np.float32))
    found: str = draw("Reshape", mean, shape)
    return found


def _guess(draw: _Drawing, sizes: Architecture, state: str) -> str:
    """Return [b]: the likeliest sub-word at the mask."""
    place = draw("Unsqueeze", "at", draw.constant([1], np.int64))
    masks = draw("GatherND", state, place, batch_dims=1)
    ready = _norm(draw, sizes, "head_norm", _active(draw, sizes, _dense(draw, "head", masks)))
    found: str = draw("ArgMax", _dense(draw, "guess", ready), axis=1, keepdims=0)
    return found


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
        from onnxruntime import GraphOptimizationLevel, InferenceSession, OrtValue, SessionOptions

        self.kind = kind
        self._model = model  # which owns the memory of the weights
        options = SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        # As it is written: rewriting the graph gains nothing here, and copies weights.
        options.graph_optimization_level = GraphOptimizationLevel.ORT_DISABLE_ALL
        options.enable_mem_pattern = False  # lengths differ from batch to batch
        options.log_severity_level = 4
        options.add_session_config_entry("session.disable_prepacking", "1")
        mapped = mapped_from(model.weights)
        if mapped is not None:
            options.add_session_config_entry(_ELSEWHERE, str(mapped[0].parent))
        places = _places(model, mapped)
        if kind == "masked" and "guess.weight" not in places:
            raise DataError("masked model: it was read without the weights that guess masked words.")
        drawn = graph(kind, model.sizes, places)
        if mapped is None:
            values = [OrtValue.ortvalue_from_numpy(_weight(model, places[name])) for name in drawn.weights]
            options.add_external_initializers(list(drawn.weights), values)
        self._session: Any = InferenceSession(drawn.written, options, providers=["CPUExecutionProvider"])

    def __call__(self, **inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what the graph gives for these inputs."""
        found: npt.NDArray[Any] = self._session.run(None, inputs)[0]
        return found


def mapped_from(weights: F32) -> tuple[Path, int] | None:
    """Return the file that an array is mapped from and where in it the array begins, in bytes; None where it is in memory."""
    root: Any = weights  # a view of a mapped array says nothing of the file, or what holds for the whole
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not isinstance(root, np.memmap) or root.filename is None:
        return None
    return Path(root.filename).resolve(), root.offset + weights.ctypes.data - root.ctypes.data


def _places(model: EncoderModel, mapped: tuple[Path, int] | None) -> dict[str, Placed]:
    """Return where each weight lies: in the file, or among the model's weights."""
    file, at = ("weights", 0) if mapped is None else (mapped[0].name, mapped[1])
    places = {}
    for name, shape in model.shapes().items():
        places[name] = Placed(shape, at, file)
        at += 4 * math.prod(shape)
    return places


def _weight(model: EncoderModel, place: Placed) -> F32:
    start = place.offset // 4
    return model.weights[start : start + math.prod(place.shape)].reshape(place.shape)
