"""The offline pages: from a run's facts, or any sections, to one HTML file that fetches nothing and opens from disk."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from dptext_spark._version import __version__
from dptext_spark.report.audits_section import attacks, utility
from dptext_spark.report.blocks import Section, pairs
from dptext_spark.report.decision import EXAMPLE, decision, joined
from dptext_spark.report.deniability_section import deniability
from dptext_spark.report.facts import ReportFacts
from dptext_spark.report.names_section import names
from dptext_spark.report.requirements_section import requirements
from dptext_spark.report.run_section import (
    configuration,
    disclosure,
    examples,
    guarantee,
    lead,
    quality,
    tiles,
)

_WHY = {
    "examples": "this report holds private text. Not for sharing.",
    "internal": "this report holds figures that depend on the private text. Not for sharing.",
}

_GLOSSARY = (
    ("annex", "the pages after the first two, with the figures behind them"),
    ("approval", "purpose, owner and expiry in the settings; it changes nothing in the table"),
    ("attack", "a guess at the original words from the released table"),
    (
        "certificate",
        "a check of the sampled law against the promised ε; it does not measure how often words are guessed",
    ),
    ("consistency", "whether equal words get equal replacements: never, within a record, or everywhere"),
    (
        "δ (delta)",
        "the probability up to which an ε may fail; 0 if there is none. It should be far below 1 / records",
    ),
    (
        "drawn word",
        "a word that was replaced by a random one. Only such words have the guarantee. A drawn word may become itself",
    ),
    (
        "ε (epsilon)",
        "how well one output may distinguish two words: its probabilities differ by a factor of at most e^ε. Smaller is safer",
    ),
    ("identifier", "an e-mail address, a number, a date and the like, found by rules and replaced whole"),
    ("in clear", "unchanged from the source"),
    ("ledger", "the account of what all releases of an input have spent together"),
    ("lexicon", "the words that can be drawn; any other is an unknown word"),
    ("metric", "a figure of the run or of an audit"),
    ("N_w", "the probability that a word becomes itself"),
    ("output set", "the words that a word can become; some mechanisms draw within it only"),
    (
        "record",
        "the data of one person or event: a row, or all rows with one key. Its ε covers all its words together",
    ),
    ("requirement", "a limit that the settings set beforehand (require)"),
    (
        "restricted",
        "depends on the private text and is not for sharing. An answer to a requirement on such a figure is one bit of it",
    ),
    ("S_w", "the number of outputs that a word hides among"),
    ("stop word", "a very frequent word such as 'the'; kept in clear unless policy.stop_words is draw"),
    (
        "verdict",
        "holds: every requirement is met; broken: one is not met; not decided: one was not measured, or none was set",
    ),
)


def page(facts: ReportFacts) -> str:
    """Write the page.

    Facts that depend on the text, and examples, mark the page as restricted, in its first line too.

    Returns:
        HTML, the same for the same facts.
    """
    why = "examples" if facts.examples else "internal" if facts.internal else None
    written = (
        requirements(facts.verdict.judged), guarantee(facts), disclosure(facts), attacks(facts.attacks, facts.attacks_missing),
        deniability(facts.deniability, facts.run.promised.epsilon), utility(facts.utility, facts.utility_missing, facts.attacks),
        names(facts), quality(facts), configuration(facts), examples(facts), glossary(),
    )  # fmt: skip
    return build_page(
        f"Decision on run {facts.run.run_id}",
        [section for section in written if section is not None],
        lead=lead(facts),
        source="the account of the run",
        warnings=facts.statement.under("Warnings"),
        restricted=None if why is None else _WHY[why],
        decision=decision(facts),
        example=EXAMPLE,
        joined=joined(facts),
        tiles=tiles(facts),
    )


def glossary() -> Section:
    """Write what the words of a report mean."""
    return Section("glossary", "Glossary", (pairs(_GLOSSARY),))


def build_page(
    title: str, sections: Sequence[Section], *, lead: str, source: str, warnings: Sequence[str], **parts: Any
) -> str:
    """Build a page of sections.

    `parts` are those of the template that not every page has: `restricted`, `decision`, `example`, `joined`, `tiles`.
    """
    from jinja2 import Environment, StrictUndefined

    # Autoescaping whatever the file is called: every cell may come from a table.
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        files("dptext_spark.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    foot = f"Made by dptext {__version__} from {source}; it fetches nothing and runs no script."
    parts = {"restricted": None, "decision": None, "joined": "", "tiles": ()} | parts
    return template.render(title=title, sections=sections, lead=lead, warnings=warnings, foot=foot, **parts)
