"""The section of a report on attacks, each against its baselines."""

from __future__ import annotations

from collections.abc import Sequence

from dptext_spark.audit.results import UNPROTECTED, AuditResult, WordAttack
from dptext_spark.report.blocks import Block, Chart, Section, Table, Text
from dptext_spark.report.charts import Bar, bars
from dptext_spark.report.sections.measured import measured, sentence, sure, title
from dptext_spark.rounding import percent_up


def attacks(found: Sequence[AuditResult], missing: str) -> Section:
    """Write what adversaries find, each against its baselines.

    Args:
        found: by attacks.
        missing: what is said of those that were not made; may be empty.
    """
    if not found:
        return Section("attacks", "Attacks", (Text(missing, quiet=True),))
    intro = Text(
        "An attack sees the output and guesses the word that stood there, or something of who wrote it. Its success is "
        "compared with guessing without the output, and with text that nobody protected."
    )
    blocks: list[Block] = [intro]
    for place, one in enumerate(found):
        key = f"attack{place}"
        blocks += [_chart(one, key)] if isinstance(one, WordAttack) else measured(one, key)
    if missing:
        blocks.append(Text(missing, quiet=True))
    return Section("attacks", "Attacks", tuple(blocks), restricted=any(one.restricted for one in found))


def _chart(one: WordAttack, key: str) -> Chart:
    low, high = (None, None) if one.exact else (one.lower, one.upper)
    drawn = [Bar("this attack", one.success, 0, low, high, percent_up(one.success))]
    if one.worst is not None:
        name = "this attack, on the 1 % of words it finds most often"
        drawn.append(Bar(name, one.worst, 0, one.worst_lower, one.worst_upper, percent_up(one.worst)))
    drawn += [
        Bar(name, value, 2 if name == UNPROTECTED else 1, said=percent_up(value))
        for name, value in one.baselines().items()
    ]
    rows = [(bar.name, bar.said, _between(bar)) for bar in drawn]
    rows += [(name, text, "") for name, text in (one.also or {}).items()]
    columns = 3 if low is not None and high is not None else 2
    return Chart(
        title(one),
        " ".join(sentence(part) for part in (one.measures, one.knows) if part),
        f"The first bar is the attack; the shorter, the better protected. {sure(one)}",
        bars(drawn, key=key, x="share of the words found", top=1.0),
        Table(("", "share", "bounds")[:columns], tuple(row[:columns] for row in rows)),
    )


def _between(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{100 * bar.low:.2f} to {100 * bar.high:.2f} %"
