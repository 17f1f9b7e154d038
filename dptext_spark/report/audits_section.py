"""The sections of a report on attacks and utility: results of audits as charts and tables, and attacks on the model.

A result describes its own measurement; its groups of figures become charts, its single ones a table. Attacks on the compiled
model use public text alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import F64, Bools
from dptext_spark.audit.attacks.adversary import Adversary, adversary, is_small, worst_words
from dptext_spark.audit.attacks.attacked_text import Bigrams, simulate
from dptext_spark.audit.attacks.bayes import BayesAttack, bayes_attack
from dptext_spark.audit.attacks.context import ContextAttack, context_attack
from dptext_spark.audit.attacks.frequency import frequency_attack
from dptext_spark.audit.frontier import Text as AttackedText
from dptext_spark.audit.frontier import seen_vectors
from dptext_spark.audit.results import CONFIDENCE, UNPROTECTED, AuditResult, Estimate, Figures, WordAttack
from dptext_spark.audit.text_classifier import LEARNT, DownstreamAccuracy
from dptext_spark.errors import DataError
from dptext_spark.lexicon.prior import Prior, of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report.blocks import Bar, Block, Chart, Points, Section, Table, Text, bars, capital, pairs
from dptext_spark.rounding import exact, percent_down, percent_up
from dptext_spark.runtime.display import Progress
from dptext_spark.text.tokens import Reading, drawn_words, read

_READ = ("Each bar is one figure.", "Plain bars are measurements, and hatched bars are their baselines.")


def measured(one: AuditResult, key: str) -> Iterator[Block]:
    """Draw every group of figures of a result, and list its single ones.

    The ids of its charts begin with `key`.
    """
    intro = " ".join(sentence(part) for part in (one.measures, one.knows) if part)
    shown, drawable = one.shown(), 0
    for group in shown.groups:
        drawn = [_bar(name, value, 0) for name, value in group.figures.items()]
        if not drawable:
            drawn += [_bar(name, value, 1) for name, value in shown.baselines.items()]
        heading = f"{capital(one.name)}: {group.name.replace('_', ' ')}" if group.name else capital(one.name)
        table = _table(drawn)
        if min(bar.value for bar in drawn) < 0:
            yield Points(heading, ())
            yield table
            continue
        shows = (
            (group.shows or f"Further figures: {group.name or 'of the same kind'}.") if drawable else intro
        )
        read = shown.read or _READ[bool(shown.baselines) and not drawable]
        certain = sure(one, bounded=any(bar.low is not None for bar in drawn))
        svg = bars(drawn, key=f"{key}-{drawable}", x=group.axis or group.name)
        yield Chart(heading, shows, f"{read} {certain}", svg, table)
        drawable += 1
    if not drawable:
        yield Points(capital(one.name), (f"{intro} {sure(one)}",))
    single = [(name.replace("_", " "), _figure_text(value)) for name, value in shown.singles.items()]
    if single:
        yield pairs(single)


def _table(drawn: Sequence[Bar]) -> Table:
    """Return bars as a table, with bounds where a bar has any."""
    columns = 3 if any(_bounds(bar) for bar in drawn) else 2
    rows = tuple((bar.name, bar.said, _bounds(bar))[:columns] for bar in drawn)
    return Table(("", "value", "bounds")[:columns], rows)


def _bar(name: str, figure: Estimate | float, kind: int) -> Bar:
    if isinstance(figure, Estimate):
        return Bar(name, figure.value, kind, figure.lower, figure.upper, f"{figure.value:.4g}")
    return Bar(name, float(figure), kind, said=f"{figure:.4g}")


def _bounds(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{bar.low:.4g} to {bar.high:.4g}"


def _figure_text(figure: Estimate | float) -> str:
    if isinstance(figure, Estimate):
        return f"{figure.value:.4g} ({figure.lower:.4g} to {figure.upper:.4g})"
    return f"{figure:,.6g}" if isinstance(figure, float) else str(figure)


def sentence(text: str) -> str:
    """Return text that ends as a sentence does."""
    return text if text.endswith(".") else f"{text}."


def sure(result: AuditResult, *, bounded: bool = True) -> str:
    """Describe how exact a result is, or its figures without bounds."""
    if result.exact:
        return "Exact."
    if result.how:
        return result.how
    if not (result.confidence and bounded):
        return "Estimated, without bounds."
    drawn = f" from {result.draws:,} draws of a word" if result.draws else ""
    return f"Estimated{drawn}. The black line contains the true value with a confidence of {exact(result.confidence)}."


def utility(found: Sequence[AuditResult], missing: str, against: Sequence[AuditResult] = ()) -> Section:
    """Write what the text is still good for, as far as it was measured.

    Attacks on the text that labels were learnt from appear with its utility. `missing` is said where nothing was measured.
    """
    if not found:
        return Section("utility", "Utility", (Text(missing, quiet=True),))
    blocks = [*_beside(found, against)]
    blocks += [block for place, result in enumerate(found) for block in measured(result, f"use{place}")]
    return Section("utility", "Utility", tuple(blocks), restricted=any(result.restricted for result in found))


def _beside(results: Sequence[AuditResult], against: Sequence[AuditResult]) -> Iterator[Block]:
    """Yield, for each audited table whose labels were learnt, one table of usefulness beside risk."""
    for learnt in results:
        if not isinstance(learnt, DownstreamAccuracy) or learnt.audit is None:
            continue
        useful = {LEARNT[name]: figure for name, figure in learnt.accuracy.items()}
        risks = {
            f"{attack.name}: {name}".removesuffix(": "): figure
            for attack in against
            if attack.audit == learnt.audit
            for name, figure in _of_attack(attack).items()
        }
        sides = (
            [(name, _figure_text(figure)) for name, figure in figures.items()]
            for figures in ({**useful, "always the commonest label": learnt.majority}, risks)
        )
        rows = (left + right for left, right in zip_longest(*sides, fillvalue=("", "")))
        yield Points("Usefulness beside risk", ())
        yield Table(("labels predicted", "share", "what an adversary finds", "share"), tuple(rows))


def _of_attack(attack: AuditResult) -> Figures:
    """Return the figures of an attack that come first."""
    if not isinstance(attack, WordAttack):
        return next((group.figures for group in attack.shown().groups), {})
    if attack.lower is None or attack.upper is None:
        return {"": attack.success}
    return {"": Estimate(attack.success, attack.lower, attack.upper)}


def attacks(found: Sequence[AuditResult], missing: str) -> Section:
    """Write what adversaries find, each against its baselines.

    `missing` is said of those that were not made.
    """
    if not found:
        return Section("attacks", "Attacks", (Text(missing, quiet=True),))
    intro = Text(
        "An attack sees the output and guesses the original word, or something about its author. Its baselines are guesses "
        "without the output, and unprotected text."
    )
    blocks: list[Block] = [intro]
    for place, result in enumerate(found):
        key = f"attack{place}"
        blocks += [_chart(result, key)] if isinstance(result, WordAttack) else measured(result, key)
    if missing:
        blocks.append(Text(missing, quiet=True))
    return Section("attacks", "Attacks", tuple(blocks), restricted=any(result.restricted for result in found))


def _chart(one: WordAttack, key: str) -> Chart:
    low, high = (None, None) if one.exact else (one.lower, one.upper)
    drawn = [Bar("this attack", one.success, 0, low, high, percent_up(one.success))]
    if one.worst is not None:
        name = "this attack, on the 1 % of words it finds most often"
        drawn.append(Bar(name, one.worst, 0, one.worst_lower, one.worst_upper, percent_up(one.worst)))
    drawn += [
        Bar(name, value, 2 if name == UNPROTECTED else 1, said=percent_up(value))
        for name, value in one.baselines().items()
    ]
    rows = [(bar.name, bar.said, _between(bar)) for bar in drawn]
    rows += [(name, text, "") for name, text in (one.also or {}).items()]
    columns = 3 if low is not None and high is not None else 2
    return Chart(
        capital(one.name),
        " ".join(sentence(part) for part in (one.measures, one.knows) if part),
        f"The first bar is the attack. A shorter bar means better protection. {sure(one)}",
        bars(drawn, key=key, x="share of the words found", top=1.0),
        Table(("", "share", "bounds")[:columns], tuple(row[:columns] for row in rows)),
    )


def _between(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{100 * bar.low:.2f} to {100 * bar.high:.2f} %"


MOST_ENTRIES = 2_000_000_000  # probabilities of a lexicon's laws that are looked at for a report
MOST_LINES = 20_000  # of a public text that are looked at
MOST_SEARCHES = 40_000  # replaced words of it, where each draw is a search of the lexicon
NAMED = 10  # words that are found most often
_NO_TEXT = (
    "The contextual adversary needs a public text to learn from and to attack. --public-text names one."
)
_OTHERS = "--figures adds results of attacks on the text itself."
_CHOSEN = (
    "The contextual attack was left out, because it assumes that every word is drawn, and importance chose some. The success "
    "on a drawn word is shown. Other words need no attack."
)
_NOT_THE_RUNS = "The attacked text is a public one that this model replaced, not that of the run."
_BOUNDED = "The black line contains the success of the best possible adversary with a confidence of {}."
_RANKED = (
    "This mechanism has no readable law. The adversary ranks the lexicon's words by their distance to the output, as learnt "
    "from its own draws."
)
_CONSIDERS = "This mechanism has no readable law. The adversary considers the {} likeliest words, known by its own draws."


def attacks_on(privatizer: Privatizer, lines: Sequence[str], say: Progress) -> tuple[list[AuditResult], str]:
    """Attack a model.

    `lines` are those of a public text, a record each.

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
        attack = _of_every_word(bayes_attack(sampler, total, prior, drawn))
    elif sampler.law_columns() is not None and total * total <= MOST_ENTRIES:
        attack = _of_every_word(bayes_attack(sampler, total, prior, drawn, backwards=True))
    else:
        attack = _estimated(sampler, prior, drawn)
    strings = privatizer.vocabulary.strings()
    also = {
        "words that can be the input": f"{attack.candidates:,}",
        **(attack.also or {}),
        "most often guessed": ", ".join(strings[word].as_py() for word in attack.worst_words[:NAMED]),
        "prior": prior.name,
    }
    return replace(attack, most_frequent=attack.baseline, random=1.0 / attack.candidates, also=also)


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
        raise DataError(
            "public_text: none of its words would be drawn; valid: a text in the lexicon's language."
        )
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
        whole = AttackedText(text.words, text.drawn, text.bounds, drawn, bigrams, level)
        attack = _without_law(attack, sampler, best, whole, prior)
    if level != "dataset":
        return [attack]
    matched = frequency_attack(tokens, bigrams, drawn, plausible, restricted=False)
    matched = replace(
        matched, measures=f"{matched.measures} {_NOT_THE_RUNS}", also={**matched.details, **completed}
    )
    return [attack, matched]


def _without_law(
    attack: ContextAttack, sampler: Sampler, best: Adversary, text: AttackedText, prior: F64
) -> ContextAttack:
    """Describe the adversaries where there is no law, and the success of a better one."""
    above = seen_vectors(
        sampler, text, prior
    )  # 0 where it is not noise on vectors, or its density is not known
    whom = _RANKED if above else _CONSIDERS.format(f"{int(best.considered.sum()):,}")
    if not 0 < above < 1:
        how = f"{sure(attack)} {whom} A better adversary may find more. How much more is not known."
        return replace(attack, how=how, open=True)
    how = (
        f"Estimated. {whom} The black line begins at the lower end of its interval. It ends at the highest possible success "
        f"with the noisy vectors. Each end has a confidence of {exact(CONFIDENCE)}."
    )
    also = {**(attack.also or {}), "found with the noisy vectors, at most": percent_up(above)}
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
