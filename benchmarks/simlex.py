"""How well a lexicon's geometry agrees with judged word similarity (SimLex-999, Hill et al. 2015)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F64
from dptext_spark.errors import DataError, require_choice
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import METRICS, Metric

COLUMNS = ("word1", "word2", "SimLex999")


def simlex_spearman(lexicon: Lexicon, pairs_path: str | Path, metric: Metric | None = None) -> float:
    """Return Spearman's rank correlation of the lexicon's similarities with the judged ones.

    Args:
        lexicon: pairs with a word that it does not know are left out.
        pairs_path: tab-separated text whose header names the columns word1, word2 and SimLex999.
        metric: `cosine` or `euclidean` (minus the distance); the lexicon's own by default.

    Raises:
        SettingsError: an unknown metric.
        DataError: a missing or malformed file, or fewer than two known pairs.
    """
    chosen = lexicon.metric if metric is None else metric
    require_choice("metric", chosen, METRICS)
    first, second, judged = _read_pairs(Path(pairs_path))
    a, b = lexicon.vocabulary.ids(first), lexicon.vocabulary.ids(second)
    known = (a >= 0) & (b >= 0)
    if known.sum() < 2:
        raise DataError(
            f"{pairs_path}: the lexicon knows {known.sum()} of {len(known)} pairs; at least two are needed."
        )
    left = lexicon.vectors[a[known]].astype(np.float64)
    right = lexicon.vectors[b[known]].astype(np.float64)
    if chosen == "cosine":
        lengths = np.sqrt((left * left).sum(axis=1) * (right * right).sum(axis=1))
        similarity = (left * right).sum(axis=1) / np.where(lengths > 0, lengths, 1.0)
    else:
        similarity = -np.sqrt(((left - right) ** 2).sum(axis=1))
    return float(np.corrcoef(_ranks(similarity), _ranks(judged[known]))[0, 1])


def _read_pairs(path: Path) -> tuple[pa.Array, pa.Array, F64]:
    """Return the two words and the judged similarity of each pair."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as reason:
        raise DataError(f"{path}: not a readable UTF-8 file.") from reason
    header = lines[0].split("\t") if lines else []
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        raise DataError(f"{path}: no column {', '.join(missing)}; needed: {', '.join(COLUMNS)}.")
    first, second, judged = (header.index(name) for name in COLUMNS)
    try:
        rows = [line.split("\t") for line in lines[1:]]
        left, right = (pa.array([row[column] for row in rows], pa.string()) for column in (first, second))
        return left, right, np.array([float(row[judged]) for row in rows], np.float64)
    except (IndexError, ValueError) as reason:
        raise DataError(f"{path}: a line lacks a word or a number.") from reason


def _ranks(values: F64) -> F64:
    """Return ranks from 1, ties sharing the mean of theirs."""
    _, group, size = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(size)
    return np.asarray((last - (size - 1) / 2.0)[group.reshape(-1)], dtype=np.float64)
