"""How alike a text and its replacement are to an encoder: cosine of sentence embeddings, and sub-words matched by their vectors.

1-Diffractor's Table 2 takes the cosine of sentence embeddings, TrLaplace BERTScore (Zhang et al. 2020). As there, each sub-word
of one text is matched with the most similar one of the other, precision is the mean over the replacement, recall over the
original; without weights for rare words and without a rescaled baseline, on the vectors of the last layer, without [CLS] and
[SEP]. Each figure stands beside that of a record and *another* record's replacement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dptext_spark.arrays import F32, F64, I64
from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, Estimate, mean
from dptext_spark.audit.results import Group, Shown
from dptext_spark.audit.utility.text_metrics import Similarity, other_records, percentiles_of
from dptext_spark.errors import DataError

AT_ONCE = 256  # records whose vectors are held
MATCHED = ("precision", "recall", "F1")
_MATCHED = (
    "Each sub-word is matched with the most similar one of the other text: precision is the mean over the replacement, "
    "recall over the original. No weights for rare words, no rescaling."
)


class Vectors(Protocol):
    """Vectors of length 1, such as :class:`dptext_spark.encoder.outputs.TextVectors`."""

    @property
    def texts(self) -> F32:
        """float32[r, d], of the texts; 0 for a text without a sub-word."""

    @property
    def pieces(self) -> F32:
        """float32[m, d], of their sub-words."""

    @property
    def bounds(self) -> I64:
        """int64[r + 1], those of text i are pieces[bounds[i]:bounds[i + 1]]."""


class Reader(Protocol):
    """What turns texts into vectors."""

    def __call__(self, texts: Sequence[str], /) -> Vectors:
        """Return the vectors of texts [r]."""


@dataclass(frozen=True, kw_only=True)
class EncoderSimilarity(Similarity):
    """How alike records and their replacements are to an encoder.

    Attributes:
        matched: `precision`, `recall` and `F1` of matched sub-words, over the records.
        other_matched: the same with another record's replacement.
    """

    name: str = "encoder similarity"
    measures: str = (
        "How alike the meaning of a record and of its replacement are to an encoder, "
        "as the cosine of their sentence embeddings."
    )

    matched: Mapping[str, Estimate]
    other_matched: Mapping[str, float]

    def shown(self) -> Shown:
        """Show cosines and matched sub-words."""
        by_chance = {f"{name}, with another record's": value for name, value in self.other_matched.items()}
        matched = Group(
            "sub-words matched by their vectors (BERTScore)", {**self.matched, **by_chance}, shows=_MATCHED
        )
        found = super().shown()
        return replace(found, groups=(*found.groups, matched))


def encoder_similarity(
    reader: Reader,
    plain: Sequence[str | None],
    private: Sequence[str | None],
    *,
    confidence: float = CONFIDENCE,
    restricted: bool = True,
) -> EncoderSimilarity:
    """Compare records and their replacements.

    Args:
        reader: turns texts into vectors.
        plain: [s], the records; NULL counts as an empty text.
        private: [s], their replacements.
        confidence: of the intervals.
        restricted: whether the text is private.

    Raises:
        DataError: different numbers of records, or none that can be compared.
    """
    found = _compared(reader, plain, private)
    there = found[~np.isnan(found[:, 0])]
    if not len(there):
        raise DataError("records: none of them holds a sub-word on both sides.")
    elsewhere = found[~np.isnan(found[:, 4]), 4:]
    own = [mean(column, confidence) for column in there[:, :4].T]
    chance = elsewhere.mean(axis=0).tolist() if len(elsewhere) else [0.0] * 4
    return EncoderSimilarity(
        mean=own[0],
        percentiles=percentiles_of(there[:, 0]),
        others=chance[0],
        unprotected=1.0,
        matched=dict(zip(MATCHED, own[1:], strict=True)),
        other_matched=dict(zip(MATCHED, chance[1:], strict=True)),
        records=len(there),
        left_out=len(found) - len(there),
        confidence=confidence,
        resamples=RESAMPLES,
        restricted=restricted,
    )


class Originals:
    """Records as an encoder reads them, to compare one replacement after the other with."""

    def __init__(self, reader: Reader, texts: Sequence[str]) -> None:
        """Read records [s]; of their vectors only those of whole texts are kept."""
        self._reader = reader
        self._plain = self._read(texts)

    def similarity(self, texts: Sequence[str], confidence: float = CONFIDENCE) -> Estimate:
        """Return the mean cosine of the sentence embeddings of the records and of their replacements [s].

        Raises:
            DataError: no record has a sub-word on both sides.
        """
        private = self._read(texts)
        there = self._plain.any(axis=1) & private.any(axis=1)
        if not there.any():
            raise DataError("records: none of them holds a sub-word on both sides.")
        cosines = (self._plain[there] * private[there]).sum(axis=1, dtype=np.float64)
        return mean(np.clip(cosines, -1.0, 1.0), confidence)

    def _read(self, texts: Sequence[str]) -> F32:
        parts = [self._reader(texts[i : i + AT_ONCE]).texts for i in range(0, len(texts), AT_ONCE)]
        return np.concatenate(parts)


def matched(plain: F32, private: F32) -> tuple[float, float, float]:
    """Return (precision, recall, F1) of the sub-words of two texts, each matched with the most similar one of the other.

    Args:
        plain: float32[n, d], vectors of length 1; n is not 0.
        private: float32[m, d], as those; m is not 0.
    """
    cosines = np.clip(plain @ private.T, -1.0, 1.0)
    precision, recall = (float(cosines.max(axis=axis).mean(dtype=np.float64)) for axis in (0, 1))
    both = precision + recall
    return precision, recall, 2 * precision * recall / both if both > 0 else 0.0


def _compared(reader: Reader, plain: Sequence[str | None], private: Sequence[str | None]) -> F64:
    """Return float64[s, 8]: cosine, precision, recall and F1 of each record, then with another's; NaN where a side is empty.

    Records come in the random order in which each is followed by the other one that it is compared with.
    """
    if len(plain) != len(private) or not len(plain):
        raise DataError(f"records: {len(plain)} and {len(private)} given; valid: equal numbers, at least 1.")
    following = other_records(len(plain))
    order = np.empty(len(plain), np.int64)
    at = 0
    for place in range(len(plain)):
        order[place] = at
        at = int(following[at])
    out = np.full((len(plain), 8), np.nan)
    for start in range(0, len(order), AT_ONCE):
        chosen = order[start : start + AT_ONCE]
        left = reader([plain[i] or "" for i in chosen.tolist()])
        right = reader([private[i] or "" for i in (*chosen.tolist(), int(following[chosen[-1]]))])
        for row in range(len(chosen)):
            for other in (0, 1):
                a, b = (
                    side.pieces[side.bounds[i] : side.bounds[i + 1]]
                    for side, i in ((left, row), (right, row + other))
                )
                if len(a) and len(b):
                    cosine = float(np.clip(left.texts[row] @ right.texts[row + other], -1.0, 1.0))
                    out[start + row, 4 * other : 4 * other + 4] = cosine, *matched(a, b)
    return out
