"""Compute the ε of a record, and choose the words and the law by which a record keeps to a budget.

The ε of a record composes the draws of its words, by the sampled law alone. It takes seconds to compute, and stays in the user's
cache by the model's fingerprint.

A budget needs the laws that it chooses from, and how many drawn words each may have. The selection of words by importance gets
its provider here, once, where the model is compiled.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dptext_spark._version import __version__
from dptext_spark.encoder.name_classifier import Classifier
from dptext_spark.errors import DPTextError, SettingsError, file_errors
from dptext_spark.guarantee import Guarantee, counted
from dptext_spark.importance.budget import MOST_WORDS, Budget, BudgetSelector, laws_below
from dptext_spark.importance.levels import Importance
from dptext_spark.importance.providers import Frequencies
from dptext_spark.importance.selector import Selector, provider_of
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import Mechanism
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.mechanisms.privacy_loss import RecordLoss, record_loss
from dptext_spark.mechanisms.privacy_loss.accountant import DELTA, RecordBound, record_bound, rounded_up
from dptext_spark.model.privatizer import Consistency, Privatizer
from dptext_spark.rounding import digits_up, exact
from dptext_spark.runtime.display import Counted, Progress
from dptext_spark.runtime.jit import build
from dptext_spark.runtime.paths import user_cache, write_atomically
from dptext_spark.text.identifiers.provider import ImportedProvider, Provider
from dptext_spark.text.policy import Policy

SIZES = (25, 100)  # drawn words for which figures are stated where those of a run may not be shown
RARE = 0.01  # records that may fare worse, on average, from which a warning is due
_known: dict[str, RecordLoss] = {}


@dataclass(frozen=True)
class RecordUnits:
    """RecordUnits of ε of a record, over the records; None without records."""

    mean: float | None
    p50: float | None
    p95: float | None
    max: float | None

    @classmethod
    def of(cls, row: Mapping[str, float | None]) -> RecordUnits:
        """Read the aggregates."""
        return cls(*(row.get(f"units_{name}") for name in ("mean", "p50", "p95", "max")))


@dataclass(frozen=True)
class RecordEpsilon:
    """The ε of a record, over all records.

    Attributes:
        basis: how it composes, in words.
        mean: over the records; None, like the figures below, where there is no such sum.
        p50: the median.
        p95: 95 % of the records have at most this.
        max: of all.
        bound_p50: the least bound of a record of the median number of drawn words; None where there is none.
        bound_max: of the largest.
    """

    basis: str
    mean: float | None = None
    p50: float | None = None
    p95: float | None = None
    max: float | None = None
    bound_p50: RecordBound | None = None
    bound_max: RecordBound | None = None

    @property
    def figures(self) -> dict[str, float | None]:
        """The figures by their names in the table of metrics."""
        figures = {f"record_epsilon_{name}": getattr(self, name) for name in ("mean", "p50", "p95", "max")}
        if self.bound_p50 is not None and self.bound_max is not None:
            figures["record_bound_p50"] = self.bound_p50.epsilon
            figures["record_bound_max"] = self.bound_max.epsilon
            figures["record_bound_delta"] = self.bound_max.delta
        return figures

    def of_words(self, counted: str) -> str:
        """Return the bounds as a part of a sentence, of records of so many drawn words; empty where there are none."""
        if self.bound_p50 is None or self.bound_max is None:
            return ""
        middle, most = self.bound_p50, self.bound_max
        if middle.draws is None or most.draws is None:
            return f"{middle} for the record of the median sum, {most} for that of the greatest"
        return (
            f"{middle} for the {middle.draws:,} {counted} of a record of median length, {most} for the {most.draws:,} of the "
            "longest"
        )


@dataclass(frozen=True)
class RecordAccount:
    """Composition of a record's draws.

    Attributes:
        loss: the deciding facts of the law.
        guarantee: of one draw; of one unit where levels of importance differ in ε.
        consistency: token, record or dataset.
        delta: up to which ε of a record is stated.
        budget: bound of each record for any number of drawn words; None without one.
    """

    loss: RecordLoss
    guarantee: Guarantee
    consistency: str
    levels: int = 1
    delta: float = DELTA
    budget: Budget | None = None

    @property
    def why(self) -> str:
        """Reason why no number of words has an ε, as a sentence; empty if one has."""
        if self.consistency == "dataset":
            return "A record has no ε of its own at dataset level, because all records share the draws."
        if self.loss.why:
            return self.loss.why
        if not self.guarantee.adds_up:
            return (
                "Its ε is for each unit of distance. The bound of a record is ε times the sum of the distances between the "
                "words of two records. No number of words gives this sum."
            )
        return ""

    def of(self, draws: int) -> RecordBound | None:
        """Compute the bound of a record with a number of drawn words; None for the reason in :attr:`why`.

        Args:
            draws: drawn words, at record level distinct ones; with several levels of importance, or a budget,
                units of ε.
        """
        if self.why:
            return None
        if self.budget is not None:
            return self._lesser_bound(self.budget, draws)
        if self.levels > 1:
            # How many words were drawn at which level is not counted: of their sum alone is known what it is.
            summed = self.guarantee.compose(draws)
            return RecordBound(None, summed.epsilon, summed.delta, "sum", summed.epsilon)
        return record_bound(self.loss, draws, self.guarantee.epsilon, self.delta)

    def over(self, units: RecordUnits, *, summed: bool = False) -> RecordEpsilon:
        """Compose ε over the records of a run (concepts/mechanisms, Levels).

        Args:
            units: of the records.
            summed: whether the words of several columns or rows were added, each counted by itself.
        """
        bounded = "" if self.budget is None else str(self.budget)
        guarantee, basis = self.guarantee, self.guarantee.of_record(self.consistency, self.levels, bounded)
        if self.consistency == "dataset":
            return RecordEpsilon(basis)
        if not guarantee.adds_up:
            return RecordEpsilon(f"{basis}; no single figure")
        if self.consistency == "record" and summed:
            basis += " (at most: columns and rows are summed)"
        mean, p50, p95, most = (
            None if draws is None else guarantee.compose(draws).epsilon for draws in astuple(units)
        )
        if guarantee.delta and units.max is not None:
            basis += f"; δ of a record at most {exact(guarantee.compose(units.max).delta)}"
        middle, largest = (
            None if draws is None else self.of(math.ceil(draws)) for draws in (units.p50, units.max)
        )
        return RecordEpsilon(basis, mean, p50, p95, most, middle, largest)

    def _lesser_bound(self, budget: Budget, units: int) -> RecordBound:
        """Return the lesser of the plain sum and the budget."""
        summed = self.guarantee.compose(units)
        if summed.epsilon <= budget.record and summed.delta <= budget.delta:
            return RecordBound(None, summed.epsilon, summed.delta, "sum", summed.epsilon)
        return RecordBound(None, budget.record, budget.delta, "budget", summed.epsilon)

    def times(self, records: int) -> float:
        """Return N·δ, rounded up: about so many of N records may fare worse than ε says."""
        return rounded_up(records * self.delta)

    @property
    def stated(self) -> str:
        """ε of records of some sizes, as a sentence; why there is none, where there is none."""
        if self.why:
            return self.why
        if self.budget is not None:
            return (
                f"Every record has at most {self.budget}, for any number of {counted(self.consistency)}. Short records have "
                "less: the sum over their words."
            )
        if self.levels > 1:
            return "If levels of importance differ in ε, the ε of a record is the sum over its drawn words."
        figures = [bound for size in SIZES if (bound := self.of(size)) is not None]
        if not figures:
            return "A record has no ε, because the δ of its draws adds up to 1 or more."
        words = counted(self.consistency)
        return " ".join(
            f"A record of {each.draws} {words} has {each}. The sum over its words is {exact(each.total)}."
            for each in figures
        )

    @property
    def unit(self) -> str:
        """The compared records, as a sentence."""
        pattern = " Both have the same pattern of equal words." if self.consistency == "record" else ""
        sets = (
            " Place by place, their words have the same output set. The information in these sets is not counted."
            if self.guarantee.compared == "words that share an output set"
            else ""
        )
        return (
            "This ε compares two records, each with all text columns and all rows of its record key. Both have the same released "
            f"parts: the places that are drawn, and all that is released as it is.{pattern}{sets}"
        )

    def meaning(self, records: int | None = None) -> str:
        """Explain the meaning of δ, and the strength of an ε in the tens.

        `records`: how many there are; None where that is not known.
        """
        about = (
            "about δ times the number of records"
            if records is None
            else f"about {digits_up(records * self.delta, 2)} of {records:,} records (δ times their number)"
        )
        return (
            f"δ is that of one record, and does not add up over records. But {about} may lose more than ε. ε and δ add up for "
            "a person with several records, and for a record that is released again."
        )


WEAK = (
    "An ε in the tens protects little by itself. The share of words that attacks find says more (`dptext report`, `dptext "
    "calibrate`)."
)


def record_account(privatizer: Privatizer, progress: Counted | None = None) -> RecordAccount:
    """Find the composition of a record's draws under a model."""
    guarantee, levels = privatizer.units.of_one, len(privatizer.units.multiples)
    level, budget = privatizer.consistency, privatizer.budget
    if budget is not None:
        plain = RecordLoss(float(guarantee.epsilon), float(guarantee.delta))
        return RecordAccount(plain, guarantee, level, levels, budget.delta, budget)
    if level == "dataset" or levels > 1 or not guarantee.adds_up:
        refuted = any(sampler.guarantee.status == "refuted" for sampler in privatizer.samplers)
        plain = RecordLoss(float(guarantee.epsilon), float(guarantee.delta))
        if refuted or guarantee.compared == "sensitive words":
            plain = record_loss(privatizer.sampler, len(privatizer.vocabulary))
        return RecordAccount(plain, guarantee, level, levels)
    return RecordAccount(loss_of(privatizer, progress), guarantee, level)


