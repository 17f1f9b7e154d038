"""Requirements of an audit, as a user writes them: a figure, a relation and a number, as in `original_share <= 0.6`.

One grammar has two vocabularies: statistics over the words of a lexicon (:mod:`dptext_spark.audit.epsilon_search`), and the
figures below, of a run and of its table. An estimate is judged by its bound on the cautious side.

The figures that a requirement may name, each in one sentence: those of an audit of the table, and those of the run itself.

The verdict on a run: each requirement of its settings holds, is broken, or was not measured. A figure that depends on the
private text is compared here and not kept: a verdict holds the answer alone.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Generic, Literal, TypeVar

from dptext_spark.errors import SettingsError, did_you_mean, either
from dptext_spark.rounding import exact, round_conservatively
from dptext_spark.runtime.validation import Json

# Each figure in one sentence. "Words" are the source's, as far as they could be aligned with the table's.
MEANING = {
    "rows": "rows that are in both tables",
    "missing_in_table": "rows of the source that the table lacks",
    "missing_in_source": "rows of the table that the source lacks",
    "rows_not_aligned": "texts left out of the words, because their number of pieces between spaces differs from the source's",
    "unchanged_rows": "rows with a word to draw and texts equal to the source's, byte for byte",
    "unchanged_rows_share": "share of the rows with a word to draw that are unchanged",
    "words": "words of the source that were aligned with the table's",
    "aligned_share": "share of all words of the source that were aligned with the table's",
    "original_share": "share of the lexicon's words unchanged in the table (kept stop words not counted)",
    "original_share_all": "share of all words unchanged in the table (also kept stop words, unknown words, numbers)",
    "changed_share": "share of all words that were replaced by others",
    "oov_share": "share of words missing from the lexicon",
    "oov_kept_share": "share of the words missing from the lexicon that are unchanged in the table",
    "numbers_kept_share": "share of the numbers that are unchanged in the table",
    "names_found": "aligned words of names that public lists and rules, made for English, find in the source",
    "names_kept": "share of these words that are unchanged in the table",
    "persons_kept": "the same for names of persons",
    "persons_kept_whole": "share of the names of persons with every word unchanged in the table",
    "locations_kept": "the same for towns, countries and states, word by word",
    "locations_kept_whole": "with every word unchanged in the table",
    "listed_found": "entries of the list of --names in the source that were aligned",
    "listed_kept": "share of these with every word unchanged in the table",
    "record_groups": "words that occur more than once in a record of the sample",
    "record_broken_groups": "number of these with more than one replacement within the record",
    "dataset_groups": "words that occur more than once in the sample",
    "dataset_broken_groups": "number of these with more than one replacement",
    "bayes_success": "share of the drawn words that are guessed from their replacements alone, by a public prior",
    "context_success": "share of the drawn words that are guessed from their replacements and the words around them",
    "frequency_success": "dataset level: share of the drawn words that are guessed by how often replacements occur, and where",
    "guess_success": "share of the drawn words that the best of these adversaries guesses",
    "attacked_words": "drawn words of the sample that the contextual adversary guesses; the other records taught it",
    "linkage_top1": "share of released rows whose source is named first, by an adversary with all source texts and the law",
    "linkage_top10": "share of released rows whose source is among the first ten so named",
    "linkage_source_top1": "share of source rows whose release is named first, by an adversary with the row's text and the law",
    "linkage_source_top10": "share of source rows whose release is among the first ten so named",
    "linkage_tfidf_top1": "share of released rows whose source is named first, by an adversary with TF-IDF alone",
    "linkage_tfidf_top10": "share of released rows whose source is among the first ten, by an adversary with TF-IDF alone",
    "linkage_tfidf_source_top1": "share of source rows whose release is named first, by an adversary with TF-IDF alone",
    "linkage_tfidf_source_top10": "share of source rows whose release is among the first ten, by an adversary with TF-IDF alone",
    "linkage_3_words_top1": "share of rows whose release is named first, by an adversary with three of their words",
    "linkage_3_words_top10": "share of rows whose release is among the first ten, by an adversary with three of their words",
    "linkage_5_words_top1": "share of rows whose release is named first, by an adversary with five of their words",
    "linkage_5_words_top10": "share of rows whose release is among the first ten, by an adversary with five of their words",
    "linkage_10_words_top1": "share of rows whose release is named first, by an adversary with ten of their words",
    "linkage_10_words_top10": "share of rows whose release is among the first ten, by an adversary with ten of their words",
    "linkage_author_top1": "share of authors with a release named first by an adversary with another of their texts (TF-IDF)",
    "linkage_author_top10": "share of authors with a release among the first ten, by an adversary with another text (TF-IDF)",
    "linkage_candidates": "rows that each linkage adversary chooses from",
    "linkage_guess": "share of rows that a random guess among these candidates links",
    "singled_out": "share of released rows whose words leave fewer than ten of these candidates possible, by the law",
    "cosine": "semantic similarity: mean cosine of the mean word vectors of a row's texts in both tables, -1 to 1",
    "rouge_1": "overlap in words of a row's texts in both tables, mean F1 of ROUGE-1, 0 to 1",
    "rouge_2": "the same in pairs of words",
    "rouge_l": "the same in the longest common sequence of words",
    "bleu": "overlap of the whole sample, 0 to 100",
    "distinct_words_share": "different words of the lexicon in the table's texts, for each different one in the source's",
    "embedding_cosine": "semantic similarity to an encoder: mean cosine of the sentence embeddings of a row's texts, -1 to 1",
    "bert_precision": "mean similarity of each sub-word of the table's text to the nearest of the source's (BERTScore), -1 to 1",
    "bert_recall": "the same for each sub-word of the source's text to the table's",
    "bert_f1": "both as their harmonic mean in each row, 0 to 1",
    "masked_success": "share of drawn words that a masked language model names from the rest of the table's text",
    "masked_unprotected": "share of drawn words that a masked language model names from the rest of the source's text",
    "masked_words": "drawn words that it was asked for",
    "accuracy_plain_plain": "share of rows whose label is predicted: learnt from the source's text, reading the source's",
    "accuracy_plain_private": "share of rows whose label is predicted: learnt from the source's text, reading the table's",
    "accuracy_private_plain": "share of rows whose label is predicted: learnt from the table's text, reading the source's",
    "accuracy_private_private": "share of rows whose label is predicted: learnt from the table's text, reading the table's",
    "accuracy_majority": "accuracy of always predicting the commonest label",
    "label_rows": "rows with a label that the classifiers learnt from or were tried on",
    "label_missing": "rows of that sample without a label; they were left out",
    "membership_auc": "area under the curve of an attack that finds training records by its answers; 0.5 by guessing",
    "membership_unprotected": "the same for a classifier that learnt from the source's text",
    "attribute_success": "share of rows whose attribute is guessed: learnt from the source's text, reading the table's",
    "attribute_adaptive": "share of rows whose attribute is guessed: learnt from the table's text, reading the table's",
    "attribute_unprotected": "share of rows whose attribute is guessed: learnt from the source's text, reading the source's",
    "attribute_majority": "accuracy of always guessing the commonest attribute",
    "attribute_gain": "how much more often the better of both reads the attribute in the table than that; may be below 0",
    "attribute_rows": "rows with an attribute that this was learnt from or tried on",
    "attribute_missing": "rows of that sample without an attribute; they were left out",
}
# Greatest values of shares; counts, ε and a quotient of counts have no such bound.
_PER_CENT = ("bleu",)
_UNBOUNDED = re.compile(
    r"rows|words|linkage_candidates|missing_in_\w+|distinct_words_share|\w+_(rows|words|found|groups|missing|aligned|texts|epsilon)"
)

_SCORES = re.compile(r"(embedding_)?cosine|(bert|membership|rouge)_\w+|bleu")


def is_score(name: str) -> bool:
    """Check that a figure is a score, such as a cosine, and neither a share nor a count."""
    return _SCORES.fullmatch(name) is not None


def greatest(name: str) -> float | None:
    """Return the largest value that a figure can have; None where nothing bounds it."""
    if name in _PER_CENT:
        return 100.0
    return None if _UNBOUNDED.fullmatch(name) else 1.0


def smallest(name: str) -> float | None:
    """Return the least value that a figure can have; None where it may be negative: cosines, their means, gains."""
    return None if "cosine" in name or name.startswith("bert_") or name == "attribute_gain" else 0.0


# Figures that depend on the number of candidate rows. A requirement may name it: linkage_top1(10000).
LINKAGE = tuple(name for name in MEANING if name.startswith("linkage_") and "_top" in name)
_AMONG = re.compile(r"(\w+)\(([1-9]\d*)\)")


def split_subject(subject: str) -> tuple[str, int | None]:
    """Split a subject into a figure's name and its number of candidates; None if it has no number."""
    match = _AMONG.fullmatch(subject)
    if match is None or match[1] not in LINKAGE:
        return subject, None
    return match[1], int(match[2])


