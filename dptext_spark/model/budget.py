"""Allot a budget: compile the laws that it chooses from, and find how many drawn words each may have.

Let a privatizer choose its words: the provider that a selection names is made once, where the model is compiled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dptext_spark.encoder.name_classifier import Classifier
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.budget import MOST_WORDS, Budget, BudgetSelector, laws_below
from dptext_spark.importance.levels import Importance
from dptext_spark.importance.providers import Frequencies
from dptext_spark.importance.selector import Selector, provider_of
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Mechanism
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.privacy_loss.accountant import RecordBound, record_bound
from dptext_spark.model.privatizer import Consistency, Privatizer
from dptext_spark.model.record import RecordAccount, loss_of, record_account
from dptext_spark.runtime.display import Progress
from dptext_spark.text.identifiers.provider import ImportedProvider, Provider
from dptext_spark.text.policy import Policy

PIECE = 1 << 20  # bytes of a corpus that are read at a time


def with_importance(
    privatizer: Privatizer,
    selection: Importance,
    further: tuple[Sampler, ...] = (),
    frequencies: Frequencies | None = None,
) -> Privatizer:
    """Return a privatizer that draws only the words that a selection chooses.

    Args:
        privatizer: that draws all words; its sampler is that of the first level.
        selection: what the user chose.
        further: the samplers of the other levels.
        frequencies: of the very texts that are sanitized, where importance is measured by them; None where that is still to come.

    Raises:
        SettingsError: the selection does not agree with the level of consistency or the samplers.
        DataError: a corpus cannot be read.
    """
    assert privatizer.table is not None
    provider = provider_of(selection, privatizer.table, privatizer.engine, frequencies)
    return replace(privatizer, selector=Selector(selection, provider, further), fingerprint="")


def made_from(selection: Importance, frequencies: Frequencies | None) -> list[Any]:
    """Return what a selection's provider is made from, JSON-able: the settings, the bytes of a corpus or a model, the counts.

    Raises:
        DataError: the corpus or the model cannot be read.
    """
    made: str | None = None
    if selection.corpus is not None:
        made = file_digest("importance.corpus", selection.corpus)
    elif selection.provider == "attention":
        from dptext_spark.importance.providers import Attention

        made = Attention.open(str(selection.model)).fingerprint
    return [selection.as_dict(), made, None if frequencies is None else frequencies.digest]


def file_digest(field: str, file: str) -> str:
    """Return the sha256 of a file, hex.

    Raises:
        DataError: it cannot be read; the message names the field.
    """
    digest = hashlib.sha256()
    try:
        with Path(file).open("rb") as stream:
            while piece := stream.read(PIECE):
                digest.update(piece)
    except OSError as error:
        raise DataError(f"{field}: {file!r} cannot be read ({error.strerror}).") from None
    return digest.hexdigest()


def with_budget(
    budget: Budget, mechanism: Mechanism, lexicons: Sequence[Lexicon], policy: Policy, consistency: Consistency,
    providers: tuple[Provider, ...], say: Progress, classifier: Classifier | None = None,
    imported: tuple[ImportedProvider, ...] = (),
) -> Privatizer:  # fmt: skip
    """Return a privatizer whose law is chosen by a record's number of drawn words.

    Args:
        budget: of a record.
        mechanism: of the largest law.
        lexicons: that it is compiled over.
        policy: which words are drawn.
        consistency: token or record.
        providers: who finds identifiers.
        say: is told each step.
        classifier: that looks for the policy's names; None for none.
        imported: the providers that the policy names.

    Raises:
        SettingsError: the mechanism has no ε of a record, or no law keeps one drawn word to the budget.
    """
    first: Privatizer | None = None
    kept: list[Sampler] = []
    most: list[int] = []
    laws, compile_at = laws_below(mechanism.epsilon), mechanism.over_epsilons(*lexicons)
    least: RecordBound | None = None
    for number, epsilon in enumerate(laws):
        say(f"compiling {mechanism.name} with ε = {epsilon:g}", number / len(laws))
        sampler = compile_at(epsilon)
        table = None if first is None else first.table
        made = Privatizer(
            lexicons[0], sampler, policy, consistency, table=table, providers=providers, classifier=classifier,
            imported=imported,
        )  # fmt: skip
        if first is None:
            first = made
            _require_figure(record_account(made))
        bound = _bound(made, budget)
        largest = most_words(bound, budget)
        if largest > (most[-1] if most else 0):
            kept.append(sampler)
            most.append(largest)
        least = bound(1)
        if largest == MOST_WORDS:
            break
    assert first is not None
    if not kept:
        said = "none" if least is None else str(least)
        raise SettingsError(
            f"budget: {budget} given, but one drawn word has {said} by the weakest law ({mechanism.name} with ε = {laws[-1]:g}); "
            "valid: a larger budget, or a smaller mechanism.epsilon."
        )
    selector = BudgetSelector(budget, np.array(most, np.int64), tuple(kept[1:]))
    return replace(first, sampler=kept[0], selector=selector, fingerprint="")


def most_words(bound: Callable[[int], RecordBound | None], budget: Budget) -> int:
    """Return up to how many drawn words a law keeps to a budget; 0 where one is too many, at most `MOST_WORDS`.

    A bound for n words holds for fewer, for they are n words some of which are equal in both records.

    Args:
        bound: of a record of so many words.
        budget: of a record.
    """

    def fits(draws: int) -> bool:
        found = bound(draws)
        return found is not None and found.epsilon <= budget.record and found.delta <= budget.delta

    low, high = 0, 1
    while high <= MOST_WORDS and fits(high):
        low, high = high, 2 * high
    high = min(high, MOST_WORDS + 1)
    while high - low > 1:
        between = (low + high) // 2
        if fits(between):
            low = between
        else:
            high = between
    return low


def _bound(made: Privatizer, budget: Budget) -> Callable[[int], RecordBound | None]:
    """Return what gives the least bound of a record of so many words that are drawn by one law."""
    loss, promised = loss_of(made), float(made.sampler.guarantee.epsilon)
    return lambda draws: record_bound(loss, draws, promised, budget.delta)


def _require_figure(account: RecordAccount) -> None:
    """Refuse a law by which no record has an ε.

    Raises:
        SettingsError: with the reason.
    """
    if account.why:
        raise SettingsError(
            f"budget: given with a mechanism by which a record has no ε. {account.why} Valid with a budget: a mechanism whose ε "
            "adds up, such as custext."
        )