def loss_of(privatizer: Privatizer, progress: Counted | None = None) -> RecordLoss:
    """Return the facts of a model's law that decide the ε of a record: from the cache, or computed and cached."""
    parts = [privatizer.fingerprint, privatizer.sampler.guarantee.as_dict(), __version__, build()]
    name = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
    if name not in _known:
        loss = _cached_loss(name)
        if loss is None:
            loss = record_loss(privatizer.sampler, len(privatizer.vocabulary), progress)
            _keep(name, loss)
        _known[name] = loss
    return _known[name]


def _folder() -> Path:
    return user_cache() / "records"


def _cached_loss(name: str) -> RecordLoss | None:
    """Read the cached loss; None where none is, or it is damaged."""
    try:
        written = json.loads((_folder() / f"{name}.json").read_text(encoding="utf-8"))
        loss = RecordLoss.from_dict(written["loss"])
        sound = written["digest"] == _digest(loss)
    except (OSError, ValueError, KeyError, TypeError, DPTextError):
        return None
    return loss if sound else None


def _keep(name: str, loss: RecordLoss) -> None:
    """Keep it where that can be written; else it is found again next time."""
    if not math.isfinite(loss.epsilon):
        return
    with suppress(OSError, DPTextError):
        os.makedirs(_folder(), exist_ok=True)
        text = json.dumps({"loss": loss.as_dict(), "digest": _digest(loss)})
        write_atomically(_folder() / f"{name}.json", text)