def is_audited(subject: str) -> bool:
    """Check whether an audit of the table measures a figure."""
    return split_subject(subject)[0] in MEANING


def meaning_of(subject: str, *, alone: bool = False) -> str:
    """Return the meaning of a figure; `alone`: in a sentence that leans on no other."""
    name, among = split_subject(subject)
    meaning = ALONE[name] if alone and name in ALONE else FIGURES[name]
    return meaning if among is None else f"{meaning}, among {among:,} rows"


# Of the run and its ledger; no audit counts them.
OF_RUN = {
    "record_epsilon": "ε of the record that spends most in this run: the plain sum over its drawn words, or budget.record",
    "ledger_epsilon": "ε that all releases of the input have spent on one word of the column where it is most, by the ledger",
}
# Counted by the run, too, without an audit.
COUNTED = ("words", "original_share", "original_share_all", "changed_share", "oov_share")
ATTACKS = (
    "bayes_success",
    "context_success",
    "guess_success",
    "attacked_words",
)  # nobody can measure them where importance chose
FREQUENCY = ("frequency_success",)  # at dataset level
FIGURES = MEANING | OF_RUN
# Sentences for a figure alone, where its usual one leans on the sentence before it.
_FOUND_NAMES = "that public lists and rules, made for English, find in the source"
ALONE = {
    "names_kept": f"unchanged share of the aligned words of names {_FOUND_NAMES}",
    "persons_kept": f"unchanged share of the aligned words of names of persons {_FOUND_NAMES}",
    "locations_kept": f"unchanged share of the aligned words of towns, countries and states {_FOUND_NAMES}",
    "locations_kept_whole": "share of the towns, countries and states with every word unchanged in the table",
    "listed_kept": "share of the entries of a list of names with every word unchanged in the table",
    "rouge_2": "overlap in pairs of words of a row's texts in both tables, mean F1 of ROUGE-2, 0 to 1",
    "rouge_l": "overlap of a row's texts in both tables in the longest common sequence of words, 0 to 1",
    "bert_recall": "mean similarity of each sub-word of the source's text to the nearest of the table's (BERTScore), -1 to 1",
    "bert_f1": "mean similarity of the sub-words of both texts (BERTScore, F1), -1 to 1",
    "membership_unprotected": "area under the curve of an attack that finds training records, learnt from the source",
    "record_broken_groups": "words of the sample that have more than one replacement within a record",
    "dataset_broken_groups": "words of the sample that have more than one replacement",
}


