"""The attention that words receive in a pretrained encoder, as importance (Fu 2024; MECHANISMS §11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext_spark.text.spans import Spans

# By name: only who asks for attention needs the extra [encoder].
_ENCODER, _MODEL = "dptext_spark.encoder.encoder", "dptext_spark.encoder.model"


@dataclass(frozen=True, eq=False)
class Attention:
    """A pretrained encoder: its arrays go into the model, so that no node needs its folder.

    Attributes:
        model: the encoder's arrays.
        source: what settings call it: a folder, or an installed package.
    """

    name: ClassVar[str] = "attention"
    model: Any
    source: str

    @classmethod
    def open(cls, source: str) -> Attention:
        """Read an encoder.

        Raises:
            SettingsError: the extra [encoder] is not installed; neither a folder nor a package.
            DataError: a file is missing or damaged, or the architecture is not supported.
        """
        return cls(import_module(_MODEL).EncoderModel.open(source, field="importance.model"), source)

    @cached_property
    def _encoder(self) -> Any:
        return import_module(_ENCODER).Encoder(self.model)

    def __getstate__(self) -> dict[str, Any]:
        """Travel without what is made ready in each process."""
        return {"model": self.model, "source": self.source}

    @cached_property
    def fingerprint(self) -> str:
        """Of the encoder's arrays."""
        return f"attention {self.model.fingerprint}"

    @property
    def sentence(self) -> str:
        """Say what measures importance."""
        return (
            "It is the share of a text's attention that a word receives from the other words, averaged over heads and layers, "
            "times the text's share of the record's words; the encoder is taken to be public."
        )

    def weights(self, words: Spans) -> npt.NDArray[np.float32]:
        """Return the share of its record's attention that each word receives, float32[n].

        The encoder reads text by text, so that it gives shares of a text. A text has as much of its record's attention as it has
        of its words: else the one word of a short text would come before all words of a long one.
        """
        found: npt.NDArray[np.float32] = self._encoder.importance(words)
        if words.records is None:
            return found
        texts, records = np.diff(words.bounds), np.diff(words.record_bounds)
        of_record = np.repeat(records, np.diff(words.records))
        parts = texts / np.maximum(of_record, 1)
        return np.asarray(found * np.repeat(parts, texts), np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the encoder's arrays."""
        found: dict[str, npt.NDArray[Any]] = self.model.arrays()
        return found

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], source: str) -> Attention:
        """Build again from :meth:`arrays`."""
        return cls(import_module(_MODEL).EncoderModel.restore(arrays), source)
