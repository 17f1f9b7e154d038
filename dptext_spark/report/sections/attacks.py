"""The section of a report on attacks, each against its baselines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dptext_spark.report.blocks import Block, Chart, Section, Table, Text
from dptext_spark.report.charts import Bar, bars
from dptext_spark.report.facts import ReportFacts
from dptext_spark.report.sections.measured import measured, sentence, sure, title, value_text
from dptext_spark.rounding import percent_up

Figure = Mapping[str, Any]
# What a success is compared with, in the order in which it is drawn.
_BASELINES = (
    ("random", "random guess"),
    ("most_frequent", "always the commonest word"),
    ("bigram_baseline", "context alone, without the output"),
    ("bayes", "each word alone, without context"),
    ("unchanged", "the output itself as the guess"),
    ("unprotected", "unprotected text"),
)


def attacks(facts: ReportFacts) -> Section:
    """Write what adversaries find, each against its baselines."""
    found = facts.attacks
    if not found:
        return Section("attacks", "Attacks", (Text(facts.attacks_missing, quiet=True),))
    intro = Text(
        "An attack sees the output and guesses the word that stood there, or something of who wrote it. Its success is "
        "compared with guessing without the output, and with text that nobody protected."
    )
    blocks: list[Block] = [intro]
    for place, one in enumerate(found):
        blocks += [_attack(one, place)] if "success" in one else measured(one, f"attack{place}")
    if facts.attacks_missing:
        blocks.append(Text(facts.attacks_missing, quiet=True))
    return Section("attacks", "Attacks", tuple(blocks), restricted=any(one["restricted"] for one in found))


def _attack(one: Figure, place: int) -> Chart:
    low, high = (None, None) if one["exact"] else (one.get("lower"), one.get("upper"))
    drawn = [Bar("this attack", one["success"], 0, low, high, percent_up(one["success"]))]
    if one.get("worst") is not None:
        drawn.append(
            Bar(
                "this attack, on the 1 % of words it finds most often",
                one["worst"],
                0,
                one.get("worst_lower"),
                one.get("worst_upper"),
                said=percent_up(one["worst"]),
            )
        )
    drawn += [
        Bar(said, one[name], 1 if name != "unprotected" else 2, said=percent_up(one[name]))
        for name, said in _BASELINES
        if one.get(name) is not None
    ]
    rows = [(bar.name, bar.said, _between(bar)) for bar in drawn]
    rows += [(name, value_text(value), "") for name, value in one.get("also", {}).items()]
    columns = 3 if low is not None and high is not None else 2
    return Chart(
        title(one),
        f"{sentence(one['measures'])} {sentence(one['knows'])}",
        f"The first bar is the attack; the shorter, the better protected. {sure(one)}",
        bars(drawn, key=f"attack{place}", x="share of the words found", top=1.0),
        Table(("", "share", "bounds")[:columns], tuple(row[:columns] for row in rows)),
    )


def _between(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{100 * bar.low:.2f} to {100 * bar.high:.2f} %"