def is_restricted(name: str, *, bounded: bool) -> bool:
    """Check whether a figure depends on the private text.

    Args:
        name: one of `FIGURES`.
        bounded: whether a budget bounds ε of a record, so that it is known without the text.
    """
    return not (name == "ledger_epsilon" or (name == "record_epsilon" and bounded))


Subject = TypeVar("Subject")
RELATIONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}
FORM = f"one of {', '.join(RELATIONS)} and a number"
_PATTERN = re.compile(r"\s*(.+?)\s*(<=|>=|<|>)\s*(\S+)\s*", re.DOTALL)


@dataclass(frozen=True)
class RequirementResult:
    """Outcome of a requirement.

    Attributes:
        value: measured value, exact or estimated.
        judged: the value that the limit applies to: exact, or an estimate's bound on the cautious side.
        holds: whether the requirement does.
        word: id of a word that has the judged value; None where there is none.
        exact: whether it is read off laws.
    """

    value: float
    judged: float
    holds: bool
    word: int | None
    exact: bool


@dataclass(frozen=True)
class Requirement(Generic[Subject]):
    """A limit on a figure.

    Attributes:
        subject: the figure, which `str` writes as it is read.
        relation: one of `RELATIONS`.
        limit: the number that limits the figure.
    """

    subject: Subject
    relation: str
    limit: float

    @staticmethod
    def parse(
        text: str, read: Callable[[str], Subject | None], valid: str, field: str = "require"
    ) -> Requirement[Subject]:
        """Read a requirement.

        Args:
            text: such as `original_share <= 0.6`.
            read: turns the text before the relation into the subject; None for an unknown figure.
            valid: list of valid subjects, for the error message.
            field: the setting that the error message names.

        Raises:
            SettingsError: another form.
        """
        match = _PATTERN.fullmatch(text)
        number = _number(match.group(3)) if match else None
        subject = read(match.group(1)) if match and number is not None else None
        if match is None or number is None or subject is None:
            raise SettingsError(f"{field}: {text!r} is not valid. Choose {valid}.")
        return Requirement(subject, match.group(2), number)

    def __str__(self) -> str:
        """Write it as it is read."""
        return f"{self.subject} {self.relation} {self.limit:g}"

    @property
    def caps(self) -> bool:
        """True if the limit is from above."""
        return self.relation.startswith("<")

    def holds(self, judged: float) -> bool:
        """Check whether a value is within the limit."""
        return RELATIONS[self.relation](judged, self.limit)

    def shortfall(self, found: RequirementResult) -> float:
        """Compute the relative distance by which the limit is missed; 0 where it holds."""
        return 0.0 if found.holds else abs(found.judged - self.limit) / (abs(self.limit) or 1.0)


