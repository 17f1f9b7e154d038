"""Attack a sample of a written table whose mechanism is known: word by word, with the context, and at dataset level as a cipher.

Half of the records teach which words follow each other: the contextual adversary has text of the same kind. The other half is
attacked. The word-by-word adversary knows how frequent words are in public, and needs nothing else. Where the mechanism has no
law, both know it as :mod:`dptext_spark.audit.attacks.adversary` says. At dataset level, where a word has one replacement in the
whole table, the frequency attack is made, too; it needs no law.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dptext_spark.arrays import I64
from dptext_spark.audit.attacks.adversary import FEW, QUICK_DRAWS, adversary
from dptext_spark.audit.attacks.bayes import BayesAttack
from dptext_spark.audit.attacks.bigrams import Bigrams
from dptext_spark.audit.attacks.context import context_attack
from dptext_spark.audit.attacks.frequency import frequency_attack
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.audit.deniability.simulated import Level
from dptext_spark.audit.estimates import Metric, rate
from dptext_spark.audit.results import WordAttack
from dptext_spark.audit.table.findings import Findings
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.tokens import drawn_words

if TYPE_CHECKING:
    from pandas import DataFrame

NOT_THE_BEST = {
    "noise": "attacks by an adversary who knows the law: this mechanism has none to read, and the one shown ranks the words of "
    "the lexicon by their distance to the output; a better one may find more",
    "draws": f"attacks by an adversary who knows the law: this mechanism has none to read, and the one shown knows each word by "
    f"{QUICK_DRAWS} draws of its own; a better one may find more",
    "few": "attacks by an adversary who names any word: this mechanism has no law to read, and the one shown considers the "
    f"{FEW} likeliest words; a better one may find more",
}
_HERE = "Tried on a sample of the table itself."
_LEARNT = "How frequent words are, and which follow each other, was learnt from the rest of the sample."
TOO_FEW = "attacks: the sample holds fewer than two records, or no word that was drawn, in the half that is attacked"


def attack_sample(privatizer: Privatizer, sample: DataFrame, level: Level) -> Findings:
    """Attack a sample.

    Args:
        privatizer: the model.
        sample: a frame with `record` (bytes), `words` and `outputs` (int32) and `drawn` (bool) of each text, as bytes.
        level: at which draws are shared.

    Returns:
        The figures and both attacks, and what is left out; or why there are none.
    """
    names = np.array(sample["record"].tolist(), dtype=object)
    records = {name: number for number, name in enumerate(sorted(set(names)))}
    number = np.array([records[name] for name in names], np.int64)
    # Records come sorted by their keyed hash, so that every second one is a random half.
    taught, attacked = (_tokens(sample, number, half) for half in (0, 1))
    if not attacked.drawn.any():
        return Findings(left_out=[TOO_FEW])
    size, drawn = len(privatizer.vocabulary), drawn_words(privatizer.engine)
    bigrams = Bigrams.of(taught.words, taught.bounds, size, prior=privatizer.prior)
    sampler, outputs = privatizer.sampler, attacked.outputs[attacked.drawn]
    learnt, public = (
        adversary(sampler, of_drawn(prior, drawn), measured=False)
        for prior in (bigrams.unigram[:size], privatizer.prior.words)
    )
    plausible = learnt.plausible(outputs)
    context = context_attack(sampler, attacked, bigrams, drawn, level=level, plausible=plausible)
    hit = np.zeros(len(attacked.words), np.bool_)
    at = np.flatnonzero(attacked.drawn)
    hit[at] = public.guesses(outputs) == attacked.words[at]
    alone = rate(attacked.by_record(hit), attacked.by_record(attacked.drawn))
    also = {"replaced words attacked": f"{len(at):,}", "records": f"{attacked.records:,}"}
    missing = _not_the_best(sampler)
    how = (
        f"Estimated; the black line is the interval of this adversary. Left out: {missing[0]}."
        if missing
        else None
    )
    is_open = True if missing else None
    completed = {"prior": f"pairs and words of the rest of the sample, completed by {privatizer.prior.name}"}
    in_context = replace(
        context, measures=f"{context.measures} {_HERE} {_LEARNT}",
        also={
            **also, "words learnt from": f"{bigrams.tokens:,}",
            **completed,
        },
        how=how, open=is_open,
    )  # fmt: skip
    word_by_word = WordAttack(
        name="each word alone", measures=f"{BayesAttack.measures} {_HERE}", knows=BayesAttack.knows, success=alone.value,
        lower=alone.lower, upper=alone.upper, confidence=context.confidence, random=context.random,
        most_frequent=context.most_frequent, unchanged=context.unchanged, unprotected=context.unprotected,
        also={**also, "prior": privatizer.prior.name}, how=how,
        open=is_open,
    )  # fmt: skip
    attacks: dict[str, WordAttack] = {"bayes_success": word_by_word, "context_success": in_context}
    if level == "dataset":
        matched = frequency_attack(attacked, bigrams, drawn, plausible)
        attacks["frequency_success"] = replace(
            matched, measures=f"{matched.measures} {_HERE} {_LEARNT}", also={**matched.details, **completed}
        )
    figures = [one.metric(name) for name, one in attacks.items()]
    return Findings([*figures, Metric("attacked_words", len(at))], list(attacks.values()), missing)


def _not_the_best(sampler: Sampler) -> list[str]:
    """Say who is not among the adversaries, where there is no law."""
    if sampler.law(0) is not None:
        return []
    if sampler.draws_quickly:
        return [NOT_THE_BEST["draws"]]
    return [NOT_THE_BEST["few" if sampler.noisy_vectors() is None else "noise"]]


def _tokens(sample: DataFrame, number: I64, half: int) -> Tokens:
    """Return the records of even (0) or odd (1) number, each with all of its texts."""
    order = np.argsort(number, kind="stable")
    order = order[number[order] % 2 == half]
    words, outputs, drawn = (
        [np.frombuffer(sample[name].iloc[i], kind) for i in order]
        for name, kind in (("words", np.int32), ("outputs", np.int32), ("drawn", np.bool_))
    )
    sizes = np.bincount(number[order] // 2, weights=[len(part) for part in words])
    bounds = np.append(0, np.cumsum(sizes)).astype(np.int64)
    none = np.empty(0, np.int32)
    return Tokens(
        np.concatenate([none, *words]), np.concatenate([none, *outputs]), np.concatenate([none.astype(np.bool_), *drawn]), bounds
    )  # fmt: skip
