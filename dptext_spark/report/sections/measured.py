"""Results of audits of any shape: what each says of itself, its groups of figures as charts, its single ones as a table.

The section on the utility of the text is one of them.

The section of a report on attacks, each against its baselines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from dptext_spark.audit.results import UNPROTECTED, AuditResult, Estimate, Figures, WordAttack
from dptext_spark.audit.text_classifier import LEARNT, DownstreamAccuracy
from dptext_spark.report.blocks import Block, Chart, Listed, Section, Table, Text, capital, pairs
from dptext_spark.report.charts import Bar, bars
from dptext_spark.rounding import exact, percent_up

_READ = (
    "Each bar is a figure of its own.",
    "Plain bars were measured, hatched ones are what they are compared with.",
)


def measured(one: AuditResult, key: str) -> Iterator[Block]:
    """Draw every group of figures of a result, and list its single ones.

    Args:
        one: the result.
        key: that the ids of its charts begin with.
    """
    intro = " ".join(sentence(part) for part in (one.measures, one.knows) if part)
    shown, drawable = one.shown(), 0
    for group in shown.groups:
        drawn = [_bar(name, value, 0) for name, value in group.figures.items()]
        if not drawable:
            drawn += [_bar(name, value, 1) for name, value in shown.baselines.items()]
        heading = f"{capital(one.name)}: {group.name.replace('_', ' ')}" if group.name else capital(one.name)
        table = _table(drawn)
        if min(bar.value for bar in drawn) < 0:
            yield Listed(heading, ())
            yield table
            continue
        shows = (group.shows or f"More of the same: {group.name or 'figures'}.") if drawable else intro
        read = shown.read or _READ[bool(shown.baselines) and not drawable]
        certain = sure(one, bounded=any(bar.low is not None for bar in drawn))
        svg = bars(drawn, key=f"{key}-{drawable}", x=group.axis or group.name)
        yield Chart(heading, shows, f"{read} {certain}", svg, table)
        drawable += 1
    if not drawable:
        yield Listed(capital(one.name), (f"{intro} {sure(one)}",))
    single = [(name.replace("_", " "), _figure_text(value)) for name, value in shown.singles.items()]
    if single:
        yield pairs(single)


def _table(drawn: Sequence[Bar]) -> Table:
    """Return bars as a table, with their bounds where one of them has any."""
    columns = 3 if any(_bounds(bar) for bar in drawn) else 2
    rows = tuple((bar.name, bar.said, _bounds(bar))[:columns] for bar in drawn)
    return Table(("", "value", "bounds")[:columns], rows)


def _bar(name: str, figure: Estimate | float, kind: int) -> Bar:
    if isinstance(figure, Estimate):
        return Bar(name, figure.value, kind, figure.lower, figure.upper, f"{figure.value:.4g}")
    return Bar(name, float(figure), kind, said=f"{figure:.4g}")


def _bounds(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{bar.low:.4g} to {bar.high:.4g}"


def _figure_text(figure: Estimate | float) -> str:
    if isinstance(figure, Estimate):
        return f"{figure.value:.4g} ({figure.lower:.4g} to {figure.upper:.4g})"
    return f"{figure:,.6g}" if isinstance(figure, float) else str(figure)


def sentence(text: str) -> str:
    """Return text that ends as a sentence does."""
    return text if text.endswith(".") else f"{text}."


def sure(one: AuditResult, *, bounded: bool = True) -> str:
    """Say how exact a result is, or figures of it that have no bounds."""
    if one.exact:
        return "Exact."
    if one.how:
        return one.how
    if not (one.confidence and bounded):
        return "Estimated; no bounds were computed."
    drawn = f" from {one.draws:,} draws of a word" if one.draws else ""
    return (
        f"Estimated{drawn}; the black line holds the true value with a confidence of {exact(one.confidence)}."
    )


def utility(found: Sequence[AuditResult], missing: str, against: Sequence[AuditResult] = ()) -> Section:
    """Write what the text is still good for, as far as it was measured.

    Args:
        found: by audits.
        missing: what is said where nothing was.
        against: attacks; those on the text that labels were learnt from stand beside what it is good for.
    """
    if not found:
        return Section("utility", "Utility", (Text(missing, quiet=True),))
    blocks = [*_beside(found, against)]
    blocks += [block for place, one in enumerate(found) for block in measured(one, f"use{place}")]
    return Section("utility", "Utility", tuple(blocks), restricted=any(one.restricted for one in found))


def _beside(found: Sequence[AuditResult], against: Sequence[AuditResult]) -> Iterator[Block]:
    """Yield, for each audited table whose labels were learnt, one table of usefulness beside risk."""
    for learnt in found:
        if not isinstance(learnt, DownstreamAccuracy) or learnt.audit is None:
            continue
        useful = {LEARNT[name]: figure for name, figure in learnt.accuracy.items()}
        risks = {
            f"{attack.name}: {name}".removesuffix(": "): figure
            for attack in against
            if attack.audit == learnt.audit
            for name, figure in _of_attack(attack).items()
        }
        sides = (
            [(name, _figure_text(figure)) for name, figure in figures.items()]
            for figures in ({**useful, "always the commonest label": learnt.majority}, risks)
        )
        rows = (left + right for left, right in zip_longest(*sides, fillvalue=("", "")))
        yield Listed("Usefulness beside risk", ())
        yield Table(("labels predicted", "share", "what an adversary finds", "share"), tuple(rows))


def _of_attack(attack: AuditResult) -> Figures:
    """Return the figures of an attack that come first."""
    if not isinstance(attack, WordAttack):
        return next((group.figures for group in attack.shown().groups), {})
    if attack.lower is None or attack.upper is None:
        return {"": attack.success}
    return {"": Estimate(attack.success, attack.lower, attack.upper)}


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
        capital(one.name),
        " ".join(sentence(part) for part in (one.measures, one.knows) if part),
        f"The first bar is the attack; the shorter, the better protected. {sure(one)}",
        bars(drawn, key=key, x="share of the words found", top=1.0),
        Table(("", "share", "bounds")[:columns], tuple(row[:columns] for row in rows)),
    )


def _between(bar: Bar) -> str:
    return "" if bar.low is None or bar.high is None else f"{100 * bar.low:.2f} to {100 * bar.high:.2f} %"
