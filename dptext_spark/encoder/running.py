"""Run an encoder's graphs by onnxruntime.

Weights that are memory-mapped from a file stay there: the graph names the file, and every process of the machine reads the
same pages. Packing them for the processor would be a tenth faster, and cost each process a copy of half of them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.encoder.model import EncoderModel
from dptext_spark.encoder.onnx import Kind, Placed, graph
from dptext_spark.errors import DataError

_ELSEWHERE = "session.model_external_initializers_file_folder_path"


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


def mapped_from(weights: npt.NDArray[np.float32]) -> tuple[Path, int] | None:
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


def _weight(model: EncoderModel, place: Placed) -> npt.NDArray[np.float32]:
    start = place.offset // 4
    return model.weights[start : start + math.prod(place.shape)].reshape(place.shape)