def _digest(loss: RecordLoss) -> str:
    return hashlib.sha256(json.dumps(loss.as_dict(), sort_keys=True).encode()).hexdigest()


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
    """Return the sources of a selection's provider, JSON-able: the settings, digests of a corpus or a model, the counts.

    Raises:
        DataError: the corpus or the model cannot be read.
    """
    source_digest: str | None = None
    if selection.corpus is not None:
        source_digest = file_digest("importance.corpus", selection.corpus)
    elif selection.provider == "attention":
        from dptext_spark.importance.providers import Attention

        source_digest = Attention.open(str(selection.model)).fingerprint
    return [selection.as_dict(), source_digest, None if frequencies is None else frequencies.digest]


def file_digest(field: str, file: str) -> str:
    """Return the sha256 of a file, hex. :class:`DataError`: it cannot be read; the message names the field."""
    digest = hashlib.sha256()
    with file_errors(field, file), Path(file).open("rb") as stream:
        while piece := stream.read(PIECE):
            digest.update(piece)
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
    samplers: list[Sampler] = []
    most: list[int] = []
    laws, compile_at = laws_below(mechanism.epsilon), mechanism.over_epsilons(*lexicons)
    least: RecordBound | None = None
    for number, epsilon in enumerate(laws):
        say(f"compiling {mechanism.name} with ε = {epsilon:g}", number / len(laws))
        sampler = compile_at(epsilon)
        table = None if first is None else first.table
        privatizer = Privatizer(
            lexicons[0], sampler, policy, consistency, table=table, providers=providers, classifier=classifier,
            imported=imported,
        )  # fmt: skip
        if first is None:
            first = privatizer
            _require_figure(record_account(privatizer))
        bound = _bound(privatizer, budget)
        largest = most_words(bound, budget)
        if largest > (most[-1] if most else 0):
            samplers.append(sampler)
            most.append(largest)
        least = bound(1)
        if largest == MOST_WORDS:
            break
    assert first is not None
    if not samplers:
        cost = "none" if least is None else str(least)
        raise SettingsError(
            f"budget: {budget} is not valid: one drawn word has {cost} by the weakest law ({mechanism.name} with ε = "
            f"{laws[-1]:g}). Choose a larger budget, or a smaller mechanism.epsilon."
        )
    selector = BudgetSelector(budget, np.array(most, np.int64), tuple(samplers[1:]))
    return replace(first, sampler=samplers[0], selector=selector, fingerprint="")


def most_words(bound: Callable[[int], RecordBound | None], budget: Budget) -> int:
    """Return the most drawn words for which a law keeps to a budget: 0 if even one is too many, at most `MOST_WORDS`.

    A bound for n words holds for fewer, for they are n words some of which are equal in both records.
    """

    def fits(draws: int) -> bool:
        figure = bound(draws)
        return figure is not None and figure.epsilon <= budget.record and figure.delta <= budget.delta

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
    """Return the composition with the least bound for a record of so many words under one law."""
    loss, promised = loss_of(made), float(made.sampler.guarantee.epsilon)
    return lambda draws: record_bound(loss, draws, promised, budget.delta)


def _require_figure(account: RecordAccount) -> None:
    """Refuse a law by which no record has an ε, by a :class:`SettingsError`."""
    if account.why:
        raise SettingsError(
            f"budget: not valid with a mechanism without ε of a record. {account.why} Choose a mechanism with an ε that "
            "adds up, such as custext."
        )