def named_requirement(
    text: str, names: Collection[str], whose: str, field: str = "require"
) -> Requirement[str]:
    """Read a requirement of a figure that has a name.

    Args:
        text: such as `original_share <= 0.6`.
        names: of the known figures.
        whose: they are, for the error message.
        field: the setting that the error message names.

    Raises:
        SettingsError: another form, or an unknown figure.
    """

    def read(name: str) -> str | None:
        if split_subject(name)[0] in names:
            return name
        if re.fullmatch(r"\w+", name) is None:
            return None
        listed = "docs/reference/metrics lists all." if len(names) > 9 else f"Choose {either(names)}."
        raise SettingsError(
            f"{field}: {name!r} is not a figure of {whose}.{did_you_mean(name, names)} {listed}"
        )

    requirement = Requirement.parse(text, read, f"a figure, {FORM}, as in 'original_share <= 0.6'", field)
    most = greatest(requirement.subject)
    if most is not None and requirement.limit > most:
        raise SettingsError(
            f"{field}: {text!r} is not valid: {requirement.subject} is never above {most:g}. Choose a limit of at most "
            f"{most:g}{', such as 0.4 for 40 per cent' if most == 1 else ''}."
        )
    least = smallest(requirement.subject)
    if least is not None and (
        requirement.limit < least or (requirement.limit == least and requirement.relation == "<")
    ):
        raise SettingsError(
            f"{field}: {text!r} is not valid: {requirement.subject} is never below {least:g}. Choose a greater limit."
        )
    return requirement


def contradictions(requirements: Sequence[Requirement[str]]) -> Iterator[tuple[str, str]]:
    """Yield pairs (limit from above, limit from below) of one figure that no value meets."""
    for cap in requirements:
        for floor in requirements:
            if cap.caps and not floor.caps and cap.subject == floor.subject:
                strict = not (cap.relation == "<=" and floor.relation == ">=")
                if floor.limit > cap.limit or (strict and floor.limit == cap.limit):
                    yield str(cap), str(floor)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class Metric:
    """A figure of a table, as the table of metrics and requirements name it.

    Attributes:
        name: of the figure.
        value: None where nothing could be counted.
        lower: of its interval; None where it was counted, not estimated. And `upper`.
        column: the text column; None for the whole table.
    """

    name: str
    value: float | None
    lower: float | None = None
    upper: float | None = None
    column: str | None = None

    @property
    def at_most(self) -> float | None:
        """The greatest value that the measurement allows."""
        return self.value if self.upper is None else self.upper

    @property
    def at_least(self) -> float | None:
        """The least."""
        return self.value if self.lower is None else self.lower

    def as_dict(self) -> dict[str, Json]:
        """Return the fields."""
        return asdict(self)


Standing = Literal["holds", "broken", "not measured"]
HOLDS: Standing = "holds"
BROKEN: Standing = "broken"
NOT_MEASURED: Standing = "not measured"
UNDECIDED = "not decided"
AUDITED = "audit_"  # before the names of the figures of an audit, in the table of metrics


@dataclass(frozen=True)
class Judgement:
    """A requirement with its standing.

    Attributes:
        requirement: as the settings name it.
        standing: holds, broken, or not measured.
        restricted: whether its figure depends on the private text; the standing then reveals one bit.
        shown: the figure, on its cautious side; empty where it may not be shown.
    """

    requirement: str
    standing: Standing
    restricted: bool
    shown: str = ""

    @property
    def loud(self) -> str:
        """The standing, a broken one in capitals."""
        return self.standing.upper() if self.standing == BROKEN else self.standing

    @property
    def holds(self) -> bool:
        """True if it was measured and holds."""
        return self.standing == HOLDS

    @property
    def measured(self) -> bool:
        """True if it holds or is broken."""
        return self.standing != NOT_MEASURED


