"""The offline page: the facts of a run in, one HTML file out, which fetches nothing and opens from disk."""

from __future__ import annotations

from importlib.resources import files

from dptext_spark._version import __version__
from dptext_spark.report.facts import ReportFacts
from dptext_spark.report.sections.attacks import attacks
from dptext_spark.report.sections.decision import EXAMPLE, decision, glossary, joined
from dptext_spark.report.sections.deniability import deniability
from dptext_spark.report.sections.measured import utility
from dptext_spark.report.sections.names import names
from dptext_spark.report.sections.overview import lead, tiles
from dptext_spark.report.sections.required import requirements
from dptext_spark.report.sections.run import configuration, disclosure, examples, guarantee, quality

_WHY = {
    "examples": "this file holds private text (--with-examples). Not for sharing.",
    "internal": "this file holds figures that depend on the private text (--internal). Not for sharing.",
}


def page(facts: ReportFacts) -> str:
    """Write the page.

    Args:
        facts: what depends on the text, and examples, mark the page as restricted, in its first line too.

    Returns:
        HTML, the same for the same facts.
    """
    from jinja2 import Environment, StrictUndefined

    # Autoescaping whatever the file is called: every cell may come from a table.
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(
        files("dptext_spark.report").joinpath("page.html").read_text(encoding="utf-8")
    )
    why = "examples" if facts.examples else "internal" if facts.internal else None
    written = (
        requirements(facts.verdict.judged), guarantee(facts), disclosure(facts), attacks(facts.attacks, facts.attacks_missing),
        deniability(facts.deniability, facts.run.promised.epsilon), utility(facts.utility, facts.utility_missing),
        names(facts), quality(facts), configuration(facts), examples(facts), glossary(),
    )  # fmt: skip
    sections = [section for section in written if section is not None]
    return template.render(
        title=f"Decision on run {facts.run.run_id}",
        restricted=None if why is None else _WHY[why],
        decision=decision(facts),
        example=EXAMPLE,
        joined=joined(facts),
        lead=lead(facts),
        tiles=tiles(facts),
        warnings=facts.statement.under("Warnings"),
        sections=sections,
        foot=f"Made by dptext {__version__} from the account of the run; it fetches nothing and runs no script.",
    )
