"""The sections of a report that come from the account of the run: guarantee, disclosure, counters, settings, examples.

How many identifiers of each type were replaced depends on the private text, and is restricted.

The summary of a report: a sentence, and the figures that fit on one screen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from dptext_spark.disclosure.facts import Figures
from dptext_spark.disclosure.importance import in_clear, levels_of
from dptext_spark.guarantee import Guarantee, counted
from dptext_spark.model.certificate import LossFigure
from dptext_spark.report import names_section
from dptext_spark.report.blocks import Bar, Block, Chart, Points, Section, Table, Text, Tile, bars, pairs
from dptext_spark.report.facts import ReportFacts
from dptext_spark.rounding import digits_up, exact, percent_down, percent_up, rounded_down, rounded_up
from dptext_spark.runtime.validation import Json

_BETWEEN = {
    "epsilon_dp": "between any two words",
    "epsilon_dp_within_group": "between words of one output set",
    "approx_dp": "between any two words",
}
_ENDED = {
    "succeeded": "The run began at {began} and succeeded.",
    "recovered": "The run began at {began} and succeeded. Its account was made afterwards.",
    "mismatch": (
        "The run began at {began} and committed, but its counts or its consistency do not agree. DO NOT SHARE ITS OUTPUT."
    ),
    "failed": "The run began at {began} and failed before its commit.",
    "started": "The run began at {began} and has not finished.",
}


def lead(facts: ReportFacts) -> str:
    """Write the paragraph at the top: what ran, on which table, with which outcome."""
    run, settings = facts.run, facts.run.settings
    columns = ", ".join(settings.columns)
    words = "the words that importance chose" if in_clear(settings.selection) else "the words"
    ended = _ENDED.get(run.status, "The run began at {began}.").format(began=run.began)
    rows = "" if run.rows is None else f" It has {run.rows:,} rows."
    return f"{settings.mechanism} replaced {words} of {columns} in {run.input}, and the run wrote {facts.target}. {ended}{rows}"


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
        "Guarantee of one word", f"ε = {exact(guarantee.epsilon)}{delta}", f"{between}; {guarantee.status}"
    )
    yield _composed(facts)
    yield from _spent(facts)
    certificate = facts.certificate
    if certificate is None:
        yield Tile("Certificate", "none", "the model could not be examined")
        return
    loss = certificate.loss
    basis = f"{loss.pairs:,} of {loss.total:,} pairs of words" if loss else "by the argument in the guarantee"
    if certificate.verdict == "not refuted":
        among = f", {loss.among} only" if loss is not None and loss.among else ""
        basis += f"{among}; a search cannot confirm"
    yield Tile("Certificate", certificate.verdict, basis)


def _spent(facts: ReportFacts) -> Iterator[Tile]:
    """Show what all releases of the input have spent on a word of its worst column; accounts of old have no such figure."""
    if facts.run.spent is None:
        return
    columns = facts.run.spent.columns
    worst = max(column.total for column in columns)
    alone = all(
        len(column.figures) == 1 or all(figure.metric is None for figure in column.figures)
        for column in columns
    )
    releases = max(sum(figure.times for figure in column.figures) for column in columns)
    note = f"by all releases of the input in its ledger (spends: {releases:,})"
    figure = f"ε = {exact(worst)}"
    if math.isinf(worst):
        figure, note = "no ε", f"{note}; a guarantee was refuted or a key was not secret"
    elif not alone:
        figure, note = "several kinds", f"{note}; bounds by distances do not add up, see the disclosure"
    yield Tile("Spent on one word so far", figure, note)


def _composed(facts: ReportFacts) -> Tile:
    settings, metrics = facts.run.settings, facts.metrics or {}
    level, budget = settings.consistency, settings.budget
    if budget is not None:
        note = f"at most, up to δ = {exact(budget.delta)}, for any number of drawn words"
        return Tile("ε of a record", exact(budget.record), note)
    most = metrics.get("record_epsilon_max")
    longest, delta = (metrics.get(f"record_bound_{name}") for name in ("max", "delta"))
    if longest is not None and delta is not None:
        note = f"for the record with the most drawn words, up to δ = {exact(delta)}; the disclosure has sums"
        return Tile("ε of a record", exact(longest), note)
    if most is not None:
        return Tile(
            "ε of a record", rounded_up(most), "for the record that spends most, as a sum of its words"
        )
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
    attacks = facts.word_attacks
    if attacks:
        strongest = attacks[0]
        most = "of words; a better attack may find more" if strongest.open else "of words at most"
        worst_words = max(attack.worst_at_most for attack in attacks)
        by = "" if strongest.worst_at_most == worst_words else "another attack finds "
        among = f"; {by}{percent_up(worst_words)} of the worst 1 % of words" if worst_words else ""
        shown = "Strongest attack shown finds" if strongest.restricted else "Attack by public text finds"
        by_law = "" if strongest.restricted else "; by the law and public counts, not on this table"
        yield Tile(shown, percent_up(strongest.at_most), f"{most}{among}{by_law}")
    stays = facts.deniability.figure("N_w")
    if stays is not None:
        most, side = ("", "values") if stays.exact else (" at most", "upper")
        median, worst = (stays.statistic(side, name)[0] for name in ("p50", "max"))
        which = "worst" if stays.is_whole else f"worst of {len(stays.words):,}"
        remapped = facts.run.settings.remap != "none"
        raised = "; the remap may raise it, though nobody learns more" if remapped else ""
        yield Tile(
            "A word stays as it is", percent_up(median),
            f"of the draws{most}, for the median word; {percent_up(worst)} for the {which}{raised}",
        )  # fmt: skip


def parts_in_clear(facts: ReportFacts) -> list[str]:
    """Return the parts of the input that the output shows, each in a word or two."""
    settings, policy = facts.run.settings, facts.run.settings.policy
    return [
        name
        for name, is_in_clear in (
            ("stop words", policy.stop_words == "keep"),
            ("UNKNOWN WORDS", policy.oov == "keep"),
            ("NUMBERS", policy.numbers == "keep"),
            ("WORDS THAT WERE NOT CHOSEN", in_clear(settings.selection)),
            ("case", policy.case == "carry"),
            ("spacing", policy.gaps == "keep"),
            ("number of words", True),
            ("punctuation", True),
            ("which words of a record are equal", settings.consistency == "record"),
            ("which words are equal", settings.consistency == "dataset"),
            ("other columns", settings.releases_other_columns),
        )
        if is_in_clear
    ]


def _clear(facts: ReportFacts) -> Iterator[Tile]:
    parts = parts_in_clear(facts)
    yield Tile("In clear", f"{len(parts)} parts", ", ".join(parts))
    yield from names_section.tile(facts)


_KINDS = {
    "epsilon_dp": "ε-DP",
    "epsilon_dp_within_group": "ε-DP between words of one output set",
    "metric_dp": "metric DP: ε for each unit of distance",
    "approx_dp": "(ε, δ)-DP",
}
_PARTS = (("drawn", "drawn"), ("stop_kept", "kept: stop words"), ("oov", "unknown"), ("numbers", "numbers"))
SHARES = (
    ("original_share_all", "as before, of all", percent_up),
    ("original_share", "as before, of drawn", percent_up),
    ("changed_share", "changed", percent_down),
)
_NOT_CHOSEN = ("not_chosen", "not chosen, in clear")
_UNFINISHED = "There is no statement, because the run did not finish its account."
PREFIX = "identifiers_"
SAID = "Identifiers that were replaced whole"


def guarantee(facts: ReportFacts) -> Section:
    """Write the promise about a word, and the certificate's result."""
    promised, certificate = facts.run.promised, facts.certificate
    rows = [
        ("kind", _KINDS.get(promised.kind, promised.kind)),
        ("ε", exact(promised.epsilon)),
        ("δ", exact(promised.delta)),
        ("distance", promised.metric or "none"),
        ("unit", promised.unit),
        ("status", promised.status),
    ]
    blocks: list[Block] = [Text(promised.sentence), pairs(rows), Points("Certificate", ())]
    if certificate is None:
        missing = Text(f"There is no certificate: {facts.model_missing}", quiet=True)
        return Section("guarantee", "Guarantee and certificate", (*blocks[:2], missing))
    blocks[2] = Points("Certificate", (certificate.sentence,))
    if facts.worst_pair:
        blocks.append(Text(f"The pair of words with the largest loss: {' and '.join(facts.worst_pair)}."))
    if certificate.loss is not None and promised.kind != "approx_dp":
        blocks += _worst_case(promised, certificate.loss)
    return Section("guarantee", "Guarantee and certificate", tuple(blocks))


