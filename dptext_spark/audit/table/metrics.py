"""Metrics of a written table against its source, from counts of aligned words, for tables of any tool."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.results import AuditResult, Group, Shown
from dptext_spark.audit.table.names import KINDS, LISTED_COUNTS, NAME_COUNTS
from dptext_spark.config.figures import LABELLED, MEANING
from dptext_spark.config.requirements import Requirement, named_requirement
from dptext_spark.runtime.record import Json

COUNTS = (
    "rows", "rows_not_aligned", "words", "words_not_aligned", "same", "drawn", "drawn_same", "unknown", "unknown_same",
    "numbers", "numbers_same", *NAME_COUNTS, *LISTED_COUNTS,
)  # fmt: skip
LISTED = ("listed_found", "listed_kept")
ANNOTATED = tuple(LABELLED)
# Figures of names, which are shown to whoever asks for private figures only.
NAMED = (
    *("names_found", "names_kept", *(f"{kind}_kept{whole}" for kind in KINDS for whole in ("", "_whole"))),
    *(*LISTED, *ANNOTATED),
)
_OF_NAMES = (
    "names of persons, by public lists",
    "names of places, by public lists",
)
ATTACKS = ("bayes_success", "context_success", "attacked_words")
FREQUENCY = ("frequency_success",)
SIMILARITY = tuple(name for name in MEANING if name.startswith(("cosine", "rouge_", "bleu", "distinct_")))
ENCODED = tuple(name for name in MEANING if name.startswith(("embedding_", "bert_")))
MASKED = tuple(name for name in MEANING if name.startswith("masked_"))
LABEL = tuple(name for name in MEANING if name.startswith(("accuracy_", "label_", "membership_")))
ATTRIBUTE = tuple(name for name in MEANING if name.startswith("attribute_"))


# What an audit has to be given to measure a figure, by what its name begins with.
_OPTIONS = (
    (("accuracy_", "label_", "membership_"), "--label COLUMN"),
    (("attribute_",), "--attribute COLUMN"),
    (("cosine", "rouge_", "bleu", "distinct_"), "--similarity"),
    (("embedding_", "bert_"), "--encoder FOLDER"),
    (("masked_",), "--masked-model FOLDER"),
    (("listed_",), "--names FILE"),
    (("annotated_",), "--annotations FILE"),
)


def options_for(names: Iterable[str]) -> list[str]:
    """Return the options of `dptext audit` that figures of these names take beside tables and settings."""
    wanted = list(names)
    return [option for starts, option in _OPTIONS if any(name.startswith(starts) for name in wanted)]


def described(figure: Metric) -> dict[str, Json]:
    """Return a figure and what it means, JSON-able."""
    return {**figure.as_dict(), "meaning": MEANING[figure.name]}


def table_requirement(text: str, names: Collection[str]) -> Requirement[str]:
    """Read a requirement of a table.

    Args:
        text: such as `original_share <= 0.6`.
        names: of the figures that this audit has.

    Raises:
        SettingsError: another form, or a figure that this audit does not have.
    """
    return named_requirement(text, names, "this audit")


def holds(requirement: Requirement[str], figures: Iterable[Metric]) -> bool:
    """Whether the whole table meets a requirement: by an estimate's cautious bound; never by what could not be counted."""
    for figure in figures:
        if figure.name == requirement.subject and figure.column is None:
            bound = figure.upper if requirement.caps else figure.lower
            judged = figure.value if bound is None else bound
            return judged is not None and requirement.holds(judged)
    return False


def text_figures(counts: Mapping[str, int], column: str | None = None) -> list[Metric]:
    """Return the figures that follow from counts.

    Args:
        counts: of each name in `COUNTS`; `words` and what follows are of aligned words.
        column: that they are of.
    """
    words, drawn, unknown = counts["words"], counts["drawn"], counts["unknown"]
    found: dict[str, float | None] = {
        "rows_not_aligned": counts["rows_not_aligned"],
        "words": words,
        "aligned_share": _share(words, words + counts["words_not_aligned"]),
        "original_share": _share(counts["drawn_same"], drawn),
        "original_share_all": _share(counts["same"], words),
        "changed_share": _share(words - counts["same"], words),
        "oov_share": _share(unknown, words),
        "oov_kept_share": _share(counts["unknown_same"], unknown),
        "numbers_kept_share": _share(counts["numbers_same"], counts["numbers"]),
        "names_found": sum(counts[kind] for kind in KINDS),
        "names_kept": _share(
            sum(counts[f"{kind}_same"] for kind in KINDS), sum(counts[kind] for kind in KINDS)
        ),
    }
    for kind in KINDS:
        found[f"{kind}_kept"] = _share(counts[f"{kind}_same"], counts[kind])
        found[f"{kind}_kept_whole"] = _share(counts[f"{kind}_whole_same"], counts[f"{kind}_whole"])
    return [Metric(name, value, column=column) for name, value in found.items()]


def listed_figures(counts: Mapping[str, int], column: str | None = None) -> list[Metric]:
    """Return the figures of the list that was given, from `LISTED_COUNTS`."""
    found = counts["listed"]
    values = (found, _share(counts["listed_same"], found))
    return [Metric(name, value, column=column) for name, value in zip(LISTED, values, strict=True)]


def row_figures(rows: int, in_table: int, in_source: int, unchanged: int, with_words: int) -> list[Metric]:
    """Return the figures of whole rows.

    Args:
        rows: that are in both.
        in_table: rows of the table.
        in_source: rows of the source.
        unchanged: rows with a word to draw whose texts are the source's.
        with_words: rows with a word to draw.
    """
    return [
        Metric("rows", rows),
        Metric("missing_in_table", in_source - rows),
        Metric("missing_in_source", in_table - rows),
        Metric("unchanged_rows", unchanged),
        Metric("unchanged_rows_share", _share(unchanged, with_words)),
    ]


@dataclass(frozen=True, kw_only=True)
class KeptWords(AuditResult):
    """What of a text is as it was.

    Attributes:
        unit: what the figures are.
        figures: shares, by the kind of words.
        words: that were aligned.
    """

    name: str = "kept words"
    measures: str = "The share of words that are in the table as they were in its source, of all rows."
    exact: bool = True
    unit: str = "share of the words"
    figures: Mapping[str, float]
    words: int | None = field()

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> KeptWords:
        """Return it from counts, as :func:`text_figures` takes them."""
        parts = {
            "the lexicon's words (kept stop words aside)": (counts["drawn_same"], counts["drawn"]),
            "all words": (counts["same"], counts["words"]),
            "words that the lexicon lacks": (counts["unknown_same"], counts["unknown"]),
            "numbers": (counts["numbers_same"], counts["numbers"]),
            **{
                said: (counts[f"{what}_same"], counts[what])
                for said, what in zip(_OF_NAMES, KINDS, strict=True)
            },
        }
        shares = {name: _share(*part) for name, part in parts.items()}
        return cls(figures={n: one for n, one in shares.items() if one is not None}, words=counts["words"])

    def without_names(self) -> KeptWords:
        """Return it without names."""
        return replace(
            self, figures={name: one for name, one in self.figures.items() if name not in _OF_NAMES}
        )

    def shown(self) -> Shown:
        """Show the shares, and of how many words they are."""
        words = {} if self.words is None else {"words": self.words}
        return Shown((Group("", self.figures, self.unit),), singles=words)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
