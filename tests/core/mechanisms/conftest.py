"""The real lexicon that the papers' figures are compared on."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from dptext_spark.lexicon.lexicon import Lexicon


@pytest.fixture(scope="session")
def glove(shared_data: Path) -> Lexicon:
    """The excerpt of GloVe 840B: 300 dimensions, about 34,000 lines of which some 32,900 are words."""
    file = shared_data / "glove.840B.300d.34k.txt.gz"
    if not file.exists():
        pytest.skip(f"the GloVe excerpt is not here: {file} is missing")
    return Lexicon.read(file)


@pytest.fixture(scope="session")
def glove_rows(shared_data: Path) -> tuple[list[str], np.ndarray]:
    """All 33,860 lines of the excerpt, those whose words the tokenizer can never produce included."""
    file = shared_data / "glove.840B.300d.34k.txt.gz"
    with gzip.open(file, "rt", encoding="utf-8", newline="\n") as lines:
        next(lines)
        rows = [line.rstrip("\n").split(" ") for line in lines]
    return [row[0] for row in rows], np.array([np.array(row[-300:], np.float32) for row in rows])