def _worst_case(promised: Guarantee, loss: LossFigure) -> Iterator[Chart]:
    """Draw the loss that is promised beside the one that was found: a bound, or what draws have shown at least."""
    known = math.isfinite(loss.value)
    worst = loss.value if known else loss.attained
    if not worst or math.isinf(worst):
        return
    per = " for each unit of distance" if promised.kind == "metric_dp" else ""
    if known:
        measured = Bar("found: the worst pair", worst, 0, said=digits_up(worst, 4))
        shows = "The loss that the guarantee allows, and the largest loss of the sampled law."
        read = "The lower bar must not be longer than the upper one. Their difference is the unused part of the promise."
    else:
        measured = Bar("found: at least", worst, 0, said=rounded_down(worst, 4))
        shows = "The loss that the guarantee allows, and the largest loss that a search found: a lower bound."
        read = (
            "A lower bar that is longer than the upper one refutes the promise. A shorter one confirms nothing: other pairs "
            "may lose more, and so may losses that a search cannot see."
        )
    drawn = [Bar("promised: at most", promised.epsilon, 1, said=exact(promised.epsilon)), measured]
    yield Chart(
        "Promise and worst case",
        shows,
        read,
        bars(drawn, key="loss", x=f"loss{per} (natural logarithm)"),
        Table(("", "loss"), tuple((bar.name, bar.said) for bar in drawn)),
    )


