"""SanText and SanText+: an exponential mechanism over the whole lexicon, or over its sensitive words.

Paper: Yue et al. 2021, "Differential Privacy for Text Analytics via Natural Text Sanitization", §4.
Formula: P(u|w) = exp(-ε·d(w,u)/2) / Σ over all words u, d the Euclidean distance. SanText+: u runs over the sensitive words
alone; a word that is not sensitive is kept with probability 1-p and drawn from the same formula with probability p.
Guarantee: metric DP, |ln P(u|w) - ln P(u|w')| <= ε·d(w,w'), between all words; with a sensitive list, between sensitive
words. Between a sensitive word and another the bound is ε·d + ln(1/p) for sensitive outputs, and an output that is not
sensitive reveals that it was the input.
Deviations: distances are cut off where the weight falls below 2^-40, which only lowers the bound; the law is rounded to
integers, and by how much is stated. The paper counts frequencies on the text at hand for its list of the least frequent
words; here the order of the lexicon, which is public, stands for frequency. Unknown words are the policy's (`oov: draw`
replaces them by a uniform word, as in the paper).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa

from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import Ids, Mechanism, check_epsilon, is_number
from dptext_spark.mechanisms.calibration import CALIBRATIONS
from dptext_spark.mechanisms.kernels import WholeSampler
from dptext_spark.mechanisms.kernels.whole import rounded_up
from dptext_spark.mechanisms.losses.distances import calibrated_whole

LEAST_P = 1e-6  # below it, so few of 2^63 would be left to the draws that their rounding mattered


@dataclass(frozen=True)
class SanText(Mechanism):
    """The parameters of SanText and SanText+.

    Attributes:
        epsilon: ε > 0 per unit of Euclidean distance.
        sensitive: `none` (SanText: every word is drawn, and every word can come out), or for SanText+ which words are
            sensitive: a share above 0 and at most 1 (the paper: 0.5), the last words of the lexicon, in whose order frequent
            ones come first; or a list of words.
        p: SanText+: the probability that a word which is not sensitive is drawn, 0.000001 to 1.
        calibration: `published` (default), or `exact`: the largest internal ε whose certified loss is within ε.
    """

    name: ClassVar[str] = "santext"
    paper: ClassVar[str] = (
        "Yue et al. 2021, Differential Privacy for Text Analytics via Natural Text Sanitization"
    )
    protects: ClassVar[str] = "metric DP: ε times the Euclidean distance, between words that are sensitive"
    sampler: ClassVar[type] = WholeSampler

    epsilon: float = 1.0
    sensitive: str | float | tuple[str, ...] = "none"
    p: float = 0.2
    calibration: Literal["published", "exact"] = "published"

    def __post_init__(self) -> None:
        """Check every parameter's range."""
        check_epsilon("mechanism.epsilon", self.epsilon, zero_allowed=False)
        require_choice("mechanism.calibration", self.calibration, CALIBRATIONS)
        given = self.sensitive
        if isinstance(given, list | tuple):
            if len(given) < 2 or not all(isinstance(word, str) and word for word in given):
                raise SettingsError(
                    "mechanism.sensitive: a list of two words or more is needed, none of them empty."
                )
            object.__setattr__(self, "sensitive", tuple(given))
        elif given != "none" and not (is_number(given) and 0 < given <= 1):
            raise SettingsError(
                f"mechanism.sensitive: {given!r} given; valid: none, a share above 0 and at most 1, or a list of words."
            )
        if not is_number(self.p) or not LEAST_P <= self.p <= 1:
            raise SettingsError(f"mechanism.p: {self.p!r} given; valid: a number from {LEAST_P:f} to 1.")

    def compile(self, lexicon: Lexicon) -> WholeSampler:
        """Return the sampler.

        Args:
            lexicon: V words; its own metric is not used.

        Raises:
            SettingsError: a sensitive word is not in the lexicon, or fewer than two are left.
        """
        if self.sensitive == "none":
            return calibrated_whole(lexicon.vectors, self.epsilon, self.calibration)
        outputs = self._sensitive_ids(lexicon)
        if len(outputs) == len(lexicon):
            return calibrated_whole(lexicon.vectors, self.epsilon, self.calibration)
        return calibrated_whole(
            lexicon.vectors,
            self.epsilon,
            self.calibration,
            outputs=outputs,
            keep=1.0 - self.p,
            note=self._note(len(outputs), len(lexicon)),
        )

    def _sensitive_ids(self, lexicon: Lexicon) -> Ids:
        """Return the ids of the sensitive words, int32[n] ascending."""
        if isinstance(self.sensitive, tuple):
            found: Any = np.unique(lexicon.vocabulary.ids(pa.array(self.sensitive, pa.string())))
            if found[0] < 0:
                missing = sum(lexicon.vocabulary.ids(pa.array(self.sensitive, pa.string())) < 0)
                raise SettingsError(
                    f"mechanism.sensitive: {missing:,} of {len(self.sensitive):,} words are not in the lexicon; valid: its "
                    "words, in lower case as it holds them."
                )
        else:
            count = math.ceil(float(self.sensitive) * len(lexicon))
            found = np.arange(len(lexicon) - count, len(lexicon))
        if len(found) < 2:
            raise SettingsError(
                f"mechanism.sensitive: {self.sensitive!r} given, which leaves {len(found)} of {len(lexicon):,} words; at "
                "least two are needed, for a word with no other to become cannot be protected."
            )
        return np.asarray(found, np.int32)

    def _note(self, outputs: int, words: int) -> str:
        more = f"with ln(1/p) = {rounded_up(-math.log(self.p))} more" if self.p < 1 else "with the same bound"
        kept = (
            f"is kept with probability {1 - self.p:.6g}, which reveals it, and otherwise"
            if self.p < 1
            else "always"
        )
        return (
            f" This holds between the {outputs:,} sensitive words of {words:,}. A word that is not sensitive {kept} drawn among "
            f"the sensitive ones: {more} against a sensitive word, for outputs that are sensitive."
        )
