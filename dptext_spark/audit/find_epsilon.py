"""From settings and requirements to the largest ε that meets them over the words of the lexicon."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import F64, Bools
from dptext_spark.audit import epsilon_search
from dptext_spark.audit.attacks.adversary import GIVEN_WORDS, NAMES
from dptext_spark.audit.epsilon_search import Calibration, Search, Trial, WordRequirement
from dptext_spark.config.model import ModelConfig
from dptext_spark.config.requirements import Requirement
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.lexicon.lexicon import Lexicon, with_shared_words
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.model.compile import for_policy, load_lexicons
from dptext_spark.rounding import exact, round_conservatively
from dptext_spark.runtime.display import Progress, by_default, line
from dptext_spark.runtime.validation import Json
from dptext_spark.text.engine import Engine
from dptext_spark.text.names.public_names import listed_names
from dptext_spark.text.tokens import drawn_words
from dptext_spark.text.word_table import WordTable

QUICK_STEPS, SLOW_STEPS = 24, 12
WORDS = 50  # of a mechanism without a law: a draw is a search of the lexicon


@dataclass(frozen=True, eq=False)
class FoundEpsilon:
    """A search's result with its lexicon and settings.

    Attributes:
        calibration: the result.
        lexicon: the words.
        settings: mechanism and lexicon, JSON-able.

    Examples:
        >>> found = audit.calibrate(config, ["N_w max <= 0.5"], low=1.0, high=16.0, steps=4)
        >>> [point["epsilon"] for point in found.as_dict()["curve"] if point["holds"]]
        [1.0, 4.0]
    """

    calibration: Calibration
    lexicon: Lexicon
    settings: Mapping[str, Json]

    def __repr__(self) -> str:
        """Return ε and the lexicon."""
        return line("FoundEpsilon", f"ε = {exact(self.epsilon)}", repr(self.lexicon))

    @property
    def epsilon(self) -> float:
        """The largest ε that satisfies every requirement."""
        assert self.calibration.epsilon is not None
        return self.calibration.epsilon

    def word(self, word_id: int) -> str:
        """Return a word of the lexicon."""
        return self.lexicon.vocabulary.word(word_id)

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able, with the words that the limits were compared at."""
        return {**self.calibration.as_dict(self.word), "settings": self.settings}