def disclosure(facts: ReportFacts) -> Section:
    """Write the statement; the warnings are in the summary too."""
    blocks: tuple[Block, ...] = tuple(Points(*part) for part in facts.statement.sections)
    return Section("disclosure", "What is disclosed", blocks or (Text(_UNFINISHED, quiet=True),))


def quality(facts: ReportFacts) -> Section:
    """Write the counts: shareable ones, and on a restricted page those that depend on the text."""
    run, metrics = facts.run, facts.metrics
    agreed = {
        "succeeded": "The row counts agree with the commit, and the consistency audit found no error.",
        "recovered": "The driver died between the commit and the account. With the run's key the rows were counted again, and "
        "agree with the commit. Without the key they could not be compared.",
        "mismatch": "THE COUNTS OR THE CONSISTENCY AUDIT DO NOT AGREE. Do not share this version.",
    }.get(run.status, "The run has no counts, because it did not finish its account.")
    rows = [
        ("rows written", "not known" if run.rows is None else f"{run.rows:,}"),
        ("seconds", "not known" if run.seconds is None else f"{run.seconds:,.1f}"),
        ("released before", "yes, by an unfinished run" if run.second_release else "no"),
    ]
    blocks: list[Block] = [Text(agreed), pairs(rows)]
    if metrics is None:
        blocks.append(
            Text(
                "The numbers of drawn, kept, unknown and changed words depend on the private text. The restricted metrics and "
                "the restricted page have them.",
                quiet=True,
            )
        )
    else:
        blocks += _counted(metrics, facts.metrics_by_column)
    return Section("quality", "Data quality", tuple(blocks), restricted=metrics is not None)


def parts_of(counts: Figures) -> tuple[tuple[str, str], ...]:
    """Return the kinds of words that a run counts: (figure, in words)."""
    return (*_PARTS, *([_NOT_CHOSEN] if counts.get(_NOT_CHOSEN[0]) else []))


