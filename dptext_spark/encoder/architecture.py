"""Which encoders can be read: BERT, by the `config.json` that stands beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dptext_spark.errors import DataError

SUPPORTED = ("BertModel", "BertForMaskedLM")
# By the names of config.json; the value is ONNX's operator and its attributes.
ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
    "gelu_pytorch_tanh": ("Gelu", {"approximate": "tanh"}),
    "relu": ("Relu", {}),
}
_SIZES = {
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "width": "hidden_size",
    "inner": "intermediate_size",
    "positions": "max_position_embeddings",
    "words": "vocab_size",
}


@dataclass(frozen=True)
class Architecture:
    """The sizes of a BERT.

    Attributes:
        layers: of attention.
        heads: of each layer.
        width: numbers of a token.
        inner: numbers of a token between two layers.
        positions: tokens that it takes at once, [CLS] and [SEP] among them.
        words: sub-words that it knows.
        epsilon: of its layer norms.
        activation: a key of `ACTIVATIONS`.
    """

    layers: int
    heads: int
    width: int
    inner: int
    positions: int
    words: int
    epsilon: float
    activation: str

    @classmethod
    def of(cls, config: Mapping[str, Any], where: str) -> Architecture:
        """Read a `config.json`.

        Args:
            config: what it holds.
            where: what messages call it.

        Raises:
            DataError: another architecture, a variant of BERT that is not supported, or a size that is missing or impossible.
        """
        named = config.get("architectures") or []
        if config.get("model_type") != "bert" or not set(named) <= {*SUPPORTED}:
            given = ", ".join(map(str, named)) or config.get("model_type") or "none"
            raise DataError(f"{where}: architecture {given} given; valid: {', '.join(SUPPORTED)}.")
        kind = config.get("position_embedding_type", "absolute")
        if kind != "absolute" or config.get("is_decoder") or config.get("add_cross_attention"):
            raise DataError(
                f"{where}: a BERT with {kind} positions{' that decodes' if config.get('is_decoder') else ''} given; valid: an "
                "encoder with absolute positions."
            )
        activation = config.get("hidden_act", "gelu")
        sizes = {name: config.get(field) for name, field in _SIZES.items()}
        found = cls(**sizes, epsilon=float(config.get("layer_norm_eps", 1e-12)), activation=activation)  # type: ignore[arg-type]
        found.check(where)
        return found

    def check(self, where: str) -> None:
        """Refuse sizes that no encoder has.

        Raises:
            DataError: names the size as `config.json` does, what it is and what is valid.
        """
        for name, field in _SIZES.items():
            size = getattr(self, name)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise DataError(f"{where}: {field} {size!r} given; valid: a whole number, 1 or more.")
        if self.width % self.heads:
            raise DataError(
                f"{where}: hidden_size {self.width} given; valid: a multiple of {self.heads} heads."
            )
        if self.positions < 4:
            raise DataError(f"{where}: max_position_embeddings {self.positions} given; valid: 4 or more.")
        if not isinstance(self.activation, str) or self.activation not in ACTIVATIONS:
            raise DataError(
                f"{where}: hidden_act {self.activation!r} given; valid: {', '.join(ACTIVATIONS)}."
            )
        if not isinstance(self.epsilon, float) or not 0.0 <= self.epsilon < 1.0:
            raise DataError(f"{where}: layer_norm_eps {self.epsilon!r} given; valid: a number from 0 to 1.")
