"""The disclosure statement as a value: headings with sentences, as Markdown, HTML and JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from dptext_spark.rounding import exact, rounded_up
from dptext_spark.runtime.record import Json

PROTECTED = "What is protected"


@dataclass(frozen=True)
class Statement:
    """Headings with their sentences, in order; `Warnings` stands first if there are any."""

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
        """Return the statement with further sentences under a heading, which is added at the end where it is missing."""
        if heading not in dict(self.sections):
            return Statement((*self.sections, (heading, sentences)))
        return Statement(
            tuple((name, (*said, *sentences) if name == heading else said) for name, said in self.sections)
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
                f" By the least bound that is valid it came to {exact(bound['p50'])} for a record of the median number of "
                f"drawn words and to {exact(bound['max'])} for one of the largest{up_to}."
            )
        return self.extended(
            PROTECTED,
            "Restricted, for it depends on the text: over a record of this run the sum of ε came to "
            f"{rounded_up(epsilon['mean'])} on average, to {rounded_up(epsilon['p95'])} at most for 95 % of them, and to "
            f"{rounded_up(epsilon['max'])} at most.{least}",
        )
