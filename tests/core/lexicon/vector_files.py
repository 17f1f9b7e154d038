"""Files of word vectors, and what is read of them."""

from __future__ import annotations

from pathlib import Path

from dptext_spark.lexicon.lexicon import Lexicon


def put(folder: Path, content: bytes, name: str = "vectors.txt") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def words(lexicon: Lexicon) -> list[str]:
    return lexicon.vocabulary.strings().to_pylist()
