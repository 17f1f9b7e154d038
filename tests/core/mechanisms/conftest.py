"""The real lexicon that the papers' figures are compared on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dptext_spark.lexicon.lexicon import Lexicon


@pytest.fixture(scope="session")
def glove(shared_data: Path) -> Lexicon:
    """The excerpt of GloVe 840B: 300 dimensions, about 34,000 lines of which some 32,900 are words."""
    file = shared_data / "glove.840B.300d.34k.txt.gz"
    if not file.exists():
        pytest.skip(f"the GloVe excerpt is not here: {file} is missing")
    return Lexicon.read(file)
