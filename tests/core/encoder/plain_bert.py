"""BERT in NumPy, float64, one text at a time: what the graphs are compared with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from scipy.special import erf

Reals = npt.NDArray[np.float64]


class PlainBert:
    """A BertForMaskedLM, read from its files."""

    def __init__(self, folder: Path) -> None:
        self.config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        weights = load_file(folder / "model.safetensors").items()
        self.weights = {name: weight.astype(np.float64) for name, weight in weights}

    def dense(self, name: str, x: Reals) -> Reals:
        return x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name: str, x: Reals) -> Reals:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.config["layer_norm_eps"])
        return x * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def active(self, x: Reals) -> Reals:
        return x * 0.5 * (1 + erf(x / np.sqrt(2)))

    def run(self, ids: list[int]) -> tuple[Reals, Reals]:
        """Return (attention [layers, heads, queries, keys], states [s, width]) of one text, signs included."""
        w, heads = self.weights, self.config["num_attention_heads"]
        x = w["bert.embeddings.word_embeddings.weight"][ids]
        x = x + w["bert.embeddings.position_embeddings.weight"][: len(ids)]
        x = self.norm("bert.embeddings.LayerNorm", x + w["bert.embeddings.token_type_embeddings.weight"][0])
        attentions = []
        for layer in range(self.config["num_hidden_layers"]):
            at = f"bert.encoder.layer.{layer}"
            query, key, value = (
                self.dense(f"{at}.attention.self.{part}", x).reshape(len(ids), heads, -1).transpose(1, 0, 2)
                for part in ("query", "key", "value")
            )
            scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
            attention = np.exp(scores - scores.max(axis=-1, keepdims=True))
            attention /= attention.sum(axis=-1, keepdims=True)
            attentions.append(attention)
            context = (attention @ value).transpose(1, 0, 2).reshape(len(ids), -1)
            attended = self.dense(f"{at}.attention.output.dense", context)
            x = self.norm(f"{at}.attention.output.LayerNorm", attended + x)
            inner = self.active(self.dense(f"{at}.intermediate.dense", x))
            x = self.norm(f"{at}.output.LayerNorm", self.dense(f"{at}.output.dense", inner) + x)
        return np.stack(attentions), x

    def received(self, ids: list[int]) -> Reals:
        """Return what each sub-word receives, averaged over layers, heads and the queries that are sub-words: [s - 2]."""
        attention, _ = self.run(ids)
        return attention[:, :, 1:-1, 1:-1].mean(axis=(0, 1, 2))

    def guess(self, ids: list[int], at: int) -> int:
        _, states = self.run(ids)
        head = self.active(self.dense("cls.predictions.transform.dense", states[at]))
        head = self.norm("cls.predictions.transform.LayerNorm", head)
        words = self.weights["bert.embeddings.word_embeddings.weight"]
        return int(np.argmax(words @ head + self.weights["cls.predictions.bias"]))
