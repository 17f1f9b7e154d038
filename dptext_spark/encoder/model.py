"""An encoder as a few arrays: what is kept with a compiled model, shipped, and memory-mapped by every worker of a node."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dptext_spark.arrays import F32, U8
from dptext_spark.encoder.tokenizer import read_tokenizer
from dptext_spark.encoder.weights import CONFIG, Architecture, find, read_json, read_weights, shapes_of
from dptext_spark.errors import DataError, SettingsError

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
        """Build again from :meth:`arrays`; best from memory-mapped ones, see :mod:`dptext_spark.encoder.onnx`.

        Raises:
            DataError: they are not those of an encoder.
        """
        kinds = {name: (array.dtype.str, array.ndim) for name, array in arrays.items()}
        if kinds != {"facts": ("|u1", 1), "tokenizer": ("|u1", 1), "weights": ("<f4", 1)}:
            raise DataError("encoder: its arrays are not those that it was saved with; make it again.")
        model = cls(**arrays)
        try:
            sizes = model.sizes
        except (DataError, ValueError, RecursionError):
            raise DataError("encoder: its facts cannot be read.") from None
        sizes.check("encoder")
        numbers = model.weights.size
        # A layer has weights, so that this loop is no longer than the file.
        if sizes.layers > numbers or sum(map(math.prod, shapes_of(sizes).values())) != numbers:
            raise DataError(
                f"encoder: weights of {numbers:,} numbers; valid: as many as its sizes need. Make it again."
            )
        return model

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the arrays into a new folder, atomically.

        Raises:
            SettingsError: the folder is not empty.
        """
        target = Path(folder)
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise SettingsError(f"encoder: {str(target)!r} exists; name an empty folder.")
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
