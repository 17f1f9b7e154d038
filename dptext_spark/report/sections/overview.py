"""The summary of a report: a sentence, and the figures that fit on one screen."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dptext_spark.audit.results import WordAttack
from dptext_spark.disclosure.importance import in_clear, levels_of
from dptext_spark.guarantee import counted
from dptext_spark.report.blocks import Tile
from dptext_spark.report.facts import ReportFacts
from dptext_spark.report.sections import names
from dptext_spark.rounding import exact, percent_up, rounded_up

_BETWEEN = {
    "epsilon_dp": "between any two words",
    "epsilon_dp_within_group": "between words of one output set",
    "approx_dp": "between any two words",
}
_REMAPPED = "; where the remap raises it, nobody learns more by that"
_ENDED = {
    "succeeded": "succeeded",
    "recovered": "succeeded; its account was made afterwards",
    "mismatch": "committed, but its counts or its consistency do not agree: DO NOT SHARE ITS OUTPUT",
    "failed": "failed before its commit",
    "started": "was begun and has not finished",
}


def lead(facts: ReportFacts) -> str:
    """Return the sentence at the top: what ran, on what, with which outcome."""
    run, settings = facts.run, facts.run.settings
    columns = ", ".join(settings.columns)
    version = "" if run.output_version is None else f", version {run.output_version}"
    rows = "" if run.rows is None else f" {run.rows:,} rows."
    ended = _ENDED.get(run.status, run.status)
    some = (
        "Of each record's words, those that importance chose" if in_clear(settings.selection) else "The words"
    )
    return (
        f"{some} of {columns} in {run.input} were replaced by {settings.mechanism}, and written to "
        f"{run.output}{version}. The run began at {run.began} and {ended}.{rows}"
    )


def tiles(facts: ReportFacts) -> list[Tile]:
    """Return the figures of the summary."""
    return [*_promise(facts), *_found(facts), *_clear(facts)]


def _promise(facts: ReportFacts) -> Iterator[Tile]:
    guarantee = facts.run.promised
    between = _BETWEEN.get(guarantee.kind)
    if between is None:
        between = f"for each unit of distance between two {guarantee.compared}"
    delta = f", δ = {exact(guarantee.delta)}" if guarantee.kind == "approx_dp" else ""
    yield Tile(
        "Guarantee of one word",
        f"ε = {exact(guarantee.epsilon)}{delta}",
        f"{between}; {guarantee.status}",
    )
    yield _composed(facts)
    yield from _spent(facts)
    found = facts.certificate
    if found is None:
        yield Tile("Certificate", "none", "the model could not be examined")
        return
    loss = found.loss
    said = f"{loss.pairs:,} of {loss.total:,} pairs of words" if loss else "by the argument in the guarantee"
    if found.verdict == "not refuted":
        among = f", {loss.among} only" if loss is not None and loss.among else ""
        said += f"{among}; such a search cannot confirm"
    yield Tile("Certificate", found.verdict, said)


def _spent(facts: ReportFacts) -> Iterator[Tile]:
    """Show what all releases of the input have spent on a word of its worst column; accounts of old have no such figure."""
    if facts.run.spent is None:
        return
    columns = facts.run.spent.columns
    worst = max(one.total for one in columns)
    alone = all(
        len(one.figures) == 1 or all(figure.metric is None for figure in one.figures) for one in columns
    )
    releases = max(sum(figure.times for figure in one.figures) for one in columns)
    often = "once" if releases == 1 else f"{releases:,} times"
    said = f"by all releases of the input that the ledger knows; ε was spent {often}"
    if math.isinf(worst):
        yield Tile(
            "Spent on one word so far", "no ε", f"a guarantee was refuted or a key was no secret; {said}"
        )
    elif alone:
        yield Tile("Spent on one word so far", f"ε = {exact(worst)}", said)
    else:
        yield Tile(
            "Spent on one word so far",
            "several kinds",
            f"by distances, which are not to be added, see the disclosure; {said}",
        )


def _composed(facts: ReportFacts) -> Tile:
    settings, metrics = facts.run.settings, facts.metrics or {}
    level, budget = settings.consistency, settings.budget
    if budget is not None:
        said = f"at most, up to δ = {exact(budget.delta)}, whatever its number of drawn words; short ones have less"
        return Tile("ε of a record", exact(budget.record), said)
    mean, high, most = (metrics.get(f"record_epsilon_{name}") for name in ("mean", "p95", "max"))
    if mean is not None and high is not None and most is not None:
        said = (
            f"on average, as a sum; at most {rounded_up(high)} for 95 % of them, {rounded_up(most)} for all"
        )
        middle, longest, delta = (metrics.get(f"record_bound_{name}") for name in ("p50", "max", "delta"))
        if middle is not None and longest is not None and delta is not None:
            said += (
                f"; by the least bound {exact(middle)} for the median number of words and {exact(longest)} for the largest, up "
                f"to δ = {exact(delta)}. How many words attacks find stands beside it"
            )
        return Tile("ε of a record", rounded_up(mean), said)
    if level == "dataset":
        return Tile("ε of a record", "none", "all records share the draws")
    promised, levels = facts.run.promised, levels_of(settings.selection)
    bound = promised.of_record(level, levels)
    if not promised.adds_up:
        return Tile("ε of a record", "ε times distances", f"{bound}; no single figure")
    if levels > 1:
        return Tile("ε of a record", "by level", bound)
    return Tile(
        "ε of a record", f"{exact(promised.epsilon)} a word", f"times the {counted(level)} that it has"
    )


def _found(facts: ReportFacts) -> Iterator[Tile]:
    strongest = max(
        (one for one in facts.attacks if isinstance(one, WordAttack)),
        key=lambda one: one.at_most,
        default=None,
    )
    if strongest is not None:
        most = ", a better one maybe more" if strongest.open else " at most"
        worst_words = max(one.worst_at_most for one in facts.attacks if isinstance(one, WordAttack))
        by = "" if strongest.worst_at_most == worst_words else "another attack finds "
        among = f"; {by}{percent_up(worst_words)} of the worst 1 % of words" if worst_words else ""
        shown = "Strongest attack shown finds" if strongest.restricted else "Attack by public text finds"
        by_law = "" if strongest.restricted else "; by the law and public counts, not of this table"
        yield Tile(shown, percent_up(strongest.at_most), f"of words{most}{among}{by_law}")
    stays = facts.deniability.figure("N_w")
    if stays is not None:
        most, side = ("", "values") if stays.exact else (" at most", "upper")
        median, worst = (stays.statistic(side, name)[0] for name in ("p50", "max"))
        which = "worst" if stays.is_whole else f"worst of {len(stays.words):,}"
        raised = _REMAPPED if facts.run.settings.remap != "none" else ""
        yield Tile(
            "A word stays as it is", percent_up(median),
            f"of the draws{most}, for the median word; {percent_up(worst)} for the {which}{raised}",
        )  # fmt: skip


def parts_in_clear(facts: ReportFacts) -> list[str]:
    """Return what the output shows of the input, each in a word or two."""
    settings, policy = facts.run.settings, facts.run.settings.policy
    return [
        name
        for name, there in (
            ("stop words", policy.stop_words == "keep"),
            ("UNKNOWN WORDS", policy.oov == "keep"),
            ("NUMBERS", policy.numbers == "keep"),
            ("WORDS THAT WERE NOT CHOSEN", in_clear(settings.selection)),
            ("case", policy.case == "carry"),
            ("spacing", policy.gaps == "keep"),
            ("length", True),
            ("punctuation", True),
            ("which words are equal", settings.consistency != "token"),
            ("other columns", settings.releases_other_columns),
        )
        if there
    ]


def _clear(facts: ReportFacts) -> Iterator[Tile]:
    parts = parts_in_clear(facts)
    yield Tile("In clear", f"{len(parts)} things", ", ".join(parts))
    yield from names.tile(facts)
