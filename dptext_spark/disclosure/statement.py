"""The disclosure statement as a value: headings with sentences, as Markdown, HTML and JSON.

Disclosure by the answer that a requirement holds or is broken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from dptext_spark.config.requirements import Requirement, is_restricted
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.rounding import exact, rounded_up
from dptext_spark.runtime.validation import Json

PROTECTED, CLEAR = "Protected", "Released in clear"
UNPROTECTED, ASSUMED = "Not protected", "Assumptions"


def not_audited(row_key: str | None) -> str:
    """Say, as a clause, that the written table cannot be audited against its source; empty with a row key."""
    if row_key is not None:
        return ""
    return (
        "the table cannot be audited against its source, because no column joins their rows without a row_key; name a unique "
        "column as row_key"
    )


def check_measurable(require: Sequence[Requirement[str]], guarantee: Guarantee, *, bounded: bool) -> None:
    """Refuse a requirement of a figure that no run of a model has, before anything is written.

    Raises:
        SettingsError: ε of a record, where ε is for each unit of distance.
    """
    if not (guarantee.adds_up or bounded) and any(limit.subject == "record_epsilon" for limit in require):
        raise SettingsError(
            "require: 'record_epsilon' has no figure by this mechanism: its ε is for each unit of distance between two words; "
            "valid: leave it out, or choose a mechanism with an ε that adds up over words (`dptext mechanisms`)."
        )


def bits(require: Sequence[Requirement[str]], *, bounded: bool) -> Iterator[str]:
    """Yield the sentence on requirements of figures that depend on the private text, where there are any."""
    some = [str(limit) for limit in require if is_restricted(limit.subject, bounded=bounded)]
    if some:
        yield (
            f"Answers to requirements: {'; '.join(some)}. The exit code, the summary and the report release if each holds, is "
            "broken or was not measured. The figures depend on the private text and stay restricted. Each answer is one bit of "
            "the text, and no guarantee covers it. Another limit asks for another bit."
        )


@dataclass(frozen=True)
class Statement:
    """Headings with their sentences, in order; `Warnings` comes first if there are any."""

    sections: tuple[tuple[str, tuple[str, ...]], ...]

    def under(self, heading: str) -> tuple[str, ...]:
        """Return the sentences under a heading; none where it is missing."""
        return dict(self.sections).get(heading, ())

    def markdown(self) -> str:
        """Return the statement as Markdown."""
        parts = []
        for heading, sentences in self.sections:
            parts.append(f"### {heading}\n\n" + "".join(f"- {sentence}\n" for sentence in sentences))
        return "\n".join(parts)

    def html(self, level: int = 3) -> str:
        """Return the statement as HTML: a heading of the given level and a list for each section, all text escaped."""
        return "\n".join(
            f"<h{level}>{escape(heading)}</h{level}>\n<ul>\n"
            + "".join(f"<li>{escape(sentence)}</li>\n" for sentence in sentences)
            + "</ul>"
            for heading, sentences in self.sections
        )

    @staticmethod
    def of(written: Mapping[str, Any]) -> Statement:
        """Read a statement back from what :meth:`as_dict` returned."""
        return Statement(tuple((part["heading"], tuple(part["sentences"])) for part in written["sections"]))

    def as_dict(self) -> dict[str, Json]:
        """Return {"sections": [{"heading", "sentences"}]}, JSON-able."""
        return {
            "sections": [
                {"heading": heading, "sentences": list(sentences)} for heading, sentences in self.sections
            ]
        }

    def extended(self, heading: str, *sentences: str) -> Statement:
        """Return the statement with further sentences under a heading; a missing heading is added at the end."""
        if heading not in dict(self.sections):
            return Statement((*self.sections, (heading, sentences)))
        return Statement(
            tuple((name, (*text, *sentences) if name == heading else text) for name, text in self.sections)
        )

    def with_composed(
        self, epsilon: Mapping[str, float], bound: Mapping[str, float] | None = None
    ) -> Statement:
        """Return the statement with what ε came to over this run's records, for readers who may see such figures.

        Args:
            epsilon: `mean`, `p95` and `max` over the records, from the restricted metrics: plain sums.
            bound: `p50`, `max` and `delta`, likewise: the least bound of a record of median length and of the longest.
        """
        least = ""
        if bound:
            up_to = f", up to a probability δ = {exact(bound['delta'])}" if bound["delta"] else ""
            least = (
                f" By the least valid bound ε was {exact(bound['p50'])} for a record with the median number of drawn words, "
                f"and {exact(bound['max'])} for one of the largest{up_to}."
            )
        return self.extended(
            PROTECTED,
            "Restricted, because it depends on the text: over a record of this run the sum of ε was "
            f"{rounded_up(epsilon['mean'])} on average, at most {rounded_up(epsilon['p95'])} for 95 % of the records, and at "
            f"most {rounded_up(epsilon['max'])} for all.{least}",
        )
