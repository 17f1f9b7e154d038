"""What exact calibration gains: how much of a text stays as it was at the same certified ε, published and exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.all_pairs import Exponential, calibrated
from benchmarks.measure import Grid, Section
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import TEM, CusText, Diffractor, SanText
from dptext_spark.mechanisms.numerics.elementary import logarithm
from dptext_spark.mechanisms.privacy_loss import by_distance, by_steps
from dptext_spark.mechanisms.privacy_loss.loss import internal_epsilon
from dptext_spark.mechanisms.samplers.exponential import DEEPEST
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler

EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
WITHIN = 1e-3  # how far below the promise a search over all pairs may stay, relative to it
CERTIFIED = 2.0  # the ε at which the compiled law of a search's result is certified here, too
HEADINGS = ("lexicon", "mechanism", "ε", "internal ε", "kept, %", "exact, %", "distance", "exact")
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gain:
    """One row: a mechanism at one certified ε.

    Attributes:
        lexicon: its name.
        mechanism: its name.
        epsilon: the ε that holds for both.
        internal: the ε that the law is made with under exact calibration.
        kept: mean P(w|w) as published, and exact.
        distance: mean Euclidean distance of the output to the original, as published, and exact.
        words: over how many words the means go.
    """

    lexicon: str
    mechanism: str
    epsilon: float
    internal: float
    kept: tuple[float, float]
    distance: tuple[float, float]
    words: int

    def as_dict(self) -> dict[str, Any]:
        """Return the row, JSON-able, with six digits."""
        return {
            "lexicon": self.lexicon,
            "mechanism": self.mechanism,
            "epsilon": self.epsilon,
            "internal": round6(self.internal),
            "kept": [round6(share) for share in self.kept],
            "distance": [round6(mean) for mean in self.distance],
            "words": self.words,
        }


def round6(value: float) -> float:
    """Return six significant digits."""
    return float(f"{value:.6g}")


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Compare both calibrations with every lexicon that is here."""
    section = Section("calibration", "Exact calibration: what it gains at equal certified ε")
    found, section.skipped = lexicons(sizes.lexicon_words)
    gains: list[Gain] = []
    section.facts = {"certified_here": [], "sample": sizes.sample_words}
    for name, lexicon in found:
        words = _sample(len(lexicon), sizes.sample_words)
        say(f"calibration: {name}, custext")
        gains += _custext(name, lexicon, words)
        say(f"calibration: {name}, santext and tem")
        gains += _whole(name, lexicon, section.facts["certified_here"])
        say(f"calibration: {name}, diffractor")
        gains += _diffractor(name, lexicon, words, section.facts["certified_here"])
    section.facts["gains"] = [gain.as_dict() for gain in gains]
    section.grids = [Grid("", HEADINGS, tuple(_shown(gain) for gain in gains))]
    section.notes = [
        "kept: mean probability that a word comes out as itself; distance: mean Euclidean distance of what comes out. "
        f"santext, tem and kept of the diffractor over all words, the rest over {sizes.sample_words} words, the same for both.",
        "diffractor is its form tem. Its geometric form gains nothing: two neighbours of a list lose ε exactly, so the internal "
        "ε is the one asked for.",
        f"At ε = {CERTIFIED:g} the laws of tem and the diffractor are compiled with the internal ε, and certified.",
    ]
    return section


