"""Results of an audit of a written table: its metrics, its findings part by part, and the audit as a whole.

Metrics come from counts of aligned words, for tables of any tool. Names of a source that remain unchanged in the table are
counted by public lists, or by a list that you give. The table may come from any tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I64, U8, Bools, offsets
from dptext_spark.audit.results import AuditResult, Group, ResultView
from dptext_spark.config.requirements import MEANING, Metric, Requirement, Verdict, meaning_of, split_subject
from dptext_spark.runtime.display import cut, line
from dptext_spark.runtime.validation import Json
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.public_names import CITY, REGION, parts_of_names
from dptext_spark.text.tokens import Words

KINDS = ("persons", "locations")
# Entries of a list that is given, and those of which every word was kept.
LISTED_COUNTS = ("listed", "listed_same")
# Words of names, those of them that were kept, whole names, and those of which every word was kept.
NAME_COUNTS = tuple(f"{kind}{what}" for kind in KINDS for what in ("", "_same", "_whole", "_whole_same"))


class FoundNames(NamedTuple):
    """Names of texts, searched once for all counts.

    Attributes:
        data: uint8[...], the bytes of the texts, padded.
        parts: int64[n, 5], of each part of a name, as :func:`parts_of_names` returns them.
    """

    data: U8
    parts: I64

    @classmethod
    def of(cls, texts: pa.Array) -> FoundNames:
        """Search texts, string [rows]."""
        data, bounds = padded(texts)
        return cls(data, parts_of_names(data, bounds))


def name_counts(names: FoundNames, source: Words, aligned: Bools, same: Bools) -> dict[str, int]:
    """Count the names of texts: each of `NAME_COUNTS`; words and names that could not be aligned are left out.

    Args:
        names: of the texts of the source.
        source: their words.
        aligned: bool[n], marks words that could be aligned with the table's.
        same: bool[n], marks words that are unchanged in the table.
    """
    parts = names.parts
    starts, ends, kinds, whole, rows = parts.T
    compared, same_names = stretches_in(source, starts, ends, aligned, same)
    place = np.isin(kinds, (CITY, REGION))
    begins = np.ones(len(parts), np.bool_)
    begins[1:] = (whole[1:] != whole[:-1]) | (rows[1:] != rows[:-1])
    mentions = np.flatnonzero(begins)
    all_compared, all_kept = (
        np.logical_and.reduceat(flags, mentions) if len(mentions) else flags
        for flags in (compared, same_names)
    )
    counts: dict[str, int] = {}
    for kind, of_kind in zip(KINDS, (~place, place), strict=True):
        counts[kind] = int((compared & of_kind).sum())
        counts[f"{kind}_same"] = int((same_names & of_kind).sum())
        counts[f"{kind}_whole"] = int((all_compared & of_kind[mentions]).sum())
        counts[f"{kind}_whole_same"] = int((all_kept & of_kind[mentions]).sum())
    return counts


def kept_words(names: FoundNames, source: Words, aligned: Bools, same: Bools) -> tuple[pa.Array, pa.Array]:
    """Return the words of names that are unchanged in the table: private text.

    Args:
        names: of the texts of the source.
        source: their words.
        aligned: bool[n], marks words that could be aligned with the table's.
        same: bool[n], marks words that are unchanged in the table.

    Returns:
        (string [k], each in lower case, once; int64[k], how often).
    """
    spans = np.unique(names.parts[:, :2], axis=0)
    # What stands within a longer part of a name is counted with that.
    spans = spans[np.lexsort((-spans[:, 1], spans[:, 0]))]
    reached = np.append(0, np.maximum.accumulate(spans[:, 1]))[:-1] if len(spans) else spans[:, 1]
    starts, ends = spans[spans[:, 1] > reached].T
    _, is_same = stretches_in(source, starts, ends, aligned, same)
    sizes = (ends - starts)[is_same]
    places = offsets(sizes)
    taken = np.repeat(starts[is_same] - places[:-1], sizes) + np.arange(places[-1])
    buffers = [None, pa.py_buffer(places), pa.py_buffer(names.data[taken].tobytes())]
    words = pc.utf8_lower(pa.Array.from_buffers(pa.large_string(), len(sizes), buffers))
    counted = words.value_counts()
    return counted.field("values"), counted.field("counts")


def listed_counts(
    names: NameMatcher, texts: pa.Array, source: Words, aligned: Bools, same: Bools
) -> dict[str, int]:
    """Count the entries of a list in texts, as :func:`name_counts` does: each of `LISTED_COUNTS`."""
    data, bounds = padded(texts)
    entries = names.find_in(data, bounds)
    shift = bounds[entries.rows]
    compared, same_entries = stretches_in(source, entries.starts + shift, entries.ends + shift, aligned, same)
    return dict(zip(LISTED_COUNTS, (int(compared.sum()), int(same_entries.sum())), strict=True))


def stretches_in(source: Words, starts: I64, ends: I64, aligned: Bools, same: Bools) -> tuple[Bools, Bools]:
    """Mark the stretches of the texts that could be compared, bool[n], and those that are unchanged in the table."""
    first = np.searchsorted(source.spans.ends, starts, side="right")
    last = np.maximum(first, np.searchsorted(source.spans.starts, ends, side="left"))

    def all_of(flags: Bools) -> Bools:
        # A stretch may be of several words, and a name that the policy replaces whole is one for all its parts.
        total = offsets(flags)
        return np.asarray((last > first) & (total[last] - total[first] == last - first), np.bool_)

    return all_of(aligned), all_of(same)


COUNTS = (
    "rows", "rows_not_aligned", "words", "words_not_aligned", "same", "drawn", "drawn_same", "unknown", "unknown_same",
    "numbers", "numbers_same", *NAME_COUNTS, *LISTED_COUNTS,
)  # fmt: skip
LISTED = ("listed_found", "listed_kept")
# Figures of names, which are shown to whoever asks for private figures only.
NAMED = (
    *("names_found", "names_kept", *(f"{kind}_kept{whole}" for kind in KINDS for whole in ("", "_whole"))),
    *LISTED,
)
_OF_NAMES = ("names of persons, by public lists", "names of places, by public lists")
SIMILARITY = tuple(name for name in MEANING if name.startswith(("cosine", "rouge_", "bleu", "distinct_")))
ENCODED = tuple(name for name in MEANING if name.startswith(("embedding_", "bert_")))
MASKED = tuple(name for name in MEANING if name.startswith("masked_"))
BY_AUTHOR = tuple(name for name in MEANING if name.startswith("linkage_author_"))
BY_TEXTS = (
    *("linkage_top1", "linkage_top10", "linkage_candidates", "linkage_guess"),
    *(name for name in MEANING if name.startswith(("linkage_tfidf_", "linkage_source_"))),
)
BY_LAW = ("singled_out", *(name for name in MEANING if name.startswith("linkage_") and "_words_" in name))
LABEL = tuple(name for name in MEANING if name.startswith(("accuracy_", "label_", "membership_")))
ATTRIBUTE = tuple(name for name in MEANING if name.startswith("attribute_"))


# What an audit has to be given to measure figures.
_OPTIONS = {
    "--label COLUMN": LABEL,
    "--attribute COLUMN": ATTRIBUTE,
    "--author COLUMN": BY_AUTHOR,
    "--similarity": SIMILARITY,
    "--encoder FOLDER": ENCODED,
    "--masked-model FOLDER": MASKED,
    "--names FILE": LISTED,
}


def options_for(names: Iterable[str]) -> list[str]:
    """Return the options of `dptext audit` that these figures take in addition to tables and settings."""
    asked = {split_subject(name)[0] for name in names}
    return [option for option, figures in _OPTIONS.items() if not asked.isdisjoint(figures)]


def described(figure: Metric) -> dict[str, Json]:
    """Return a figure and its meaning, JSON-able."""
    return {**figure.as_dict(), "meaning": meaning_of(figure.name)}


def text_figures(counts: Mapping[str, int], column: str | None = None) -> list[Metric]:
    """Return the figures that follow from counts.

    Args:
        counts: of each name in `COUNTS`; `words` and what follows are of aligned words.
        column: that they are of.
    """
    words, drawn, unknown = counts["words"], counts["drawn"], counts["unknown"]
    names = sum(counts[kind] for kind in KINDS)
    values: dict[str, float | None] = {
        "rows_not_aligned": counts["rows_not_aligned"],
        "words": words,
        "aligned_share": _share(words, words + counts["words_not_aligned"]),
        "original_share": _share(counts["drawn_same"], drawn),
        "original_share_all": _share(counts["same"], words),
        "changed_share": _share(words - counts["same"], words),
        "oov_share": _share(unknown, words),
        "oov_kept_share": _share(counts["unknown_same"], unknown),
        "numbers_kept_share": _share(counts["numbers_same"], counts["numbers"]),
        "names_found": names,
        "names_kept": _share(sum(counts[f"{kind}_same"] for kind in KINDS), names),
    }
    for kind in KINDS:
        values[f"{kind}_kept"] = _share(counts[f"{kind}_same"], counts[kind])
        values[f"{kind}_kept_whole"] = _share(counts[f"{kind}_whole_same"], counts[f"{kind}_whole"])
    return [Metric(name, value, column=column) for name, value in values.items()]


def listed_figures(counts: Mapping[str, int], column: str | None = None) -> list[Metric]:
    """Return the figures of the list that was given, from `LISTED_COUNTS`."""
    listed = counts["listed"]
    values = (listed, _share(counts["listed_same"], listed))
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
    """Shares of a text that are unchanged. `unit`: what the figures are."""

    name: str = "kept words"
    measures: str = "The share of the source's words that are unchanged in the table, over all rows."
    exact: bool = True
    unit: str = "share of the words"
    figures: Mapping[str, float]
    words: int | None = field()

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> KeptWords:
        """Build the figures from counts, as :func:`text_figures` takes them."""
        parts = {
            "the lexicon's words, without kept stop words": (counts["drawn_same"], counts["drawn"]),
            "all words": (counts["same"], counts["words"]),
            "words that the lexicon lacks": (counts["unknown_same"], counts["unknown"]),
            "numbers": (counts["numbers_same"], counts["numbers"]),
        }
        parts |= {
            name: (counts[f"{what}_same"], counts[what]) for name, what in zip(_OF_NAMES, KINDS, strict=True)
        }
        shares = {name: _share(*part) for name, part in parts.items()}
        return cls(figures={n: rate for n, rate in shares.items() if rate is not None}, words=counts["words"])

    def without_names(self) -> KeptWords:
        """Return the findings without names."""
        figures = {name: rate for name, rate in self.figures.items() if name not in _OF_NAMES}
        return replace(self, figures=figures)

    def shown(self) -> ResultView:
        """Show the shares, and of how many words they are."""
        words = {} if self.words is None else {"words": self.words}
        return ResultView((Group("", self.figures, self.unit),), singles=words)


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


@dataclass(frozen=True)
class Findings:
    """Findings of a part of an audit.

    Attributes:
        figures: of the whole table.
        results: the same in full, as a report shows them.
        left_out: what was not measured, and why.
    """

    figures: list[Metric] = field(default_factory=list)
    results: list[AuditResult] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def __add__(self, other: Findings) -> Findings:
        """Put two parts together."""
        left_out = [*self.left_out, *other.left_out]
        return Findings([*self.figures, *other.figures], [*self.results, *other.results], left_out)


@dataclass(frozen=True)
class StayedWord:
    """A word of a source that is unchanged in a table, and how often."""

    word: str
    times: int


@dataclass(frozen=True)
class TableAudit:
    """Result of an audit of a table.

    Attributes:
        audit_id: the key of the metrics: the run that wrote the table, or a new one.
        table: that was audited, with its `version`.
        source: that it was compared with; and the `source_version`.
        figures: of the whole table, then of each column.
        results: what the figures are of, in full, as `dptext report --figures` shows it.
        left_out: what was not measured, and why.
        seconds: wall time.
        restricted: the figures depend on the private text.
        internal: whether what is shown may hold figures of names, see `NAMED`.
        stayed: words of names that stayed most, with how often each did: private text; None where nobody asked for them.
        required: what the settings of the run require; such a figure may not have been measured.
        has_account: whether a run of ours wrote the table, so that its metrics keep each answered question.

    Examples:
        >>> found.broken
        []
        >>> sorted(found.as_dict()["figures"][0])
        ['column', 'lower', 'meaning', 'name', 'upper', 'value']
    """

    audit_id: str
    table: str
    version: str
    source: str
    source_version: str
    metrics: str
    figures: tuple[Metric, ...]
    results: tuple[AuditResult, ...]
    limits: tuple[Requirement[str], ...]
    left_out: tuple[str, ...]
    seconds: float
    restricted: bool = True
    internal: bool = False
    stayed: tuple[StayedWord, ...] | None = None
    required: tuple[Requirement[str], ...] = ()
    has_account: bool = True

    def __repr__(self) -> str:
        """Show the table and source; the figures depend on the private text."""
        return line("TableAudit", cut(repr(self.audit_id), 80), f"{len(self.figures):,} figures, not shown")

    @property
    def requirements(self) -> list[tuple[str, bool]]:
        """The requirements, and whether each holds."""
        judged = Verdict.of(self.limits, self.figures).judged
        return [(entry.requirement, entry.holds) for entry in judged]

    @property
    def answers(self) -> dict[str, bool]:
        """Whether each measured requirement holds: each is an exact answer on a figure of the private text."""
        judged = {
            entry.requirement: entry.holds
            for entry in self.verdict.judged
            if entry.restricted and entry.measured
        }
        return {**judged, **dict(self.requirements)}

    @property
    def broken(self) -> list[str]:
        """The requirements that do not hold, without requirements of the settings that were not measured."""
        return [*(text for text, met in self.requirements if not met), *self.verdict.broken]

    @property
    def verdict(self) -> Verdict:
        """The verdict of this audit on the requirements of the settings."""
        return Verdict.of(self.required, self.figures)

    @property
    def shown(self) -> tuple[Metric, ...]:
        """The figures that may be shown: without `internal` none of names."""
        return tuple(figure for figure in self.figures if self.internal or figure.name not in NAMED)

    @property
    def withheld(self) -> list[str]:
        """The names of the figures that are not shown."""
        shown = {figure.name for figure in self.shown}
        return list(dict.fromkeys(figure.name for figure in self.figures if figure.name not in shown))

    @property
    def released(self) -> list[str]:
        """The requirements on figures that are not shown: each answer reveals something of the private text."""
        withheld = self.withheld
        judged = (*self.limits, *self.required)
        return list(dict.fromkeys(str(limit) for limit in judged if limit.subject in withheld))

    def as_dict(self) -> dict[str, Json]:
        """Return the figures that may be shown, JSON-able: without `internal` no figure of names."""
        plain = (
            "audit_id",
            "table",
            "version",
            "source",
            "source_version",
            "metrics",
            "seconds",
            "restricted",
        )
        results = (result if self.internal else result.without_names() for result in self.results)
        return {
            **{name: getattr(self, name) for name in plain},
            "figures": [described(figure) for figure in self.shown],
            "results": [result.as_dict() for result in results if result is not None],
            "requirements": [{"requirement": text, "holds": met} for text, met in self.requirements],
            "left_out": list(self.left_out),
            **({"verdict": self.verdict.as_dict()} if self.required else {}),
            **({"withheld": list(self.withheld), "released": list(self.released)} if self.withheld else {}),
            **({} if self.stayed is None else {"stayed": [asdict(word) for word in self.stayed]}),
        }
