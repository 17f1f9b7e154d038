"""From settings, requirements and a public text to the settings of the mechanism that meet them with most of the text left.

Each combination of K, mapping and remap is looked at by its least ε first. All figures of a text are limited from above and rise
with ε, so a combination is out where one fails there. In the others the interval between an ε that holds and one that fails is
halved, one step each in turn. A look draws the whole text with public numbers and links it; nothing is released.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from itertools import product
from time import monotonic
from typing import Any

import numpy as np
import pyarrow as pa

from dptext_spark.audit import epsilon_search
from dptext_spark.audit.attacks import linkage
from dptext_spark.audit.attacks.aligned_rows import RowWords, released_rows, source_rows, without_names
from dptext_spark.audit.attacks.linkage import Laws, Linker, Pairs, Standings
from dptext_spark.audit.attacks.linkage_scores import Ranks
from dptext_spark.audit.comparison_input import Records
from dptext_spark.audit.epsilon_search import Search, Trial, WordRequirement
from dptext_spark.audit.find_epsilon import check_search, groups_of, prior_over, standing
from dptext_spark.audit.options import MOST_QUERIES
from dptext_spark.audit.text_utility import vector_similarity
from dptext_spark.config.file import dumped
from dptext_spark.config.model import ModelConfig
from dptext_spark.config.requirements import (
    LINKAGE,
    MEANING,
    Requirement,
    RequirementResult,
    named_requirement,
    split_subject,
)
from dptext_spark.encoder.name_classifier import read_classifier
from dptext_spark.errors import SettingsError, did_you_mean
from dptext_spark.lexicon.lexicon import Lexicon, with_shared_words
from dptext_spark.mechanisms.base import Mechanism, Sampler
from dptext_spark.mechanisms.custext import CusText
from dptext_spark.mechanisms.remap import Remappable
from dptext_spark.mechanisms.remap import released as remapped
from dptext_spark.model.compile import for_policy, in_table_order, load_lexicons
from dptext_spark.model.privatizer import Privatizer, providers_of
from dptext_spark.randomness import RunKey, hash_keys
from dptext_spark.runtime.display import Progress, by_default
from dptext_spark.runtime.validation import Json
from dptext_spark.text.tokens import read
from dptext_spark.text.word_table import WordTable

SINGLED = "singled_out"
OF_TEXT = (*(name for name in LINKAGE if "author" not in name), SINGLED)
FIGURE_OF = {figure: name for name, figure in linkage.FIGURES.items()} | {SINGLED: linkage.RELEASED}
SETS = (100, 60, 20, 10)  # K
ROWS, MOST_ROWS = 10_000, 20_000  # texts that are linked: where no requirement says how many, at most
STEPS = 8  # halvings of a combination's interval: from 0.01 to 100 within 4 per cent
FIRST_SECONDS, SECONDS = 105.0, 840.0  # until it is said that nothing holds; for everything
KEY = RunKey.insecure(1)  # public: a search is repeatable, and what it draws is thrown away


def text_requirement(text: str) -> Requirement[str] | None:
    """Read a requirement of a figure that a public text has; None for one of words.

    Raises:
        SettingsError: a public text has no such figure, or the limit is one from below.
    """
    match = re.match(r"\s*(\w+)\s*[(<>]", text)
    if match is None or not (match[1] in MEANING or match[1].startswith("linkage")):
        return None
    whose = "a public text, because a public text has no attributes, labels or authors"
    if match[1] not in OF_TEXT:
        raise SettingsError(
            f"require: {match[1]!r} is no figure of {whose}.{did_you_mean(match[1], OF_TEXT)} Choose {', '.join(OF_TEXT)}."
        )
    requirement = named_requirement(text, OF_TEXT, whose)
    if not requirement.caps:
        raise SettingsError(
            f"require: {text!r} is not valid. Use an upper limit (<= or <), because a search begins at the least risk."
        )
    return requirement


class PublicText:
    """Public texts, and their releases by each law of the search.

    `model`: makes a privatizer of a lexicon and a sampler. All have one fingerprint, and so the same random numbers.
    """

    def __init__(
        self, config: ModelConfig, lexicon: Lexicon, texts: pa.Array, limits: Sequence[Requirement[str]]
    ) -> None:
        """Read the texts once: each law changes only their release."""
        self.limits, self._texts, self._vectors = limits, texts, lexicon.vectors
        self.model = partial(
            Privatizer, policy=config.policy, consistency=config.consistency,
            table=WordTable.build(lexicon.vocabulary, config.policy.stop_list()),
            classifier=read_classifier(config.policy.names), imported=providers_of(config.policy), fingerprint="of no release",
        )  # fmt: skip
        self._rows = np.arange(len(texts), dtype=np.uint64)
        places = np.linspace(0, len(texts) - 1, min(MOST_QUERIES, len(texts))).astype(np.int64)
        self._queries = pa.array(places)
        self._adversaries = {FIGURE_OF[_figure(limit)] for limit in limits}
        self._sources: list[RowWords] = []

    def judged(self, lexicon: Lexicon, sampler: Sampler) -> tuple[tuple[RequirementResult, ...], float]:
        """Release the texts; return the limits' results, and how much liker a text is to its release than to another's (cosine).

        Raises:
            SettingsError: the law cannot be read, or no text has as many drawn words as an adversary is to know.
        """
        model = self.model(lexicon, sampler)
        if not linkage.has_law(model):
            raise SettingsError(
                f"require: {self.limits[0].subject!r} needs a mechanism with a readable law, and this one has none. "
                "Choose custext, santext, tem or diffractor."
            )
        outputs, _ = model.privatize(self._texts, column="text", row_ids=pa.array(self._rows), key=KEY)
        keys, level = hash_keys(KEY.derive("linkage", length=16)), model.consistency
        plain, private = ([texts.take(self._queries), texts] for texts in (self._texts, outputs))
        if not self._sources:
            self._sources = [source_rows(model.engine, [texts], keys, level) for texts in plain]
        rows = (self._rows[self._queries.to_numpy()], self._rows)
        released = (released_rows(model.engine, [texts], keys, level) for texts in private)
        queries, every = map(Pairs, self._sources, released, rows)
        standings = self._linked(model, queries, every)
        results = tuple(self._result(limit, standings) for limit in self.limits)
        before, after = read(model.engine, plain[0]), read(without_names(model.engine), private[0])
        similarity = vector_similarity(self._vectors, before, after)
        return results, similarity.mean.value - similarity.others

    def _linked(self, model: Privatizer, queries: Pairs, every: Pairs) -> dict[str, Standings]:
        """Compute the ranks of the queries for each adversary that is asked for."""
        asked = self._adversaries
        by_law = asked - set(linkage.BY_COSINE.values())
        laws = None
        if by_law:  # what an output tells by itself is read only where it counts
            laws = Laws(model, np.zeros(len(model.vocabulary)) if by_law == {linkage.RELEASED} else None)
        linker = Linker(queries, KEY, laws=laws, shared=model.consistency != "token", asked=asked)
        linker.add(every)
        standings = {}
        for name, state, fit in linker.standings:
            sought = state != linkage.NOT_ASKED
            counts = Ranks(*(count[sought] for count in fit))
            standings[name] = Standings(counts, state[sought] == linkage.LOST, len(every.rows) - 1)
        return standings

    def _result(self, limit: Requirement[str], standings: Mapping[str, Standings]) -> RequirementResult:
        """Compare the upper end of a figure's interval with its limit."""
        subject, among = split_subject(limit.subject)
        standing = standings[FIGURE_OF[_figure(limit)]]
        if not len(standing.lost):
            raise SettingsError(
                f"require: no text has as many different drawn words as {limit.subject!r} needs. Use longer texts."
            )
        top = subject.rsplit("_top", 1)[-1]
        estimate = standing.singled_out if subject == SINGLED else standing.rate(int(top), among)
        upper = estimate.upper
        return RequirementResult(estimate.value, upper, limit.holds(upper), None, exact=False)


