"""SanText and SanText+: an exponential mechanism over the whole lexicon, or over its sensitive words.

Paper: Yue et al. 2021, "Differential Privacy for Text Analytics via Natural Text Sanitization", §4.
Formula: P(u|w) = exp(-ε·d(w,u)/2) / Σ over all words u, d the Euclidean distance. SanText+: u runs over the sensitive words
alone. A word that is not sensitive is kept with probability 1-p and drawn from the same formula with probability p.
Guarantee: metric DP, |ln P(u|w) - ln P(u|w')| <= ε·d(w,w'), between all words. With a sensitive list and p < 1, it holds between
sensitive words alone. Between a sensitive word and another the bound is ε·d + ln(1/p) for sensitive outputs. An output that is
not sensitive reveals that it was the input.
Deviations: distances are cut off where the weight falls below 2^-40, which only lowers the bound. The law is rounded to integers,
and the rounding is stated. The paper counts frequencies on the text at hand for its list of the least frequent words. Here the
public order of the lexicon replaces frequency. Unknown words are the policy's (`oov: draw` replaces them by a uniform word, as in
the paper).

A list of sensitive words must be public, and so must be its origin. The artifact and the recorded settings of a run contain it,
and outputs show which words are sensitive. A list made from the private text would reveal that text.

`SENSITIVE` is the parameter that names them, and their ids.

TEM, the truncated exponential mechanism: SanText with the distance cut off at a radius γ.

Paper: Carvalho et al. 2021, "TEM: High Utility Metric Differential Privacy on Text", Algorithm 1.
Formula: published as a Gumbel-max over the words within γ of w, the ball L, and one bottom element. The bottom element has the
score -γ + 2·ln|W∖L|/ε, represents all others and is drawn uniformly. In closed form that is P(u|w) = exp(-ε·min(d(w,u), γ)/2) / Σ
over all words u, d the Euclidean distance. The value γ = (2/ε)·ln((1-β)(V-1)/β) puts at least 1-β of the probability inside the
ball.
Guarantee: metric DP, ε·min(d, γ): |ln P(u|w) - ln P(u|w')| <= ε·min(d(w,w'), γ).
Deviations: the closed form is drawn, no Gumbel noise. The largest γ is (2/ε)·ln 2^40, past the published value for every
V·(1-β)/β below 10^12. The law is rounded to integers, and the rounding is stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from dptext_spark.arrays import Ids
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.neighbors import Metric
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.elementary import logarithm
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, Parameter, declared, number
from dptext_spark.mechanisms.privacy_loss.exact_losses import calibrated_whole
from dptext_spark.mechanisms.privacy_loss.loss import Calibration, calibration_choice
from dptext_spark.mechanisms.remap import Remap, Remappable, released, remap_choice, telling
from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler, bound_up
from dptext_spark.mechanisms.samplers.table import RemappedSampler

LEAST_P = 1e-6  # below it, so few of 2^63 would be left to the draws that their rounding mattered


_SHARE = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
_WORDS = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=2)]
SENSITIVE = Parameter(
    "none, share or list of words",
    "`none`: SanText, which draws every word from all words. For SanText+, the sensitive words: a share of the lexicon (the "
    "paper: 0.5), taken from its rare end, or a public list of words.",
    "none, a share above 0 and at most 1, or a list of two words or more (in settings also {file: path}, a word a line)",
    Literal["none"] | _SHARE | _WORDS,
    words=True,
)


def sensitive_ids(sensitive: str | float | tuple[str, ...], lexicon: Lexicon) -> Ids:
    """Return the ids of the sensitive words, int32[n] ascending.

    Args:
        sensitive: a share, the last words of the lexicon, or words.
        lexicon: V words.

    Raises:
        SettingsError: a word is not in the lexicon, or fewer than two are left; no word of a list is shown.
    """
    if isinstance(sensitive, tuple):
        shown = f"a list of {len(sensitive):,}"
        ids = lexicon.vocabulary.ids(pa.array(sensitive, pa.string()))
        missing = int((ids < 0).sum())
        if missing:
            raise SettingsError(
                f"mechanism.sensitive: {missing:,} of {len(sensitive):,} words are not in the lexicon. Choose its words, in "
                "lower case as in the lexicon."
            )
        chosen: Any = np.unique(ids)
    else:
        shown = repr(sensitive)
        count = math.ceil(float(sensitive) * len(lexicon))
        chosen = np.arange(len(lexicon) - count, len(lexicon))
    if len(chosen) < 2:
        raise SettingsError(
            f"mechanism.sensitive: {shown} leaves {len(chosen)} of {len(lexicon):,} words. Choose two or more, so that a "
            "word can become another."
        )
    return np.asarray(chosen, np.int32)


@dataclass(frozen=True)
class SanText(Remappable):
    """The parameters of SanText and SanText+.

    Examples:
        >>> mechanism = dp.SanText(epsilon=8.0, sensitive=0.9, p=0.3)
        >>> mechanism.protects
        'metric DP: ε times the Euclidean distance, between words that are sensitive'
    """

    name: ClassVar[str] = "santext"
    paper: ClassVar[str] = (
        "Yue et al. 2021, Differential Privacy for Text Analytics via Natural Text Sanitization"
    )
    protects: ClassVar[str] = "metric DP: ε times the Euclidean distance, between words that are sensitive"
    sampler: ClassVar[type[Sampler]] = ExponentialSampler

    epsilon: float = number(1.0, "ε per unit of Euclidean distance.", least=LEAST_EPSILON)
    sensitive: str | float | tuple[str, ...] = declared("none", SENSITIVE)
    p: float = number(
        0.2, "SanText+: probability to draw a word that is not sensitive.", least=LEAST_P, most=1
    )
    calibration: Calibration = calibration_choice()
    remap: Remap = remap_choice()

    @property
    def similarity(self) -> Metric:
        """Minus the squared Euclidean distance."""
        return "euclidean"

    def __post_init__(self) -> None:
        """Check every parameter."""
        if isinstance(self.sensitive, list):
            object.__setattr__(self, "sensitive", tuple(self.sensitive))
        super().__post_init__()

    def compile(self, lexicon: Lexicon) -> Any:
        """Return the sampler; the lexicon's own metric is not used."""
        restricted: dict[str, Any] = {}
        if self.sensitive != "none":
            outputs, words = sensitive_ids(self.sensitive, lexicon), len(lexicon)
            if len(outputs) < words:
                restricted = {
                    "outputs": outputs,
                    "keep": 1.0 - self.p,
                    "note": self._note(len(outputs), words),
                }
        drawn = calibrated_whole(lexicon.vectors, self.epsilon, self.calibration, **restricted)
        return released(self, drawn, lexicon)

    def remapped(self, sampler: Sampler, table: Ids, prior: str) -> RemappedSampler:
        """Describe words that are not sensitive after the remap: some may then come of others, too."""
        assert isinstance(sampler, ExponentialSampler)
        remapped_sampler = super().remapped(sampler, table, prior)
        if not sampler.keeps:
            return remapped_sampler
        outputs, words = len(sampler.outputs), len(table)
        before = self._note(outputs, words)
        after = self._note(outputs, words, len(telling(sampler, table)))
        sentence = remapped_sampler.guarantee.sentence.replace(before, after)
        return replace(remapped_sampler, guarantee=replace(remapped_sampler.guarantee, sentence=sentence))

    def by_distance(self, words: int) -> tuple[float, float] | None:  # noqa: ARG002  (others need it)
        """Return (ε, infinity) of SanText itself, as published."""
        plain = self.sensitive == "none" and self.calibration == "published"
        return (self.epsilon, math.inf) if plain else None

    def _note(self, outputs: int, words: int, telling: int | None = None) -> str:
        """Name the words that the guarantee compares; `telling`: number of others that come of themselves alone, if not all."""
        if self.p == 1:
            return f" Every word is drawn among the {outputs:,} sensitive words of {words:,}, so this holds between all."
        reveals, outputs_of = "it", "that are sensitive"
        if telling is not None:
            reveals = (
                f"{telling:,} of these {words - outputs:,} words (the others can come of other words, too)"
            )
            outputs_of = "other than the kept one"
        return (
            f" This holds between the {outputs:,} sensitive words of {words:,}. A word that is not sensitive is kept with "
            f"probability {1 - self.p:.6g}, and this reveals {reveals}. Otherwise it is drawn among the sensitive ones, with "
            f"ln(1/p) = {bound_up(-math.log(self.p))} more against a sensitive word, for outputs {outputs_of}."
        )


