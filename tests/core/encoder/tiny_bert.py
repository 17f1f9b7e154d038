"""A real BERT of two layers with random weights, as its makers would ship it."""

# ruff: noqa: SIM905
from __future__ import annotations

import json
import string
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file

SIGNS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [*"the movie film was good bad dull and un ##believ ##able caf ##é 日 本".split()]
MARKS = [".", ",", "!", "'", "-", "[", "]"]
LETTERS = [*string.ascii_lowercase, *(f"##{one}" for one in string.ascii_lowercase), *string.digits]
VOCABULARY = [*SIGNS, *WORDS, *MARKS, *LETTERS]
CONFIG = {
    "architectures": ["BertForMaskedLM"],
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 16,
    "intermediate_size": 24,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": 24,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "type_vocab_size": 2,
    "vocab_size": len(VOCABULARY),
}


def tiny_weights() -> dict[str, npt.NDArray[np.float32]]:
    """Return weights as a file of a BertForMaskedLM names them; large ones, so that attention is far from even."""
    rng = np.random.default_rng(1)
    width, inner, words = 16, 24, len(VOCABULARY)
    weights = {}

    def put(name: str, *shape: int) -> None:
        weights[name] = rng.normal(scale=0.4, size=shape).astype(np.float32)

    def norm(name: str) -> None:
        weights[f"{name}.weight"] = (1 + rng.normal(scale=0.2, size=width)).astype(np.float32)
        put(f"{name}.bias", width)

    def dense(name: str, outputs: int, inputs: int) -> None:
        put(f"{name}.weight", outputs, inputs)
        put(f"{name}.bias", outputs)

    put("bert.embeddings.word_embeddings.weight", words, width)
    put("bert.embeddings.position_embeddings.weight", 24, width)
    put("bert.embeddings.token_type_embeddings.weight", 2, width)
    norm("bert.embeddings.LayerNorm")
    for layer in range(2):
        at = f"bert.encoder.layer.{layer}"
        for part in ("query", "key", "value"):
            dense(f"{at}.attention.self.{part}", width, width)
        dense(f"{at}.attention.output.dense", width, width)
        norm(f"{at}.attention.output.LayerNorm")
        dense(f"{at}.intermediate.dense", inner, width)
        dense(f"{at}.output.dense", width, inner)
        norm(f"{at}.output.LayerNorm")
    dense("cls.predictions.transform.dense", width, width)
    norm("cls.predictions.transform.LayerNorm")
    put("cls.predictions.bias", words)
    return weights


def make_tiny_bert(folder: Path, *, config: dict[str, object] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | (config or {})), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    save_file(tiny_weights(), str(folder / "model.safetensors"))
    return folder
