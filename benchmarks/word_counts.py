"""What becomes of a text's words as a whole: how many stay, and how far their frequencies move (concepts/mechanisms, Audits)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dptext_spark.arrays import F64, I32, I64
from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, Estimate, rate
from dptext_spark.audit.results import AuditResult
from dptext_spark.errors import DataError
from dptext_spark.text.engine import Counters

SAMPLES = 200
_SEED = 11


@dataclass(frozen=True, kw_only=True)
class KeptWords(AuditResult):
    """The share of words that stay what they are (CusText's Table 6, "original tokens"; TrLaplace calls it N_w).

    Attributes:
        of_drawn: of the words that the mechanism drew, those that came out as themselves.
        of_known: of drawn words and kept stop words, those and the stop words: what the papers' code counts.
        of_all: the same over all tokens, unknown words, numbers and punctuation among them, which count in the
            denominator only.
        tokens: how many there are in all.
        exact: True for these rows and this release; the intervals say how far other rows could differ.
    """

    name: str = "kept words"
    measures: str = "Which share of the words of a text stands in the release as it was."

    of_drawn: Estimate
    of_known: Estimate
    of_all: Estimate
    tokens: int
    exact: bool = True


@dataclass(frozen=True)
class Apart:
    """How far two distributions of words are from each other.

    Attributes:
        bits: Jensen-Shannon divergence, 0..1.
        total_variation: half the sum of the differences, 0..1.
    """

    bits: float
    total_variation: float


@dataclass(frozen=True, kw_only=True)
class FrequencyShift(AuditResult):
    """How far the frequencies of words moved from the original text to the released one.

    Attributes:
        found: between the two texts.
        sampling: the mean over samples of as many words, drawn independently with the original's frequencies: what another
            text of the same kind would show. Words of running text come in clumps, so that one differs by more.
        sampling_high: the 95th percentile of it.
        words: of the original and of the released text that the lexicon holds.
        distinct: different ones among them.
        samples: how many were drawn.
        exact: True for `found`, on these texts.
    """

    name: str = "frequency shift"
    measures: str = (
        "How far the frequencies of words in the released text are from those of the original, beside what "
        "chance alone does."
    )

    found: Apart
    sampling: Apart
    sampling_high: Apart
    words: tuple[int, int]
    distinct: tuple[int, int]
    samples: int
    exact: bool = True


def kept_words(
    counters: Counters,
    tokens: I64 | None = None,
    *,
    confidence: float = CONFIDENCE,
    restricted: bool = True,
) -> KeptWords:
    """Count what stayed.

    Args:
        counters: of the rows that were privatized.
        tokens: int64[rows], how many tokens each row has, punctuation included, such as the differences of
            :attr:`Reading.bounds`; None counts words and numbers only.
        confidence: of the intervals.
        restricted: whether the text is private.

    Raises:
        DataError: not as many rows.
    """
    every = counters.column("words").astype(np.int64) if tokens is None else np.asarray(tokens, np.int64)
    if len(every) != len(counters.rows):
        raise DataError(f"tokens: {len(every)} rows given for {len(counters.rows)}; they must be as many.")
    same, stop = (counters.column(name).astype(np.int64) for name in ("same", "stop_kept"))
    drawn = counters.column("drawn").astype(np.int64)

    return KeptWords(
        of_drawn=rate(same, drawn, confidence),
        of_known=rate(same + stop, drawn + stop, confidence),
        of_all=rate(same + stop, every, confidence),
        tokens=int(every.sum()),
        confidence=confidence,
        resamples=RESAMPLES,
        restricted=restricted,
    )


def frequency_shift(
    plain: I32,
    private: I32,
    words: int,
    *,
    samples: int = SAMPLES,
    restricted: bool = True,
) -> FrequencyShift:
    """Compare the frequencies of words.

    Args:
        plain: int32[n], ids of the original text; negative ones (no words of the lexicon) are left out.
        private: int32[m], of the released one.
        words: V.
        samples: how often as many words as were released are drawn with the original's frequencies.
        restricted: whether the text is private.

    Raises:
        DataError: a side without a word of the lexicon.
    """
    before, after = (np.bincount(side[side >= 0], minlength=words) for side in (plain, private))
    if not before.sum() or not after.sum():
        raise DataError("words: a text holds no word of the lexicon; valid: at least one on each side.")
    law = before / before.sum()
    random = np.random.default_rng(_SEED)
    # Words that are not in the original are never drawn.
    likely = law[law > 0]
    chance = np.array(
        [_apart(likely, random.multinomial(int(after.sum()), likely) / after.sum()) for _ in range(samples)]
    )
    return FrequencyShift(
        found=Apart(*_apart(law, after / after.sum())),
        sampling=Apart(*chance.mean(axis=0).tolist()),
        sampling_high=Apart(*np.percentile(chance, 95, axis=0).tolist()),
        words=(int(before.sum()), int(after.sum())),
        distinct=(int(np.count_nonzero(before)), int(np.count_nonzero(after))),
        samples=samples,
        restricted=restricted,
    )


def _apart(p: F64, q: F64) -> tuple[float, float]:
    """Return (Jensen-Shannon divergence in bits, total variation)."""
    middle = (p + q) / 2
    halves = [float((x[x > 0] * np.log2(x[x > 0] / middle[x > 0])).sum()) / 2 for x in (p, q)]
    return max(0.0, sum(halves)), float(np.abs(p - q).sum()) / 2
