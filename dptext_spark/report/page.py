"""The offline pages: a run's facts, or any sections, in; one HTML file out, which fetches nothing and opens from disk."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from dptext_spark._version import __version__
from dptext_spark.report.blocks import Section
from dptext_spark.report.facts import ReportFacts
from dptext_spark.report.sections.decision import EXAMPLE, decision, glossary, joined
from dptext_spark.report.sections.deniability import deniability
from dptext_spark.report.sections.measured import attacks, utility
from dptext_spark.report.sections.names import names
from dptext_spark.report.sections.required import requirements
from dptext_spark.report.sections.run import (
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


def page(facts: ReportFacts) -> str:
    """Write the page.

    Args:
        facts: what depends on the text, and examples, mark the page as restricted, in its first line too.

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


def build_page(
    title: str, sections: Sequence[Section], *, lead: str, source: str, warnings: Sequence[str], **parts: Any
) -> str:
    """Build a page of sections.

    Args:
        title: of the page.
        sections: in order.
        lead: the paragraph below the title.
        source: what the page is made from.
        warnings: sentences.
        parts: of the template that not every page has: `restricted`, `decision`, `example`, `joined`, `tiles`.
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