def calibrate(
    config: ModelConfig,
    require: Sequence[str],
    *,
    low: float = epsilon_search.LOW,
    high: float = epsilon_search.HIGH,
    steps: int | None = None,
    sample: int = WORDS,
    words: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> FoundEpsilon:
    """Search the largest ε of the settings' mechanism that satisfies requirements for every word of the lexicon.

    Args:
        config: the settings; their own ε plays no part.
        require: requirements, such as `N_w max <= 0.5`.
        low: the smallest ε to look at.
        high: the largest one.
        steps: how many ε; None for 24, or 12 where compiling takes long.
        sample: words that are drawn from, where the mechanism has no law.
        words: those that `bayes words` is about, such as names that matter; those that the lexicon lacks are never guessed and
            play no part.
        progress: progress callback, called with each step. None shows them on stderr in a notebook or terminal.

    Raises:
        SettingsError: an invalid requirement or range, or requirements that no ε satisfies: the message names the closest.
        DataError: the lexicon is missing or damaged.

    Examples:
        >>> found = audit.calibrate(config, require=["N_w max <= 0.5", "bayes token <= 0.6"], low=1.0, high=16.0, steps=4)
        >>> found.epsilon
        4.0
    """
    parsed = [epsilon_search.word_requirement(text) for text in require]
    if sample < 2:
        raise SettingsError(f"sample: {sample} is not valid. Use 2 or more.")
    check_search(config, parsed, words)
    say = progress or by_default()
    lexicons = with_shared_words(load_lexicons(config, say))
    lexicons = for_policy(config.mechanism, lexicons, config.policy)
    say(f"preparing {config.mechanism.name} for {len(lexicons[0]):,} words", None)
    quick = config.mechanism.sampler.compiles_quickly
    search = Search(
        compile_at=config.mechanism.over_epsilons(*lexicons),
        requirements=parsed,
        total=len(lexicons[0]),
        sample=lambda: epsilon_search.worst_and_typical(lexicons[0].vectors, sample),
        prior=prior_over(config, lexicons[0]),
        prior_name=lexicons[0].prior.name,
        groups=groups_of(lexicons[0], words),
        say=say,
    )
    calibration = search.largest(
        low, high, steps if steps is not None else QUICK_STEPS if quick else SLOW_STEPS
    )
    if calibration.epsilon is None:
        raise SettingsError(_none(calibration, lexicons[0], low, high))
    settings = {name: config.as_dict()[name] for name in ("mechanism", "lexicon")}
    settings["mechanism"]["epsilon"] = calibration.epsilon
    return FoundEpsilon(calibration, lexicons[0], settings | {"lexicon_fingerprint": lexicons[0].fingerprint})


def check_search(config: ModelConfig, parsed: Sequence[WordRequirement], words: Sequence[str] | None) -> None:
    """Refuse settings by which no search can look at many ε, and `bayes words` without words, by a :class:`SettingsError`."""
    if words is None and any(str(limit.subject) == "bayes words" for limit in parsed):
        raise SettingsError("require: 'bayes words' needs words, and none were given. Use --words FILE.")
    if config.run.artifact is not None:
        raise SettingsError(
            f"run.artifact: {config.run.artifact!r} has one ε, and a search compiles many. Leave it out (null)."
        )
    if config.importance is not None and config.importance.levels:
        raise SettingsError(
            "importance.levels: several ε given, and a search finds one. Use null, or importance.percent (--set "
            "importance=null)."
        )
    if config.budget is not None:
        raise SettingsError(
            "budget: it needs an ε for each number of words, and a search finds one. Leave it out (--set budget=null)."
        )


def groups_of(lexicon: Lexicon, words: Sequence[str] | None) -> dict[str, Bools]:
    """Mark the words of the lexicon that are names by public lists, and those that were given."""
    groups = {NAMES: listed_names(lexicon.vocabulary)}
    if words is not None:
        forms = pa.array(sorted({look_up_form(word.strip()) for word in words}), pa.large_string())
        known = pc.is_in(lexicon.vocabulary.strings().cast(pa.large_string()), value_set=forms)
        groups[GIVEN_WORDS] = known.to_numpy(zero_copy_only=False)
    return groups


def prior_over(config: ModelConfig, lexicon: Lexicon) -> F64:
    """Compute the public frequency of the words that the policy draws: float64[V]."""
    table = WordTable.build(lexicon.vocabulary, config.policy.stop_list())
    return of_drawn(lexicon.prior.words, drawn_words(Engine(table, config.policy)))


def _none(search: Calibration, lexicon: Lexicon, low: float, high: float) -> str:
    required = " and ".join(str(limit) for limit in search.requirements)
    closest = search.closest()
    return (
        f"require: none of the {len(search.points)} tried ε from {low:g} to {high:g} satisfies {required}. "
        f"The closest is ε = {closest.epsilon:g}: {standing(search.requirements, closest, lexicon)}."
    )


def standing(requirements: Sequence[Requirement[Any]], point: Trial, lexicon: Lexicon) -> str:
    """Look up the findings at a point, with their words."""
    parts = []
    for requirement, finding in zip(requirements, point.findings, strict=True):
        about = "" if finding.exact else " by its bound"
        at = "" if finding.word is None else f", the word {lexicon.vocabulary.word(finding.word)!r}"
        parts.append(
            f"{requirement.subject} is {round_conservatively(finding.judged, 4, up=requirement.caps)}{about}{at}"
        )
    return " and ".join(parts)
