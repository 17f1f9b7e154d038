"""Attacks on the compiled model alone, and on a public text that it replaces anew: no private text, nothing of the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F64, Bools
from dptext_spark.audit.attacks.adversary import Adversary, adversary, is_small, worst_words
from dptext_spark.audit.attacks.attacked_text import Bigrams, simulate
from dptext_spark.audit.attacks.bayes import BayesAttack, bayes_attack
from dptext_spark.audit.attacks.context import ContextAttack, context_attack
from dptext_spark.audit.attacks.frequency import frequency_attack
from dptext_spark.audit.frontier import Text, seen_vectors
from dptext_spark.audit.results import CONFIDENCE, AuditResult
from dptext_spark.errors import DataError
from dptext_spark.lexicon.prior import Prior, of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report.blocks import capital
from dptext_spark.report.sections.measured import sure
from dptext_spark.rounding import exact, percent_down, percent_up
from dptext_spark.runtime.display import Progress
from dptext_spark.text.tokens import Reading, drawn_words, read

MOST_ENTRIES = 2_000_000_000  # probabilities of a lexicon's laws that are looked at for a report
MOST_LINES = 20_000  # of a public text that are looked at
MOST_SEARCHES = 40_000  # replaced words of it, where each draw is a search of the lexicon
NAMED = 10  # words that are found most often
_NO_TEXT = (
    "The contextual adversary needs a public text to learn from and to attack: --public-text names one."
)
_OTHERS = "Results of attacks on the text itself can be added by --figures."
_CHOSEN = (
    "The attack in context was left out: it takes every word for drawn, and importance chose some. Success on a drawn word is "
    "shown; the other words need no attack."
)
_NOT_THE_RUNS = "Tried on a public text that this model replaced anew, not on the run's."
_BOUNDED = "The black line holds the success of the best possible adversary with a confidence of {}."
_RANKED = (
    "This mechanism has no law to read: the adversary ranks the words of the lexicon by their distance to the output, as it "
    "learnt from draws of its own."
)
_CONSIDERS = "This mechanism has no law to read: the adversary considers the {} likeliest words, each known by draws of its own."


def attacks_on(privatizer: Privatizer, lines: Sequence[str], say: Progress) -> tuple[list[AuditResult], str]:
    """Attack a model.

    Args:
        privatizer: the model.
        lines: of a public text, a record each; none for attacks that need no text.
        say: progress callback, called with each step.

    Returns:
        (results; what is said of attacks that are not among them).
    """
    say("attacking word by word", None)
    alone = _alone(privatizer)
    if privatizer.selector is not None:
        return [alone], f"{_CHOSEN} {_OTHERS}"
    if not lines:
        return [alone], f"{_NO_TEXT} {_OTHERS}"
    say("attacking with context", None)
    return [alone, *_in_context(privatizer, lines)], _OTHERS


def _alone(privatizer: Privatizer) -> BayesAttack:
    """Return the attack on one word at a time."""
    sampler, total = privatizer.sampler, len(privatizer.vocabulary)
    drawn, prior = drawn_words(privatizer.engine), privatizer.prior
    small = is_small(total) and sampler.law(0) is not None
    if sampler.has_short_laws or small:
        found = _of_every_word(bayes_attack(sampler, total, prior, drawn))
    elif sampler.law_columns() is not None and total * total <= MOST_ENTRIES:
        found = _of_every_word(bayes_attack(sampler, total, prior, drawn, backwards=True))
    else:
        found = _estimated(sampler, prior, drawn)
    strings = privatizer.vocabulary.strings()
    also = {
        "words that can be the input": f"{found.candidates:,}",
        **(found.also or {}),
        "most often guessed": ", ".join(strings[word].as_py() for word in found.worst_words[:NAMED]),
        "prior": prior.name,
    }
    return replace(found, most_frequent=found.baseline, random=1.0 / found.candidates, also=also)


def _of_every_word(attack: BayesAttack) -> BayesAttack:
    assert attack.by_word is not None
    assert attack.never is not None
    also = {
        "median word": percent_up(attack.by_word["0.5"]),
        "words that are never guessed": percent_down(attack.never),
    }
    return replace(attack, worst=attack.worst_mean, also=also)


def _estimated(sampler: Sampler, public: Prior, drawn: Bools) -> BayesAttack:
    """Return the attack between bounds, and on the words of a sample that it finds most often."""
    prior = of_drawn(public.words, drawn)
    best = adversary(sampler, prior)
    worst = worst_words(sampler, best, drawn, CONFIDENCE)
    assert best.alone is not None
    trial, fresh = worst.draws
    return BayesAttack(
        success=best.alone.value, lower=best.alone.lower, upper=best.alone.upper, confidence=CONFIDENCE, draws=None,
        how=f"{capital(best.how)}. {_BOUNDED.format(exact(CONFIDENCE))}", worst=worst.mean.value, worst_lower=worst.mean.lower,
        worst_upper=worst.mean.upper, worst_words=worst.words, baseline=float(prior.max()), candidates=int(drawn.sum()),
        restricted=False, settings={"prior": public.name},
        also={
            "words tried for those found most often": f"{worst.looked_at:,}, evenly spaced, {trial} draws each; the "
            f"{len(worst.words)} found most often measured on {fresh} fresh draws each"
        },
    )  # fmt: skip


def _in_context(privatizer: Privatizer, lines: Sequence[str]) -> list[AuditResult]:
    """Learn from every second line, and attack the others as the model would release them."""
    sampler, total, engine = privatizer.sampler, len(privatizer.vocabulary), privatizer.engine
    learnt = read(engine, pa.array(lines[::2], pa.string()))
    text = _short_enough(sampler, read(engine, pa.array(lines[1::2], pa.string())))
    if not text.drawn.any():
        raise DataError("public_text: no word of it would be drawn; valid: a text in the lexicon's language.")
    bigrams = Bigrams.of(learnt.words, learnt.bounds, total, prior=privatizer.prior)
    level, drawn = privatizer.consistency, drawn_words(engine)
    tokens = simulate(sampler, text.words, text.drawn, text.bounds, level, numbers=text.numbers)
    prior = of_drawn(bigrams.unigram[:total], drawn)
    best = adversary(sampler, prior, measured=False)
    plausible = best.plausible(tokens.outputs[tokens.drawn])
    attack = context_attack(
        sampler, tokens, bigrams, drawn, level=level, restricted=False, plausible=plausible
    )
    completed = {"prior": f"pairs and words of the public text, completed by {privatizer.prior.name}"}
    also = {
        "replaced words attacked": f"{attack.tokens:,}",
        "records": f"{attack.records:,}",
        "words learnt from": f"{bigrams.tokens:,}",
        **completed,
        "context adds": f"{100 * attack.gain:.1f} ({100 * attack.gain_lower:.1f} to {100 * attack.gain_upper:.1f}) "
        "points to each word alone",
    }
    attack = replace(attack, measures=f"{attack.measures} {_NOT_THE_RUNS}", also=also)
    if sampler.law(0) is None:
        whole = Text(text.words, text.drawn, text.bounds, drawn, bigrams, level)
        attack = _without_law(attack, sampler, best, whole, prior)
    if level != "dataset":
        return [attack]
    matched = frequency_attack(tokens, bigrams, drawn, plausible, restricted=False)
    matched = replace(
        matched, measures=f"{matched.measures} {_NOT_THE_RUNS}", also={**matched.details, **completed}
    )
    return [attack, matched]


def _without_law(
    attack: ContextAttack, sampler: Sampler, best: Adversary, text: Text, prior: F64
) -> ContextAttack:
    """Say by whom a text was attacked, and what a better adversary may find."""
    above = seen_vectors(
        sampler, text, prior
    )  # 0 where it is not noise on vectors, or its density is not known
    whom = _RANKED if above else _CONSIDERS.format(f"{int(best.considered.sum()):,}")
    if not 0 < above < 1:
        how = f"{sure(attack)} {whom} A better one may find more; how much more is not known."
        return replace(attack, how=how, open=True)
    how = (
        f"Estimated. {whom} The black line reaches from the lower end of its interval to what seeing the noisy vectors would "
        f"give at most, each with a confidence of {exact(CONFIDENCE)}."
    )
    also = {**(attack.also or {}), "found by who sees the noisy vectors, at most": percent_up(above)}
    return replace(attack, how=how, open=False, upper=max(attack.at_most, above), also=also)


def _short_enough(sampler: Sampler, text: Reading) -> Reading:
    """Return the first records of a text, as many as can be drawn in a report's time."""
    if not sampler.searches:
        return text
    drawn = np.append(0, np.cumsum(text.drawn))[text.bounds]
    records = max(1, int(np.searchsorted(drawn, MOST_SEARCHES, side="right")) - 1)
    end = int(text.bounds[records])
    bounds, numbers = text.bounds[: records + 1], text.numbers[:end]
    return Reading(text.words[:end], text.drawn[:end], bounds, numbers)


def read_lines(file: Path | None) -> list[str]:
    """Return the first lines of a public text that are not empty; none without a file.

    Raises:
        DataError: it cannot be read, or holds fewer than two lines.
    """
    if file is None:
        return []
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DataError(
            f"public_text: {str(file)!r} cannot be read as UTF-8 text ({type(error).__name__})."
        ) from None
    lines = [line for line in text.splitlines() if line.strip()][:MOST_LINES]
    if len(lines) < 2:
        raise DataError(
            f"public_text: {str(file)!r} holds {len(lines)} lines; valid: two or more, a record each."
        )
    return lines
