"""What mechanisms with independent noise on every coordinate share: parameters, clipped vectors, and the words to snap to.

Vectors are clipped to length C, x·min(1, C/|x|), so that any two words are at most 2C apart in Euclidean distance and 2√d·C in
the sum of absolute differences, by which noise is calibrated. Clipped numbers are rounded to float32 towards 0 and
scales upwards: the bounds hold for the numbers that are used.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np

from dptext_spark.arrays import F32
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import Mechanism, Sampler
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, number
from dptext_spark.mechanisms.samplers.approximate import Search
from dptext_spark.mechanisms.samplers.noise import FLOATING_POINT, NoiseSampler, NoiseSummary
from dptext_spark.runtime.jit import compiled

Snap = Literal["clipped", "published"]
SHORTEST, LONGEST = 1e-100, 1e100  # scales of noise that float64 holds with room to spare
_ROOM = 1.0 + 2.0**-40  # above the rounding of a length in up to 4,000 dimensions


class Additive(Mechanism):
    """A mechanism that adds noise to every coordinate of a clipped vector."""

    sampler: ClassVar[type[Sampler]] = NoiseSampler

    clip: float
    snap: Snap
    search: Search

    def __post_init__(self) -> None:
        """Check every parameter, and that δ is given only where it is asked for."""
        super().__post_init__()
        delta, calibration = getattr(self, "delta", None), getattr(self, "calibration", None)
        if delta is not None and calibration == "published":
            raise SettingsError(
                f"mechanism.delta: {delta!r} given, but `calibration: published` takes none; valid: leave it out."
            )

    def add(
        self,
        lexicon: Lexicon,
        noise: str,
        parameters: tuple[float, ...],
        guarantee: Guarantee,
        summary: NoiseSummary,
    ) -> NoiseSampler:
        """Return the sampler that adds noise to clipped vectors.

        Args:
            lexicon: V words.
            noise: one of `NOISES`, with its `parameters`, the scale first.
            parameters: of the noise.
            guarantee: what holds for one draw.
            summary: public figures of the noise; those of the clipping are added.
        """
        vectors = np.ascontiguousarray(lexicon.vectors)
        centers = clipped(vectors, self.clip)
        targets = centers if self.snap == "clipped" else vectors
        share = float(_share_clipped(vectors, float(self.clip)))
        summary = replace(
            summary, clip=float(self.clip), clipped_share=share, snap=self.snap, scale=parameters[0]
        )
        return NoiseSampler.of(centers, targets, noise, parameters, guarantee, summary, search=self.search)


def epsilon_number() -> Any:
    """Declare the parameter `epsilon`."""
    return number(10.0, "ε between any two words.", least=LEAST_EPSILON)


def delta_number(default: str) -> Any:
    """Declare the parameter `delta`; `default` says what null stands for."""
    meaning = f"δ; null: {default}. Not with `calibration: published`, which has its own."
    return number(None, meaning, above=0, below=1, null=True)


def clip_number() -> Any:
    """Declare the parameter `clip`."""
    return number(1.0, "C, the length to which longer vectors are shortened.", above=0)


def snap_choice() -> Any:
    """Declare the parameter `snap`."""
    meaning = "The word that is released: that with the nearest `clipped` vector; `published`: with the nearest vector as it is."
    return choice(Snap, "clipped", meaning)


def scale_of(sensitivity: float, divisor: float, epsilon: float) -> float:
    """Return sensitivity / divisor, a little above it: more than the rounding of a few operations can have lost.

    Raises:
        SettingsError: noise of this scale is too long or too short for float64; `epsilon` is what the message names.
    """
    scale = upwards(sensitivity / divisor)
    if not SHORTEST <= scale <= LONGEST:
        raise SettingsError(
            f"mechanism.epsilon: {epsilon!r} given; valid: such that the scale of the noise, which grows with clip and falls "
            f"with epsilon and is {scale:.3g} here, lies between {SHORTEST:g} and {LONGEST:g}."
        )
    return scale


def upwards(x: float) -> float:
    """Return a number a little above x >= 0, at most by a factor of 1 + 2^-49 for a normal x."""
    return math.nextafter(x * (1.0 + 2.0**-50), math.inf)


def guarantee_between_all(epsilon: float, delta: float | None = None, more: str = "") -> Guarantee:
    """Return ε-DP, or (ε, δ)-DP where δ is given, between all words; `more` is a sentence to add."""
    stated = f"ε = {epsilon:.16g}" if delta is None else f"ε = {epsilon:.16g} and δ = {delta:.6g}"
    kind = "ε" if delta is None else "(ε, δ)"
    sentence = (
        f"One drawn word is {kind}-differentially private with {stated} against every other word of the lexicon.{more} "
        f"{FLOATING_POINT}"
    )
    if delta is None:
        return Guarantee("epsilon_dp", float(epsilon), status="claimed", sentence=sentence)
    return Guarantee("approx_dp", float(epsilon), delta=delta, status="claimed", sentence=sentence)


def clipped(vectors: F32, clip: float) -> F32:
    """Return float32[V, d]: each row x·min(1, C/|x|); no row is longer than C, as a real number."""
    out = np.empty_like(vectors)
    _clip(vectors, float(clip), out)
    return out


@compiled
def _length(vectors: Any, i: int) -> Any:
    total = 0.0
    for j in range(vectors.shape[1]):
        total += np.float64(vectors[i, j]) * np.float64(vectors[i, j])
    return math.sqrt(total)


@compiled
def _clip(vectors: Any, clip: float, out: Any) -> None:
    for i in range(vectors.shape[0]):
        length = _length(vectors, i) * _ROOM
        if length <= clip:
            out[i] = vectors[i]
            continue
        factor = clip / length
        for j in range(vectors.shape[1]):
            exact = np.float64(vectors[i, j]) * factor
            rounded = np.float32(exact)
            if abs(np.float64(rounded)) > abs(exact):
                rounded = np.nextafter(rounded, np.float32(0.0))
            out[i, j] = rounded


@compiled
def _share_clipped(vectors: Any, clip: float) -> float:
    count = 0
    for i in range(vectors.shape[0]):
        if _length(vectors, i) > clip:
            count += 1
    return float(count / vectors.shape[0])
