"""1-Diffractor: the words stand in lists, near words close together, and a draw moves along a list.

Paper: Meisenbacher et al. 2024, "1-Diffractor: Efficient and Utility-Preserving Text Obfuscation Leveraging Word-Level
Metric Differential Privacy".
Formula: a list is a greedy walk to the nearest word left (Euclidean) from a random start; i and j are positions 0 to V-1.
geometric (1-D_G): i + X kept within the list, P(X = x) = (e^ε-1)/(e^ε+1)·e^(-ε|x|).
tem (1-D_T): P(j|i) ∝ exp(-ε·min(|i-j|, G)/2), G = (2/ε)·ln((1-β)(V-1)/β), the paper's gamma.
Several lists: one of them is drawn uniformly, and the word in it; the law is the average of the lists' laws.
Guarantee: metric DP, ε·d with d the largest distance of the two words in any list, because every list holds the same words.
Deviations: each step of a walk is exact (a public implementation takes any word where the 50 nearest are used up); positions
end at V-1 (the paper's |V| is one too many); G is that of the formula (the public package has 5); several embeddings are cut
down to their common words, without which the bound does not hold. The law is in integers out of 2^63. To keep their rounding
within the bound, a share of it (`floor` of the summary, about 1e-12) is uniform; for ε below about 1e-10 all of it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

from dptext_spark.arrays import Ids
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon, same_words
from dptext_spark.lexicon.neighbors import Metric
from dptext_spark.lexicon.orderings import several_walks
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.parameters import LEAST_EPSILON, choice, integer, number
from dptext_spark.mechanisms.privacy_loss.finite import by_steps
from dptext_spark.mechanisms.privacy_loss.loss import Calibration, calibrate, calibration_choice
from dptext_spark.mechanisms.remap import Remap, Remappable, released, remap_choice
from dptext_spark.mechanisms.samplers.ordering import (
    OrderingSampler,
    OrderingSummary,
    Window,
    floor_share,
    radius,
)

Form = Literal["geometric", "tem"]
Preset = Literal["none", "L0", "L1", "L2"]
PRESETS = {"none": None, "L0": (1, 5), "L1": (2, 5), "L2": (1, 1)}  # lists of each embedding, embeddings
MAX_LISTS = 64  # of each embedding
MAX_EMBEDDINGS = 16
MAX_SEED = 2**63 - 1


class Lists(NamedTuple):
    """What is walked.

    Attributes:
        embeddings: how many.
        starts: the word that each list begins at.
        order: int32[L, V], the words of each list.
    """

    embeddings: int
    starts: list[int]
    order: Ids


@dataclass(frozen=True)
class Diffractor(Remappable):
    """The parameters of 1-Diffractor.

    Examples:
        >>> mechanism = dp.Diffractor(epsilon=0.5, form="geometric")
        >>> mechanism.protects
        'metric DP: ε for each place between two words of a list'
    """

    name: ClassVar[str] = "diffractor"
    paper: ClassVar[str] = (
        "Meisenbacher et al. 2024, 1-Diffractor: Efficient and Utility-Preserving Text Obfuscation Leveraging Word-Level "
        "Metric Differential Privacy"
    )
    protects: ClassVar[str] = "metric DP: ε for each place between two words of a list"
    sampler: ClassVar[type[Sampler]] = OrderingSampler

    epsilon: float = number(1.0, "ε for each place between two words of a list.", least=LEAST_EPSILON)
    form: Form = choice(Form, "geometric", "The law along a list; TEM at ε is close to geometric at ε/2.")
    lists: int = integer(1, "Lists of each embedding; each begins at another word.", least=1, most=MAX_LISTS)
    list_seed: int = integer(
        0,
        "What the words that lists begin at are made from. Public: it stands in the summary.",
        least=0,
        most=MAX_SEED,
    )
    preset: Preset = choice(
        Preset,
        "none",
        "A configuration of the paper: `L0` (one list for each of five embeddings), `L1` (two for each of five) or `L2` (one "
        "list, one embedding). The other embeddings are `lexicon.more`.",
    )
    beta: float = number(
        0.001,
        "β of TEM: the share of draws that may end up farther away than the formula's gamma.",
        above=0,
        below=1,
    )
    calibration: Calibration = calibration_choice()
    remap: Remap = remap_choice()

    @property
    def similarity(self) -> Metric:
        """Minus the squared Euclidean distance, in the first embedding."""
        return "euclidean"

    def __post_init__(self) -> None:
        """Check every parameter, and that the preset has as many lists."""
        super().__post_init__()
        preset = PRESETS[self.preset]
        if preset is not None and self.lists not in (1, preset[0]):
            raise SettingsError(
                f"mechanism.lists: {self.lists} given, but preset {self.preset} has {preset[0]}; "
                "valid: leave it out, or preset none."
            )

    def embeddings(self) -> range:
        """Return how many lexicons are needed: any number, or that of the preset."""
        preset = PRESETS[self.preset]
        return range(1, MAX_EMBEDDINGS + 1) if preset is None else range(preset[1], preset[1] + 1)

    def compile(self, lexicon: Lexicon, *others: Lexicon) -> Any:
        """Return the sampler.

        Args:
            lexicon: V words and their first embedding; its metric is not used, lists are Euclidean.
            others: further embeddings of the same words in the same order.

        Raises:
            SettingsError: not as many lexicons as the preset has, or their words differ.
        """
        return self.over_epsilons(lexicon, *others)(self.epsilon)

    def over_epsilons(self, *lexicons: Lexicon) -> Callable[[float], Any]:
        """Return what compiles at another ε, with the lists walked once."""
        return self.along(self.walked(*lexicons), lexicons[0])

    @property
    def lists_of_each(self) -> int:
        """Lists of each embedding: those of the preset, where there is one."""
        return (PRESETS[self.preset] or (self.lists,))[0]

    def walked(self, *lexicons: Lexicon) -> Lists:
        """Walk the lists, which depend on neither ε nor form.

        Raises:
            SettingsError: as of :meth:`compile`.
        """
        allowed = self.embeddings()
        if len(lexicons) not in allowed:
            raise SettingsError(
                f"mechanism.preset: {self.preset} is made of {allowed[-1]} embedding(s) at most, {allowed[0]} at least; "
                f"{len(lexicons)} given."
            )
        if not same_words(lexicons):
            raise SettingsError(
                "lexicon.more: the lexicons do not hold the same words in the same order, and with words that are missing from "
                "a list the guarantee does not hold; valid: lexicons cut down to their common words."
            )
        starts, order = several_walks([one.vectors for one in lexicons], self.lists_of_each, self.list_seed)
        return Lists(len(lexicons), starts, order)

    def along(self, walked: Lists, lexicon: Lexicon) -> Callable[[float], Any]:
        """Return what compiles at an ε along lists that :meth:`walked` made with the same `preset`, `lists` and `list_seed`.

        Args:
            walked: the lists.
            lexicon: the first one, by which outputs are replaced where they are.
        """
        count, words = walked.order.shape
        summary = OrderingSummary(
            words=words,
            form=self.form,
            lists=count,
            embeddings=walked.embeddings,
            preset=self.preset,
            list_seed=self.list_seed,
            starts=tuple(walked.starts),
        )

        def sampler(epsilon: float, guarantee: Guarantee) -> OrderingSampler:
            if self.form == "geometric":
                window, beta, gamma = Window.geometric(words, count, epsilon), None, None
            else:
                window = Window.tem(words, count, epsilon, self.beta)
                beta, gamma = self.beta, radius(words, epsilon, self.beta)
            made = replace(
                summary,
                floor=floor_share(words, count, epsilon),
                unchanged_mid_list=window.unchanged(words // 2),
                unchanged_list_end=window.unchanged(0),
                beta=beta,
                gamma=gamma,
            )
            return OrderingSampler.of(walked.order, window, guarantee, made)

        def compile_at(epsilon: float) -> Any:
            guarantee = replace(self, epsilon=epsilon)._guarantee(count)
            made = calibrate(partial(sampler, guarantee=guarantee), epsilon, self.calibration, by_steps)
            return released(self, made, lexicon)

        return compile_at

    def _guarantee(self, count: int) -> Guarantee:
        places = "in the list" if count == 1 else f"in whichever of the {count} lists they are farthest apart"
        return Guarantee(
            "metric_dp",
            float(self.epsilon),
            metric="list places",
            sentence=(
                f"Between two words that stand d places apart {places}, no output of one draw is more than e^(ε·d) times as "
                f"likely under one as under the other, with ε = {self.epsilon:.16g}: close neighbours are hard to tell apart, "
                "words far apart are not."
            ),
        )