def _figure(limit: Requirement[str]) -> str:
    """Return a figure without how many are looked at and of how many."""
    return split_subject(limit.subject)[0].rsplit("_top", 1)[0]


@dataclass(kw_only=True)
class Combination(Search):
    """The search for ε in one combination of settings.

    Attributes:
        chosen: its settings beside ε.
        similarities: by how much a text is liker its release than another's, by ε.
    """

    chosen: Mapping[str, str | int]
    mechanism: Mechanism
    lexicon: Lexicon
    text: PublicText
    similarities: dict[float, float] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the settings."""
        return ", ".join(part for part in (self.mechanism.name, _assignments(self.chosen)) if part)

    @property
    def limits(self) -> tuple[WordRequirement | Requirement[str], ...]:
        """The requirements on words, then those on the text."""
        return (*self.requirements, *self.text.limits)

    @property
    def epsilon(self) -> float | None:
        """The largest ε that holds; None where the least does not."""
        return max((epsilon for epsilon, point in self.seen.items() if point.holds), default=None)

    @property
    def shortfall(self) -> float:
        """By how much the least ε misses the limits, at most; infinite where it is refused."""
        pairs = zip(self.limits, self.least.findings, strict=False)
        return max((limit.shortfall(finding) for limit, finding in pairs), default=math.inf)

    @property
    def left(self) -> float:
        """The similarity at that ε."""
        assert self.epsilon is not None
        return self.similarities[self.epsilon]

    @property
    def least(self) -> Trial:
        """The findings at the least ε."""
        return self.seen[min(self.seen)]

    def judged(self, sampler: Sampler, step: str) -> tuple[RequirementResult, ...]:
        """Compare a compiled mechanism with the requirements on words and with those on the text."""
        of_words = super().judged(sampler, step)
        of_text, self._similarity = self.text.judged(self.lexicon, sampler)
        return (*of_words, *of_text)

    def look(self, epsilon: float) -> Trial:
        """Examine an ε, once."""
        point = super().look(epsilon)
        if point.findings:
            self.similarities.setdefault(epsilon, self._similarity)
        return point

    def refine(self, high: float) -> bool:
        """Look at one more ε above one that holds; return whether there is one."""
        looks = len(self.seen)
        if high not in self.seen:
            self.look(high)
        elif self.epsilon is not None and self.epsilon < high:
            epsilon_search.bisect(self, self.epsilon, 1)
        return len(self.seen) > looks


@dataclass(frozen=True, eq=False)
class FoundSetting:
    """The combinations that meet every requirement, and those that none of their ε lets meet them.

    Attributes:
        met: at least one; the one whose release is most like the text first.
        broken: at their least ε.
        is_cut: whether time ended the search before every ε was as exact as asked.
    """

    met: tuple[Combination, ...]
    broken: tuple[Combination, ...]
    rows: int
    queries: int
    is_cut: bool

    @property
    def settings(self) -> str:
        """The best one as YAML."""
        best = self.met[0]
        return dumped({"mechanism": best.mechanism.as_dict() | {"epsilon": best.epsilon}}, 100)

    def as_dict(self) -> dict[str, Json]:
        """Return everything, JSON-able."""
        return {
            "name": "settings",
            "meaning": "settings of the mechanism that meet the requirements on a public text, best utility first",
            "restricted": False,
            "requirements": [str(limit) for limit in self.met[0].limits],
            "texts": self.rows,
            "queries": self.queries,
            "cut_short": self.is_cut,
            "met": [self._described(combination) for combination in self.met],
            "broken": [self._described(combination) for combination in self.broken],
        }

    def _described(self, combination: Combination) -> dict[str, Json]:
        return {
            **combination.chosen,
            "epsilon": combination.epsilon,
            "curve": [
                {
                    "epsilon": epsilon,
                    "refused": point.refused,
                    "similarity": combination.similarities[epsilon] if point.findings else None,
                    "figures": [
                        {
                            "name": str(limit.subject),
                            "value": finding.value,
                            "judged": finding.judged,
                            "holds": finding.holds,
                        }
                        for limit, finding in zip(combination.limits, point.findings, strict=False)
                    ],
                }
                for epsilon, point in sorted(combination.seen.items())
            ],
        }


def find_setting(
    config: ModelConfig,
    require: Sequence[str],
    public: Records,
    *,
    low: float = epsilon_search.LOW,
    high: float = epsilon_search.HIGH,
    steps: int = STEPS,
    words: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> FoundSetting:
    """Search K, mapping, remap and the largest ε of each that satisfy requirements on a public text.

    Args:
        config: the settings; their own ε, K, mapping and remap play no part.
        require: requirements, of which one or more are about the text, such as `linkage_top1(10000) <= 0.1`.
        public: the texts, at least as many as the requirements choose from.
        low: the least ε.
        high: the largest one.
        steps: how often the interval of a combination is halved.
        words: those that `bayes words` is about.
        progress: progress callback, called with each step. None shows them on stderr in a notebook or terminal.

    Raises:
        SettingsError: an invalid requirement or range, too few texts, a mechanism without a law, or requirements that no
            combination satisfies: the message names the nearest.
        DataError: the lexicon is missing or damaged.
    """
    limits = [limit for limit in map(text_requirement, require) if limit is not None]
    of_words = [epsilon_search.word_requirement(text) for text in require if text_requirement(text) is None]
    if not limits:
        raise SettingsError(
            f"public: given, but no requirement is about a text. Add one on {', '.join(OF_TEXT)}."
        )
    epsilon_search.check_range(low, high)
    if steps < 0:
        raise SettingsError(f"steps: {steps} is not valid. Use 0 or more.")
    check_search(config, of_words, words)
    if config.importance is not None:
        raise SettingsError(
            "importance: with it, no law gives the probability of a release. Leave it out (--set importance=null)."
        )
    texts = public.spaced(_rows_for(limits, len(public.texts))).texts
    say, begin = progress or by_default(), monotonic()
    lexicons = with_shared_words(load_lexicons(config, say))
    first = lexicons[0]
    search = partial(
        Combination, requirements=of_words, text=PublicText(config, first, texts, limits), total=len(first),
        prior=prior_over(config, first), prior_name=first.prior.name, groups=groups_of(first, words),
        sample=lambda: np.arange(len(first), dtype=np.int32),
    )  # fmt: skip
    whole = in_table_order(lexicons, config.policy) if config.mechanism.reads_context else lexicons
    over = cache(lambda mechanism: mechanism.over_epsilons(*whole))
    draw = lru_cache(maxsize=1)(
        lambda mechanism, epsilon: over(mechanism)(epsilon)
    )  # with a remap and without
    looked: list[Combination] = []
    combinations = [*_combinations(config.mechanism)]
    for chosen in combinations:
        is_hopeful = any(combination.least.holds for combination in looked)
        if looked and monotonic() - begin > (SECONDS / 2 if is_hopeful else FIRST_SECONDS):
            break
        mechanism = replace(config.mechanism, **chosen)
        own = for_policy(mechanism, whole, config.policy)[0]
        name = f"{_assignments({'mechanism': mechanism.name, **chosen})} ({len(looked) + 1} of {len(combinations)})"
        looked.append(
            search(
                chosen=chosen, mechanism=mechanism, lexicon=own, compile_at=partial(_compiled, mechanism, own, draw),
                say=_named_progress(say, name),
            )
        )  # fmt: skip
        looked[-1].look(low)
    met = [combination for combination in looked if combination.least.holds]
    if not met:
        raise SettingsError(_nearest(looked, len(combinations), low))
    waiting, is_cut = list(met), len(looked) < len(combinations)
    for _ in range(steps + 1):
        for combination in tuple(waiting):
            is_late = monotonic() - begin > SECONDS
            is_cut = is_cut or is_late
            if is_late or not combination.refine(high):
                waiting.remove(combination)
    met.sort(key=lambda combination: -combination.left)
    broken = tuple(combination for combination in looked if not combination.least.holds)
    return FoundSetting(tuple(met), broken, len(texts), min(MOST_QUERIES, len(texts)), is_cut)


def _combinations(mechanism: Mechanism) -> Iterator[dict[str, Any]]:
    """Yield the values of K, mapping and remap, as far as the mechanism has them; those that protect most first."""
    values: dict[str, Sequence[Any]] = {}
    if isinstance(mechanism, CusText):
        values = {"k": SETS, "mapping": ("clustered", "balanced", "aggressive")}
    if isinstance(mechanism, Remappable) and not mechanism.reads_context:
        values["remap"] = ("none", "bayes")
    for chosen in product(*values.values()):
        yield dict(zip(values, chosen, strict=True))


def _assignments(chosen: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in chosen.items())


def _named_progress(say: Progress, name: str) -> Progress:
    """Return a progress callback that says of which settings a step is."""
    return lambda step, share: say(f"{name}: {step}", share)


def _compiled(
    mechanism: Mechanism, lexicon: Lexicon, draw: Callable[[Mechanism, float], Sampler], epsilon: float
) -> Sampler:
    """Compile a mechanism at an ε, from its law before the remap."""
    if not isinstance(mechanism, Remappable):
        return draw(mechanism, epsilon)
    sampler: Sampler = remapped(mechanism, draw(mechanism.without_remap, epsilon), lexicon)
    return sampler


def _nearest(looked: Sequence[Combination], many: int, low: float) -> str:
    """State that nothing meets the requirements, and what comes nearest.

    Raises:
        SettingsError: the mechanism refuses the least ε everywhere.
    """
    nearest = min(looked, key=lambda combination: combination.shortfall)
    if not nearest.least.findings:
        raise SettingsError(f"the mechanism refuses ε = {low:g}: {nearest.least.refused}")
    of = (
        f"{len(looked)} settings"
        if len(looked) == many
        else f"the {len(looked)} of {many} settings tried in time"
    )
    limits = " and ".join(map(str, nearest.limits))
    return (
        f"require: none of {of} satisfies {limits} at the least ε, {low:g}. The nearest is {nearest}: "
        f"{standing(nearest.limits, nearest.least, nearest.lexicon)}."
    )


def _rows_for(limits: Sequence[Requirement[str]], texts: int) -> int:
    """Return the number of texts to link.

    Raises:
        SettingsError: there are fewer than a requirement chooses from, or it chooses from more than a search links.
    """
    if texts < linkage.FEWEST:
        raise SettingsError(
            f"public: {texts:,} texts are too few. Give {linkage.FEWEST:,} or more, one on each line."
        )
    for limit in limits:
        among = split_subject(limit.subject)[1] or 0
        if among > min(texts, MOST_ROWS):
            raise SettingsError(
                f"require: {limit} cannot be measured with {texts:,} public texts. Give at least {among:,} texts, or "
                f"require fewer candidates; a search links at most {MOST_ROWS:,}."
            )
    return max(*(split_subject(limit.subject)[1] or 0 for limit in limits), min(texts, ROWS))
