"""The attention that words receive in a pretrained encoder, as importance (Fu 2024; MECHANISMS §11)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext_spark.text.spans import Spans


@dataclass(frozen=True)
class Attention:
    """A pretrained encoder in a folder, opened when it is first needed.

    Attributes:
        folder: of the encoder; every node that weighs words must see it.
    """

    name: ClassVar[str] = "attention"
    folder: str

    @cached_property
    def _encoder(self) -> Any:
        from importlib import import_module

        # By name: the extra [encoder] brings what it needs.
        return import_module("dptext_spark.encoder.encoder").Encoder.open(self.folder)

    def __getstate__(self) -> dict[str, Any]:
        """Travel without the encoder, which each process opens by itself."""
        return {"folder": self.folder}

    @property
    def fingerprint(self) -> str:
        """Of the encoder's files."""
        return f"attention {self._encoder.fingerprint}"

    @property
    def sentence(self) -> str:
        """Say what measures importance."""
        return (
            "Importance is the attention that a word receives from the other words of its text in a pretrained encoder, averaged "
            "over heads and layers."
        )

    def weights(self, words: Spans) -> npt.NDArray[np.float32]:
        """Return the share of its text's attention that each word receives, float32[n]."""
        found: npt.NDArray[np.float32] = self._encoder.importance(words)
        return found

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return nothing: the encoder stays in its folder."""
        return {}
