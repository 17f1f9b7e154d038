"""The three questions that European guidance asks of anonymised data, each with a number and a sentence.

Singling out, linkability and inference: Article 29 Working Party, Opinion 05/2014. A page that may be shared has no figure of the
table: there singling out is answered by the law and public text alone.
"""

from __future__ import annotations

from typing import NamedTuple

from dptext_spark.audit.verdict import AUDITED
from dptext_spark.disclosure.facts import Figures
from dptext_spark.report.facts import ReportFacts
from dptext_spark.rounding import percent_up

# Who finds a row, by the figure of the audit; the greatest of them answers.
LINKS = {
    "linkage_top1": "somebody who holds all source texts and knows the settings",
    "linkage_source_top1": "somebody who holds the row's text and knows the settings",
    "linkage_tfidf_top1": "somebody who holds all source texts",
    "linkage_tfidf_source_top1": "somebody who holds the row's text",
    "linkage_10_words_top1": "somebody who knows ten of its original words",
    "linkage_5_words_top1": "somebody who knows five of its original words",
    "linkage_3_words_top1": "somebody who knows three of its original words",
    "linkage_author_top1": "somebody who holds another text of the same author",
}
AMONG = 10_000  # rows
MEASURED = "`dptext audit FILE` measures it."
RESTRICTED = "Its figure depends on the private text: the restricted page has it."


class Answer(NamedTuple):
    """A question with the number that answers it, and what that number is."""

    question: str
    figure: str
    sentence: str


def answers(facts: ReportFacts) -> tuple[Answer, ...]:
    """Answer the three questions."""
    return (
        Answer("Singling out", *_singled_out(facts)),
        Answer("Linkability", *_linked(facts)),
        Answer("Inference", *_inferred(facts.metrics)),
    )


def audited(figures: Figures, name: str) -> float | None:
    """Return a figure of the newest audit by its cautious bound; None where it was not measured."""
    upper = figures.get(f"{AUDITED}{name}_upper")
    return figures.get(f"{AUDITED}{name}") if upper is None else upper


def _singled_out(facts: ReportFacts) -> tuple[str, str]:
    told, words = "", None if facts.told is None else facts.told.words(AMONG)
    if words is not None:
        many = "one replacement tells" if words == 1 else f"about {words:,} replacements tell"
        told = f"By the probabilities of the draws {many} one row from {AMONG:,} others."
    if facts.metrics is None:
        return ("by the draws" if told else "restricted"), f"{told} {RESTRICTED}".strip()
    share = audited(facts.metrics, "singled_out")
    if share is None:
        return "not measured", f"{MEASURED} {told}".strip()
    fit = f"of the released rows come down to fewer than ten of {_candidates(facts.metrics)} source rows, for who holds these."
    return percent_up(share), f"{fit} {told}".strip()


def _linked(facts: ReportFacts) -> tuple[str, str]:
    key = facts.run.settings.row_key
    joined = f"Whoever has {key} of the source needs no guess. " if key else ""
    personal = f"{joined}For whoever holds the source the table stays personal data."
    figures = facts.metrics
    if figures is None:
        return "restricted", f"{RESTRICTED} {personal}"
    shares = {name: share for name in LINKS if (share := audited(figures, name)) is not None}
    if not shares:
        return "not measured", f"{MEASURED} {personal}"
    most = max(shares, key=lambda name: shares[name])
    guess, few = figures.get(f"{AUDITED}linkage_guess"), shares.get("linkage_3_words_top1")
    chance = "" if guess is None else f"; a random guess finds {percent_up(guess)}"
    three = "" if few is None else f"; three known original words find {percent_up(few)}"
    rows = f"of the rows are found among {_candidates(figures)} by {LINKS[most]}{three}{chance}."
    return percent_up(shares[most]), f"{rows} {personal}"


def _inferred(figures: Figures | None) -> tuple[str, str]:
    if figures is None:
        return "restricted", RESTRICTED
    share, gain = audited(figures, "guess_success"), audited(figures, "attribute_gain")
    attribute = "No attribute was tried (`dptext audit FILE --attribute COLUMN`)."
    if gain is not None:
        points = percent_up(max(0.0, gain)).removesuffix(" %")
        attribute = f"The attribute that was tried is read {points} points more often than by naming its commonest value."
    if share is None:
        return "not measured", f"{MEASURED} {attribute}"
    return percent_up(share), (
        f"of the replaced words are guessed right by somebody who reads the table alone and knows the settings. {attribute}"
    )


def _candidates(figures: Figures) -> str:
    return f"{figures.get(f'{AUDITED}linkage_candidates') or 0:,.0f}"
