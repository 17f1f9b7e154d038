from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.simlex import simlex_spearman
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary

HEADER = "word1\tword2\tPOS\tSimLex999\n"


def lexicon(vectors: list[list[float]]) -> Lexicon:
    words = ["a", "b", "c", "d", "e"][: len(vectors)]
    return Lexicon(Vocabulary.of(words), np.array(vectors, np.float32))


def write(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    path.write_text(HEADER + "".join(f"{a}\t{b}\tN\t{score}\n" for a, b, score in rows))
    return path


def test_by_hand_with_ties_and_unknown_pairs(tmp_path: Path) -> None:
    table = lexicon([[1, 0], [1, 1], [0, 1], [0, 3], [0, 0]])
    rows = [("a", "b", 5), ("a", "c", 1), ("c", "d", 9), ("b", "c", 5), ("a", "zebra", 3), ("a", "e", 1)]
    path = write(tmp_path / "pairs.tsv", rows)
    # cosines .71 0 1 .71 0 rank as the judgements do
    assert simlex_spearman(table, path) == pytest.approx(1.0)
    # distances 1, 1.41, 2, 1, 1: ranks 4 2 1 4 4 against 3.5 1.5 5 3.5 1.5
    wanted = np.corrcoef([4, 2, 1, 4, 4], [3.5, 1.5, 5, 3.5, 1.5])[0, 1]
    assert simlex_spearman(table, path, "euclidean") == pytest.approx(wanted)


def test_bad_input(tmp_path: Path) -> None:
    table = lexicon([[1, 0], [1, 1], [0, 1]])
    with pytest.raises(DataError, match="readable"):
        simlex_spearman(table, tmp_path / "nowhere")
    (tmp_path / "empty").write_text("")
    with pytest.raises(DataError, match="no column word1, word2, SimLex999"):
        simlex_spearman(table, tmp_path / "empty")
    (tmp_path / "short").write_text(HEADER + "a\tb\n")
    with pytest.raises(DataError, match="lacks"):
        simlex_spearman(table, tmp_path / "short")
    with pytest.raises(DataError, match="1 of 2 pairs"):
        simlex_spearman(table, write(tmp_path / "few", [("a", "b", 1), ("a", "q", 2)]))
    with pytest.raises(SettingsError, match="metric"):
        simlex_spearman(table, tmp_path / "few", "dot")


def test_the_packaged_lexicon_on_simlex(shared_data: Path) -> None:
    path = shared_data / "simlex-999.tsv"
    assert simlex_spearman(Lexicon.default(), path) == pytest.approx(0.498, abs=5e-4)
    assert simlex_spearman(Lexicon.default(), path, "euclidean") == pytest.approx(0.504, abs=5e-4)