def markdown(gains: list[dict[str, Any]]) -> str:
    """Return the gains of a record as the table of docs/guide/epsilon: published → exact."""
    named = dict.fromkeys((gain["lexicon"], gain["mechanism"]) for gain in gains)
    epsilons = list(dict.fromkeys(gain["epsilon"] for gain in gains))
    lines = [
        f"| published → exact, ε = | {' | '.join(f'{epsilon:g}' for epsilon in epsilons)} |",
        f"|---|{'---|' * len(epsilons)}",
    ]
    for lexicon, mechanism in named:
        row = [gain for gain in gains if (gain["lexicon"], gain["mechanism"]) == (lexicon, mechanism)]
        for figure, shown, scale in (("kept", "kept, %", 100), ("distance", "distance", 1)):
            cells = [" → ".join(f"{scale * value:.3g}" for value in gain[figure]) for gain in row]
            lines.append(f"| {lexicon}, {mechanism}: {shown} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _shown(gain: Gain) -> tuple[str | float, ...]:
    shares = (100 * share for share in gain.kept)
    return gain.lexicon, gain.mechanism, gain.epsilon, gain.internal, *shares, *gain.distance


def _sample(words: int, size: int) -> npt.NDArray[np.int32]:
    return np.sort(np.random.default_rng(0).choice(words, min(size, words), replace=False)).astype(np.int32)


def _custext(name: str, lexicon: Lexicon, words: npt.NDArray[np.int32]) -> list[Gain]:
    """Compile both; the laws of the sample are read off their tables."""
    gains, k = [], min(20, len(lexicon) // 2)
    for epsilon in EPSILONS:
        published = CusText(epsilon=epsilon, k=k).compile(lexicon)
        exact = CusText(epsilon=epsilon, k=k, calibration="exact").compile(lexicon)
        kept, distance = zip(
            *(_means(lexicon, sampler, words) for sampler in (published, exact)), strict=True
        )
        internal = float(exact.summary.internal_epsilon)
        gains.append(Gain(name, "custext", epsilon, internal, kept, distance, len(words)))
    return gains


def _means(lexicon: Lexicon, sampler: Any, words: npt.NDArray[np.int32]) -> tuple[float, float]:
    """Return (mean P(w|w), mean distance of the output) over some words, by their laws."""
    kept, distance = 0.0, 0.0
    for word in words:
        law = sampler.law(int(word))
        gaps = lexicon.vectors[law.ids].astype(np.float64) - lexicon.vectors[word]
        kept += float(law.probability[law.ids == word].sum())
        distance += float(law.probability @ np.linalg.norm(gaps, axis=1))
    return kept / len(words), distance / len(words)


def _whole(name: str, lexicon: Lexicon, certified: list[dict[str, Any]]) -> list[Gain]:
    """Search all promises of SanText and TEM at once, over all pairs of words."""
    words = len(lexicon)

    def law_of(epsilon: float, number: int) -> Exponential:
        cut = DEEPEST / (epsilon / 2.0)
        return Exponential(
            epsilon / 2.0, cut if number < len(EPSILONS) else min(cut, TEM(epsilon=epsilon).radius(words))
        )

    internal, published, exact = calibrated(
        np.asarray(lexicon.vectors), [*EPSILONS, *EPSILONS], law_of, WITHIN
    )
    kept = [np.exp(-logs).mean(axis=1).tolist() for logs, _ in (published, exact)]
    distance = [far.mean(axis=1).tolist() for _, far in (published, exact)]
    gains = [
        Gain(name, mechanism, epsilon, at, shares, means, words)
        for mechanism, epsilon, at, shares, means in zip(
            [SanText.name] * len(EPSILONS) + [TEM.name] * len(EPSILONS), [*EPSILONS, *EPSILONS], internal,
            zip(*kept, strict=True), zip(*distance, strict=True), strict=True,
        )
    ]  # fmt: skip
    chosen = len(EPSILONS) + EPSILONS.index(CERTIFIED)
    sampler = TEM(epsilon=internal[chosen]).compile(lexicon)
    certified.append(_certified(name, "tem", by_distance(sampler).value, internal[chosen]))
    return gains


def _certified(name: str, mechanism: str, loss: float, internal: float) -> dict[str, Any]:
    return {
        "lexicon": name, "mechanism": mechanism, "epsilon": CERTIFIED, "internal": round6(internal), "loss": loss,
        "holds": loss <= CERTIFIED,
    }  # fmt: skip


def _diffractor(
    name: str, lexicon: Lexicon, words: npt.NDArray[np.int32], certified: list[dict[str, Any]]
) -> list[Gain]:
    """Search along one list: two neighbours at its ends lose most, for there the sums of their weights differ most."""
    mechanism = Diffractor(epsilon=CERTIFIED, form="tem")
    listed = mechanism.compile(lexicon)
    gains = []
    for epsilon in EPSILONS:
        internal = internal_epsilon(epsilon, lambda e: _list_loss(len(lexicon), e, mechanism.beta))
        both = [_list_means(lexicon, listed, words, at, mechanism.beta) for at in (epsilon, internal)]
        kept, distance = zip(*both, strict=True)
        gains.append(Gain(name, "diffractor", epsilon, internal, kept, distance, len(words)))
        if epsilon == CERTIFIED:
            sampler = Diffractor(epsilon=internal, form="tem").compile(lexicon)
            certified.append(_certified(name, "diffractor", by_steps(sampler).value, internal))
    return gains


def _list_weights(words: int, epsilon: float, beta: float) -> tuple[Reals, Reals]:
    """Return (the weight of each displacement, the sum of the weights at each position), float64[V] each."""
    reach = 2.0 / epsilon * logarithm((1.0 - beta) * (words - 1) / beta)
    weight = np.exp(-epsilon / 2.0 * np.minimum(np.arange(words, dtype=np.float64), max(reach, 0.0)))
    below = np.cumsum(weight)
    return weight, below + below[::-1] - weight[0]


def _list_loss(words: int, epsilon: float, beta: float) -> float:
    _, total = _list_weights(words, epsilon, beta)
    return float(epsilon / 2.0 + np.abs(np.diff(np.log(total))).max())


def _list_means(
    lexicon: Lexicon, listed: OrderingSampler, words: npt.NDArray[np.int32], epsilon: float, beta: float
) -> tuple[float, float]:
    """Return (mean P(w|w) over all words, mean distance of the output over some)."""
    weight, total = _list_weights(len(lexicon), epsilon, beta)
    walk = lexicon.vectors[listed.order[0]].astype(np.float64)
    distance = 0.0
    for place in listed.place[words, 0]:
        law = weight[np.abs(np.arange(len(walk)) - place)] / total[place]
        near = law > 1e-12  # all that a mean of six digits can tell
        gaps = np.linalg.norm(walk[near] - walk[place], axis=1)
        distance += float(law[near] @ gaps)
    return float((weight[0] / total).mean()), distance / len(words)
