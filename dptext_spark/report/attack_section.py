"""The section of a report on attacks, each against its baselines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dptext_spark.figures import exact, percent_up
from dptext_spark.report.blocks import Block, Chart, Listed, Section, Table, Text, pairs
from dptext_spark.report.charts import Bar, bars

Facts = Mapping[str, Any]
Figure = Mapping[str, Any]
# What a success is compared with, in the order in which it is drawn.
_BASELINES = (
    ("random", "random guess"),
    ("most_frequent", "always the commonest word"),
    ("unaided", "context alone, without the output"),
    ("bayes", "each word alone, without context"),
    ("unchanged", "the output itself as the guess"),
    ("unprotected", "unprotected text"),
)
_READ = (
    "Each bar is a figure of its own.",
    "Plain bars were measured, hatched ones are what they are compared with.",
)
_OWN = ("baselines", "settings", "also")  # groups that are no measured figures


def attacks(facts: Facts) -> Section:
    """Write what adversaries find, each against its baselines."""
    found = facts["attacks"]
    if not found:
        return Section("attacks", "Attacks", (Text(facts["attacks_missing"], quiet=True),))
    intro = Text(
        "An attack sees the output and guesses the word that stood there. Its success is compared with guessing without "
        "the output, and with text that nobody protected."
    )
    blocks: list[Block] = [intro]
    for place, one in enumerate(found):
        blocks += [_attack(one, place)] if "success" in one else measured(one, f"attack{place}")
    if facts["attacks_missing"]:
        blocks.append(Text(facts["attacks_missing"], quiet=True))
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
        _title(one),
        f"{sentence(one['measures'])} {sentence(one['knows'])}",
        f"The first bar is the attack; the shorter, the better protected. {sure(one)}",
        bars(drawn, key=f"attack{place}", x="share of the words found", top=1.0),
        Table(("", "share", "bounds")[:columns], tuple(row[:columns] for row in rows)),
    )


def _title(one: Figure) -> str:
    name = str(one["name"])
    return name[:1].upper() + name[1:]


def sentence(text: str) -> str:
    """Return text that ends as a sentence does."""
    return text if text.endswith(".") else f"{text}."


def measured(one: Figure, key: str) -> Iterator[Block]:
    """Draw every group of figures of a result that is no plain success, and list its single ones."""
    intro = " ".join(sentence(one[part]) for part in ("measures", "knows") if one.get(part))
    groups = {name: value for name, value in one.items() if name not in _OWN and _is_group(value)}
    baselines = one.get("baselines") or {}
    for number, (name, figures) in enumerate(groups.items()):
        drawn = [Bar(said, value, 0, said=f"{value:.4g}") for said, value in figures.items()]
        if number == 0:
            drawn += [Bar(said, value, 1, said=f"{value:.4g}") for said, value in baselines.items()]
        yield Chart(
            _title(one) if name == "figures" else f"{_title(one)}: {name.replace('_', ' ')}",
            intro,
            f"{one.get('read') or _READ[bool(baselines)]} {sure(one)}",
            bars(drawn, key=f"{key}-{number}", x=name if name != "figures" else one.get("unit", "value")),
            Table(("", "value"), tuple((bar.name, bar.said) for bar in drawn)),
        )
    single = [
        (name.replace("_", " "), value_text(value))
        for name, value in one.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    if not groups:
        yield Listed(_title(one), (f"{intro} {sure(one)}",))
    if single:
        yield pairs(single)


def _is_group(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(one, int | float) and one >= 0 for one in value.values())
    )


def value_text(value: Any) -> str:
    """Return a figure of any kind as text."""
    return f"{value:,.6g}" if isinstance(value, float) else str(value)


def _between(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{100 * bar.low:.2f} to {100 * bar.high:.2f} %"


def sure(one: Figure) -> str:
    """Say how exact a result is."""
    if one["exact"]:
        return "Exact."
    if not one.get("confidence"):
        return "Estimated; no bounds were computed."
    drawn = f" from {one['draws']:,} draws of a word" if one.get("draws") else ""
    return f"Estimated{drawn}; the black line holds the true value with a confidence of {exact(one['confidence'])}."