def judge(
    requirement: Requirement[str], figures: Iterable[Metric], *, bounded: bool = False, internal: bool = False
) -> Judgement:
    """Compare the measurements of a figure with its limit: one measurement breaks it, by its cautious bound.

    Args:
        requirement: the limit.
        figures: what was measured of the whole table, under whatever name; one without a value was not measured.
        bounded: whether a budget bounds ε of a record, which is then known without the text.
        internal: whether figures that depend on the private text are shown.
    """
    caps = requirement.caps
    measured = [figure for figure in figures if figure.name == requirement.subject and figure.column is None]
    values = [figure.value for figure in measured if figure.value is not None]
    bounds = [
        bound for figure in measured if (bound := figure.at_most if caps else figure.at_least) is not None
    ]
    standing, shown = NOT_MEASURED, ""
    restricted = is_restricted(requirement.subject, bounded=bounded)
    if values:
        standing = HOLDS if all(map(requirement.holds, bounds)) else BROKEN
        if not restricted:
            shown = exact(max(values))
        elif internal:
            shown = round_conservatively(max(bounds) if caps else min(bounds), 4, up=caps)
    return Judgement(str(requirement), standing, restricted, shown)


@dataclass(frozen=True)
class Verdict:
    """The verdict on all requirements.

    Attributes:
        judged: the requirements, in the order of the settings.
        against: what breaks the run whatever was required: its counts do not agree, its guarantee is refuted.
        unfinished: whether it has not come to its account, so that nothing is decided.
    """

    judged: tuple[Judgement, ...] = ()
    against: tuple[str, ...] = ()
    unfinished: bool = False

    @classmethod
    def of(
        cls, require: Iterable[Requirement[str]], figures: Sequence[Metric], *, against: Sequence[str] = (),
        unfinished: bool = False, bounded: bool = False, internal: bool = False,
    ) -> Verdict:  # fmt: skip
        """Judge every requirement of the settings; `bounded` and `internal` are those of :func:`judge`."""
        judged = tuple(judge(limit, figures, bounded=bounded, internal=internal) for limit in require)
        return cls(judged, tuple(against), unfinished)

    @property
    def standing(self) -> str:
        """`broken` where one is, `holds` where all do, else `not decided`; without requirements nothing is."""
        if self.against or self.broken:
            return BROKEN
        if self.unfinished or not self.judged or self.not_measured:
            return UNDECIDED
        return HOLDS

    @property
    def broken(self) -> list[str]:
        """The requirements that are broken."""
        return self._of(BROKEN)

    @property
    def why(self) -> list[str]:
        """All that makes it broken."""
        return [*self.broken, *self.against]

    @property
    def not_measured(self) -> list[str]:
        """Those that nobody has measured yet."""
        return self._of(NOT_MEASURED)

    @property
    def to_audit(self) -> list[str]:
        """Those of them that an audit of the table measures."""
        return [text for text in self.not_measured if is_audited(text.split()[0])]

    @property
    def bits(self) -> int:
        """Number of answers that depend on the private text."""
        return sum(entry.restricted and entry.measured for entry in self.judged)

    def _of(self, standing: Standing) -> list[str]:
        return [entry.requirement for entry in self.judged if entry.standing == standing]

    def as_dict(self) -> dict[str, Json]:
        """Return the verdict, JSON-able, without restricted figures."""
        return {
            "standing": self.standing,
            "requirements": [
                {"requirement": entry.requirement, "standing": entry.standing, "restricted": entry.restricted}
                for entry in self.judged
            ],
            "against": list(self.against),
        }


def audited(figures: Mapping[str, float | None], name: str) -> Metric:
    """Read a figure of the newest audit from the restricted metrics of a run; its value is None where nobody measured it."""
    value, lower, upper = (figures.get(f"{AUDITED}{name}{side}") for side in ("", "_lower", "_upper"))
    return Metric(name, value, lower, upper)


def of_metrics(figures: Mapping[str, float | None], counted: Sequence[str]) -> list[Metric]:
    """Read the restricted metrics of a run: figures of its own, and those of the newest audit of its table.

    Args:
        figures: of the whole run, by their names in the table of metrics.
        counted: names of the run's own figures that are taken.
    """
    own = [Metric(name, figures[name]) for name in counted if name in figures]
    # A bound stands beside its figure: context_success, context_success_lower, context_success_upper.
    names = [name for name in figures if name.startswith(AUDITED) and not name.endswith(("_lower", "_upper"))]
    return [*own, *(audited(figures, name.removeprefix(AUDITED)) for name in names)]