@dataclass(frozen=True)
class TEM(Remappable):
    """The parameters of TEM.

    Examples:
        >>> mechanism = dp.TEM(epsilon=14.0, beta=0.001)
        >>> mechanism.protects
        'metric DP: ε times the Euclidean distance, which counts as γ at most'
    """

    name: ClassVar[str] = "tem"
    paper: ClassVar[str] = "Carvalho et al. 2021, TEM: High Utility Metric Differential Privacy on Text"
    protects: ClassVar[str] = "metric DP: ε times the Euclidean distance, which counts as γ at most"
    sampler: ClassVar[type[Sampler]] = ExponentialSampler

    epsilon: float = number(1.0, "ε per unit of Euclidean distance.", least=LEAST_EPSILON)
    beta: float = number(
        0.001, "β, the greatest probability outside the ball, if γ is null.", above=0, most=0.5
    )
    gamma: float | None = number(
        None, "The radius γ; null: the published (2/ε)·ln((1-β)(V-1)/β).", above=0, null=True
    )
    calibration: Calibration = calibration_choice()
    remap: Remap = remap_choice()

    @property
    def similarity(self) -> Metric:
        """Minus the squared Euclidean distance."""
        return "euclidean"

    def radius(self, words: int, epsilon: float | None = None) -> float:
        """Return γ for a lexicon of V words; `epsilon` is the internal one, where it is another."""
        if self.gamma is not None:
            return float(self.gamma)
        return 2.0 / (epsilon or self.epsilon) * logarithm((1.0 - self.beta) * (words - 1) / self.beta)

    def compile(self, lexicon: Lexicon) -> Any:
        """Return the sampler; the lexicon's own metric is not used."""
        radius = partial(self.radius, len(lexicon))
        drawn = calibrated_whole(lexicon.vectors, self.epsilon, self.calibration, radius=radius)
        return released(self, drawn, lexicon)

    def by_distance(self, words: int) -> tuple[float, float] | None:
        """Return (ε, γ) of the drawn law, as published."""
        return (self.epsilon, self.radius(words)) if self.calibration == "published" else None