def _counted(whole: Figures, columns: Mapping[str, Figures]) -> Iterator[Block]:
    words = whole.get("words")
    yield from identifiers_by_type(whole)
    if not words:
        yield Text(
            "The metrics of this run hold no counts: it was recovered without its key, or its text is empty.",
            quiet=True,
        )
        return
    parts = parts_of(whole)
    shares = [Bar(label, (whole.get(name) or 0.0) / words, 0) for name, label in parts]
    counts = [f"{whole.get(name) or 0.0:,.0f}" for name, _ in parts]
    yield Chart(
        "Treatment of the words",
        f"The {words:,.0f} words of all text columns, by their treatment.",
        "Only drawn words have the guarantee. Many unknown words mean that the lexicon does not fit the text.",
        bars(shares, key="parts", x="share of all words", top=1.0),
        Table(
            ("", "words", "share"),
            tuple((bar.name, n, f"{100 * bar.value:.2f} %") for bar, n in zip(shares, counts, strict=True)),
        ),
    )
    unchanged = [
        Bar(name, share, 0, said=percent_up(share))
        for name, figures in [*columns.items(), ("all", whole)]
        if (share := figures.get("original_share_all")) is not None
    ]
    if unchanged:
        yield Chart(
            "Words as they were",
            "The share of all words that are the same in output and input, kept stop words included.",
            "A longer bar means that more of the text is unchanged. A word that was drawn as itself counts, too.",
            bars(unchanged, key="same", x="share of all words", top=1.0),
            Table(("column", *(title for _, title, _ in SHARES)), tuple(
                (name, *("none" if (share := figures.get(figure)) is None else written(share) for figure, _, written in SHARES))
                for name, figures in [*columns.items(), ("all", whole)]
            )),
        )  # fmt: skip
    named = sorted((name, value) for name, value in whole.items() if value is not None)
    yield Points("All metrics of the run", ())
    yield Table(("metric", "value"), tuple((name, f"{value:,.6g}") for name, value in named))


def configuration(facts: ReportFacts) -> Section:
    """Write every setting, and the fingerprints of the code and data that were run."""
    run = facts.run
    prints = [
        ("run", run.run_id),
        ("model (artifact)", run.artifact or "none"),
        ("key", f"{run.key_kind}; commitment {run.key_commitment}"),
        ("input", f"{run.input} ({run.input_version})"),
        ("rows identified by", run.identity or "not known"),
        ("output", f"{run.output} (version {run.output_version})"),
        *((name, version) for name, version in sorted(run.made_by.items())),
    ]
    settings = tuple(flat(run.settings.values))
    blocks = (Points("Fingerprints", ()), pairs(prints), Points("Settings", ()), pairs(settings))
    return Section("configuration", "Configuration and fingerprints", blocks)


def flat(values: Mapping[str, Json], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield settings by their whole names, as --set writes them."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list) and len(value) > 20:
            yield f"{prefix}{name}", f"a list of {len(value):,}"
        elif value is not None and value != []:
            yield f"{prefix}{name}", ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def examples(facts: ReportFacts) -> Section | None:
    """Write the pairs of texts that were asked for."""
    if not facts.examples:
        return None
    rows = [
        row
        for example in facts.examples
        for row in ((f"{example.column}, before", example.before), ("after", example.after))
    ]
    notice = Text("PRIVATE TEXT: records of the input, and their replacements.")
    return Section("examples", "Examples", (notice, pairs(rows)), restricted=True)


def by_type(counts: Figures) -> list[tuple[str, int]]:
    """Return (type, number) of the types that occurred, the most frequent first."""
    counted_types = [
        (name.removeprefix(PREFIX), int(value))
        for name, value in counts.items()
        if name.startswith(PREFIX) and value
    ]
    return sorted(counted_types, key=lambda entry: (-entry[1], entry[0]))


def in_words(counts: Figures) -> str | None:
    """Return the number of identifiers, and of each type; None where the metrics do not hold it."""
    if counts.get("identifiers") is None:
        return None
    types = ", ".join(f"{name} {number:,}" for name, number in by_type(counts))
    return f"{counts['identifiers']:,.0f}{f' ({types})' if types else ''}"


def identifiers_by_type(counts: Figures) -> Iterator[Block]:
    """Write how many identifiers of each type there are, where there are any."""
    types = by_type(counts)
    if types:
        by = "rules and providers" if "provided" in dict(types) else "rules"
        yield Points(SAID, (f"Found by {by}, without a guarantee. They do not count as words.",))
        yield Table(("type", "number"), tuple((name, f"{number:,}") for name, number in types))
