"""A token classifier of a few words, as its makers would ship it: each sub-word has its logits, and little else changes them."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from dptext_spark.encoder.sub_words import read_tokenizer
from tests.core.encoder.tiny_bert import SIGNS

KINDS = ("GIVEN_NAME", "SURNAME", "CITY", "EMAIL")
LABELS = ("O", *(f"{place}-{kind}" for kind in KINDS for place in "BI"))
SURE = 6.0
LOGITS: Mapping[str, Mapping[str, float]] = {
    "anna": {"B-GIVEN_NAME": SURE},
    "jose": {"B-GIVEN_NAME": SURE},
    "keller": {"B-SURNAME": SURE},
    "mu": {"B-SURNAME": SURE},
    "##ller": {},  # the rest of a word decides nothing
    "oslo": {"B-CITY": SURE},
    "new": {"B-CITY": SURE},
    "york": {"I-CITY": SURE},
    "東": {"B-CITY": SURE},
    "京": {"I-CITY": SURE},
    "##oslo": {"B-CITY": SURE},
    "mail": {"B-EMAIL": SURE},
    "edge": {"O": float(np.log(0.50004)), "B-CITY": float(np.log(0.49996)) - 1e-9},
    "under": {"O": float(np.log(0.502)), "B-CITY": float(np.log(0.498))},
    "both": {"B-GIVEN_NAME": 1.0, "B-SURNAME": 1.5, "I-SURNAME": 0.5},
    "huge": {"O": 400.0},  # the range of its window's logits is wide
    **{word: {} for word in ("the", "lives", "in", "and")},
}
LETTERS = [*string.ascii_lowercase, *(f"##{one}" for one in string.ascii_lowercase), *".,!'\u2019-@"]
VOCABULARY = [*SIGNS, *LOGITS, *LETTERS]
POSITIONS = 24
CONFIG: Mapping[str, object] = {
    "architectures": ["BertForTokenClassification"],
    "id2label": {str(place): label for place, label in enumerate(LABELS)},
    "max_position_embeddings": POSITIONS,
    "vocab_size": len(VOCABULARY),
}


def logits_table() -> np.ndarray:
    """Return float32[sub-words, labels]; what is not named is `O`."""
    table = np.full((len(VOCABULARY), len(LABELS)), -40.0, np.float32)
    for place, word in enumerate(VOCABULARY):
        for label, value in (LOGITS.get(word) or {"O": SURE}).items():
            table[place, LABELS.index(label)] = value
    return table


def tiny_graph(*, mixed: float = 0.0, quantised: bool = False, table: np.ndarray | None = None) -> Any:
    """Return a graph whose logits are those of the table.

    Args:
        mixed: how much of the window's mean is added, so that what stands around a word counts.
        quantised: whether logits are rounded to 256 steps of the whole tensor's range, as dynamic quantisation does.
        table: of logits.
    """
    table = logits_table() if table is None else table
    weights = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.zeros((POSITIONS, table.shape[1]), np.float32), "positions"),
        numpy_helper.from_array(np.array([0], np.int64), "zero"),
        numpy_helper.from_array(np.array(mixed, np.float32), "mixed"),
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
    ]
    nodes = [
        helper.make_node("Shape", ["input_ids"], ["length"], start=1, end=2),
        helper.make_node("Slice", ["positions", "zero", "length", "zero"], ["places"]),
        helper.make_node("Gather", ["table", "input_ids"], ["own"]),
        helper.make_node("Add", ["own", "places"], ["placed"]),
        helper.make_node("ReduceMean", ["own", "axis"], ["mean"], keepdims=1),
        helper.make_node("Mul", ["mean", "mixed"], ["around"]),
        helper.make_node("Add", ["placed", "around"], ["sum" if quantised else "logits"]),
    ]
    if quantised:
        nodes += [
            helper.make_node("DynamicQuantizeLinear", ["sum"], ["q", "scale", "point"]),
            helper.make_node("DequantizeLinear", ["q", "scale", "point"], ["logits"]),
        ]
    shape = ["texts", "pieces"]
    info = helper.make_tensor_value_info
    given = [info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")]
    logits = info("logits", TensorProto.FLOAT, [*shape, table.shape[1]])
    graph = helper.make_graph(nodes, "tiny", given, [logits], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def make_tiny_classifier(
    folder: Path, graph: Any = None, config: Mapping[str, object] | None = None, without: str = ""
) -> Path:
    """Write config.json, tokenizer.json and onnx/model.onnx; `without`: less one setting."""
    (folder / "onnx").mkdir(parents=True, exist_ok=True)
    settings = {name: value for name, value in {**CONFIG, **(config or {})}.items() if name != without}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    (folder / "tokenizer.json").write_text(read_tokenizer(folder / "vocab.txt"), encoding="utf-8")
    (folder / "vocab.txt").unlink()
    (folder / "onnx" / "model.onnx").write_bytes((graph or tiny_graph()).SerializeToString())
    return folder
