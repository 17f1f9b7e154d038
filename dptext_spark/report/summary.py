"""The summary of a run for a person at its end, and the summary of a ledger.

The summary of an audit of a written table for a person: before it, its plan; after it, its figures.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from dptext_spark.audit.attacks.inference import MOST
from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.table_audit import TableAudit, options_for
from dptext_spark.config.requirements import Metric, Verdict, greatest, is_score, meaning_of, split_subject
from dptext_spark.disclosure.facts import RunFacts, UnchangedRun
from dptext_spark.disclosure.released import MANY_UNKNOWN
from dptext_spark.disclosure.statement import not_audited
from dptext_spark.guarantee import counted as word_count
from dptext_spark.ledger.balance import Balance, left_of
from dptext_spark.model.record import WEAK
from dptext_spark.model.target_checks import mapped_names
from dptext_spark.report import names_section, run_section
from dptext_spark.report.console import Rows, Screen
from dptext_spark.report.facts import Example
from dptext_spark.report.requirements_section import required, verdict_rows
from dptext_spark.rounding import exact, percent_down, percent_up, rounded_up


def spent(balances: Sequence[Balance]) -> Screen:
    """Return the spending on each input, a row for each column."""
    rows = [row for balance in balances for row in _spent(balance)]
    title = f"What was spent on {len(balances):,} inputs" if len(balances) > 1 else "What was spent"
    return Screen(title if rows else "The ledger is empty.", table=rows)


def _spent(balance: Balance) -> Iterator[tuple[str, str]]:
    unfinished = f"; unfinished runs counted with them: {balance.unfinished:,}" if balance.unfinished else ""
    yield "input", f"{balance.input}, since {balance.since}{unfinished}"
    for column in balance.columns:
        limit = "no limit is kept"
        if balance.limit is not None:
            total = "no ε holds for it" if math.isinf(column.total) else f"spent ε = {exact(column.total)}"
            left = exact(left_of(balance.limit, column.total))
            limit = f"limit ε = {exact(balance.limit)}, {total}, left ε = {left}"
        yield f"  {column.column}", f"{limit}: {column}"
    record = balance.record
    if record is not None and (record.times or record.without):
        yield "  one record", f"all its drawn words: {record}"


LARGE = 5e12  # bytes: the 5 TB that a cost is named for
LEAST = 1e6  # bytes: a run of fewer measures nothing but its own start
LEAST_SECONDS = 30.0  # of a write; a shorter one is mostly the start of its workers
_STATUS = {
    "succeeded": "succeeded",
    "mismatch": "COMMITTED, BUT ITS COUNTS OR ITS CONSISTENCY DO NOT AGREE: do not share this version",
    "recovered": "recovered: it had committed before; only the account was written now, {counted}",
    "unchanged": "unchanged: this run id had committed before, and nothing was done",
}


def summary(
    outcome: RunFacts | UnchangedRun, *, internal: bool = False,
    verdict: Verdict | None = None, pair: Example | str | None = None, settings: str | None = None, overrides: Sequence[str] = (),
) -> Screen:  # fmt: skip
    """Return the summary.

    `internal` also shows what depends on the private text, with `pair`, a row before and after; such a summary is not for
    sharing. `settings` is the file for the command that comes next, and `overrides` what was given beside it.
    """
    if isinstance(outcome, UnchangedRun):
        now, then = outcome.input_version_now, outcome.record.input_version
        moved = f"It read {then}. The input is now at {now}: use a new run id." if now else ""
        return Screen(_heading(outcome), [*verdict_rows(verdict), ("input", moved)], warnings=outcome.since)
    facts = outcome
    problems = [("problem", problem) for problem in facts.problems]
    undecided, command = _next(facts, verdict, settings, overrides)
    shown = [*verdict_rows(verdict), *undecided, *_work(facts), *_shown(facts, pair if internal else None)]
    beside = [*([("consistency", facts.audited)] if facts.audited else []), *_cost(facts)]
    return Screen(
        _heading(facts),
        [*problems, *shown, *_promise(facts, internal)],
        table=[*_words(facts)] if internal else (),
        warnings=[*_warnings(facts)],
        places=_places(facts),
        next=command,
        more=[("consistency and cost", beside)] if beside else (),
        restricted=internal,
    )


def _heading(outcome: RunFacts | UnchangedRun) -> str:
    if isinstance(outcome, UnchangedRun):
        return f"run {outcome.run_id}: {_STATUS['unchanged']}"
    counted = "its counts by a second pass" if outcome.counted else "without its counts"
    return f"run {outcome.run_id}: {_STATUS.get(outcome.status, outcome.status).format(counted=counted)}"


def _shown(facts: RunFacts, pair: Example | str | None) -> Rows:
    """Return the effect on the text: to those inside by the text itself, to others by the law alone."""
    if isinstance(pair, str):
        return [("a row", f"none can be shown: {pair}")]
    if pair is not None:
        return [(side, f"PRIVATE TEXT, {pair.column}: {getattr(pair, side)}") for side in ("before", "after")]
    band = facts.expected_change
    if band is None or isinstance(band, str):
        why = band and f"no law predicts it: {band} (the metrics hold the figure of this table)"
        return [("changed", why or "")]
    low, high = percent_down(min(band)), percent_up(max(band))
    expected = f"{low} to {high} of the drawn words are expected, by the law and public word frequencies"
    return [("changed", f"{expected}; this says nothing about the table (the metrics hold its figure)")]


def words_of(file: str, overrides: Sequence[str]) -> str:
    """Return the settings of a run behind a command: the file, and the values set beside it."""
    return shlex.join([file, *(word for setting in overrides for word in ("--set", setting))])


def _next(
    facts: RunFacts, verdict: Verdict | None, settings: str | None, overrides: Sequence[str]
) -> tuple[Rows, str]:
    """Return why requirements stay undecided, and the command that comes next; nothing where there is none."""
    if settings is None or not facts.output or facts.status not in ("succeeded", "recovered"):
        return (), ""
    command = words_of(settings, overrides)
    waiting = [] if verdict is None else verdict.to_audit
    unaudited = not_audited(facts.config.row_key)
    undecided = [("undecided", f"{', '.join(waiting)}: {unaudited}")] if waiting and unaudited else []
    audit = " ".join(["dptext audit", command, *options_for(each.split()[0] for each in waiting)])
    return undecided, f"{'' if unaudited else f'{audit}; then '}dptext report {command}"


def _warnings(facts: RunFacts) -> Iterator[str]:
    """Warn as the statement does, of names that some readers cannot follow, and of many rows of unknown words.

    The number of those rows is restricted.
    """
    if facts.disclosure is not None:
        yield from facts.disclosure.under("Warnings")
    mapped = mapped_names((*facts.config.columns, *(facts.other_columns or ())))
    if mapped:
        yield mapped
    if facts.rows and ((facts.figures or {}).get("unknown_rows") or 0.0) > MANY_UNKNOWN * facts.rows:
        yield (
            f"MORE THAN {percent_up(MANY_UNKNOWN)} OF THE ROWS ARE MOSTLY UNKNOWN WORDS, such as another language or "
            "codes. Few of their words are drawn. Leave such rows or columns out (input.where, columns), or use a "
            "lexicon of their language (lexicon.source, lexicon.more). `unknown_rows` in the metrics counts them."
        )


def _work(facts: RunFacts) -> Iterator[tuple[str, str]]:
    if facts.rows is not None:
        yield "rows", f"{facts.rows:,}"
    batches = facts.batches
    if batches is not None:
        added = f"{batches.now:,} now" if batches.now else "none now: nothing was added to the source"
        yield (
            "micro-batches",
            f"{added}; {batches.in_all:,} with {batches.rows:,} rows since the stream began",
        )
    if facts.rows is not None:
        looked = names_section.looked(facts.policy, bool(facts.config.lists))
        yield "names", f"found by {looked}; no guarantee" if looked else names_section.NOT_LOOKED_FOR
    if facts.seconds is not None:
        written = f", of which writing {facts.write_seconds:,.1f}" if facts.write_seconds else ""
        measured = facts.tokens_per_second and (facts.text_bytes or 0) >= LEAST
        speed = f"; {facts.tokens_per_second:,.0f} words/s" if measured else ""
        yield "seconds", f"{facts.seconds:,.1f}{written}{speed}"


def _words(facts: RunFacts) -> Iterator[tuple[str, str]]:
    """Count words and names: figures of the private text."""
    counts, lists = facts.figures or {}, facts.config.lists
    search = facts.policy.names.finders if facts.policy.names else ""
    words = counts.get("words")
    if words is None:
        return
    yield "words", f"{words:,.0f}"
    for part, name in run_section.parts_of(counts):
        share = f"  ({100 * (counts.get(part) or 0.0) / words:.1f} %)" if words else ""
        yield f"  {name}", f"{counts.get(part) or 0.0:,.0f}{share}"
    for figure, name, percent in run_section.SHARES:
        share_of = counts.get(figure)
        yield f"  {name}", "" if share_of is None else percent(share_of)
    replaced = run_section.in_words(counts)
    if replaced:
        by = "rules and providers" if counts.get(f"{run_section.PREFIX}provided") else "rules"
        yield "identifiers", f"{replaced}; by {by}, no guarantee"
    if lists:
        yield (
            "names",
            f"{names_section.listed_names(counts, named=bool(lists.kinds))}; by lists, no guarantee",
        )
    if search:
        yield "names", f"{names_section.found_names(counts)}; by {search}, no guarantee"
    for what, what_became in names_section.stayed_words(counts):
        yield f"  {what}", what_became


def _promise(facts: RunFacts, internal: bool) -> Iterator[tuple[str, str]]:
    yield "guarantee", str(facts.guarantee)
    if facts.certificate is not None:
        yield "certificate", facts.certificate.sentence
    epsilon = facts.record_epsilon
    if internal and epsilon is not None and epsilon.mean is not None:
        spread = ", ".join(
            f"{rank} {rounded_up(figure)}"
            for rank, figure in (
                ("mean", epsilon.mean), ("median", epsilon.p50), ("95 %", epsilon.p95), ("most", epsilon.max)
            )
            if figure is not None
        )  # fmt: skip
        yield "ε a record", f"{spread}; {epsilon.basis}"
        least = epsilon.of_words(word_count(facts.consistency))
        if least:
            yield "  least", least
    elif epsilon is not None:
        yield "ε a record", f"{epsilon.basis}{'' if internal else ' (figures: in the metrics)'}"
    if facts.record is not None and not facts.record.why and not facts.is_refuted:
        yield "  by words", f"{facts.record.stated} {WEAK}"
    counted = facts.ledger
    if counted is not None and counted.sentence:
        limit = ""
        if counted.limit is not None:  # accounts of old do not say what is left of it
            left = "" if counted.left is None else f", and ε = {exact(counted.left)} of it is left"
            limit = f" The limit is ε = {exact(counted.limit)}{left}."
        yield "spent so far", f"{counted.sentence}{limit} (ledger: {counted.ledger})"


def _places(facts: RunFacts) -> Rows:
    others = facts.other_columns
    version = "" if facts.output_version is None else f" (version {facts.output_version})"
    return [
        ("input", facts.input or ""),
        ("output", f"{facts.output}{version}" if facts.output else ""),
        ("account", f"{facts.runs} (may be shared: settings, guarantee, disclosure)" if facts.runs else ""),
        ("metrics", f"{facts.metrics} (restricted: depends on the private text)" if facts.metrics else ""),
        (
            "in clear",
            "" if others is None else f"columns {', '.join(others)}" if others else "no other column",
        ),
    ]


def core_hours(text_bytes: float, seconds: float, cores: int, size: float = LARGE) -> float:
    """Return the core-hours for `size` bytes of text at the measured speed."""
    return size / (text_bytes / (seconds * cores)) / 3600.0


def _cost(facts: RunFacts) -> Iterator[tuple[str, str]]:
    text_bytes, cores = facts.text_bytes, facts.cores
    seconds = facts.write_seconds or facts.seconds
    if not text_bytes or not cores or not seconds or facts.status == "recovered":
        return  # the seconds of a write are gone with the driver that wrote
    if text_bytes < LEAST or seconds < LEAST_SECONDS:
        return  # it would say nothing of a large table; docs/scale.md works one out
    speed = text_bytes / (seconds * cores)
    hours = core_hours(text_bytes, seconds, cores)
    yield (
        "5 TB like it",
        f"5e12 bytes / {speed:,.0f} bytes a second and core / 3600 = {hours:,.0f} core-hours",
    )
    if text_bytes < 1e9:
        yield "measured", f"on {text_bytes / 1e6:,.1f} MB and {cores} cores; starting took much of the time"


# Singling out, linkage and inference: a number each.
FIRST = ("singled_out", "linkage_top1", "guess_success", "attribute_gain")
_GOOD = ("accuracy", "distinct")  # shares of which more is better
# With a label these stand beside each other.
USEFUL = (
    "accuracy_private_private", "accuracy_private_plain", "accuracy_plain_private", "accuracy_plain_plain",
    "accuracy_majority", "label_rows",
)  # fmt: skip
RISKS = (
    "linkage_top1", "linkage_tfidf_top1", "linkage_10_words_top1", "linkage_guess", "singled_out", "guess_success",
    "attribute_gain", "membership_auc",
)  # fmt: skip

WITHHELD = "figures of names: --internal shows them, and the metrics hold them"
ANSWERED = (
    "each answer is exact, so repeated questions with other limits reveal the figure; the metrics count "
    "the questions, by `asked`"
)
UNCOUNTED = (
    "each answer is exact, so repeated questions with other limits reveal the figure; this table has no "
    "account that counts them"
)
RELEASED = "the answer shows whether {limits} holds, and nothing else of the figure; several limits together reveal it"


def audit_plan(plan: AuditPlan) -> Screen:
    """Return a plan."""
    record = f", record key {plan.record_key}" if plan.record_key else ""
    mechanism = plan.model.mechanism.as_dict()
    model = f"{mechanism['name']}, ε = {mechanism['epsilon']:g}, consistency {plan.level}"
    learnt = f"for training and testing on about {plan.label_rows:,} rows; NULL is left out"
    named = f"for up to {MOST:,} words of the sample, twice, each a run over its text"
    rows = [
        ("table", plan.table),
        ("against", plan.source),
        ("compared", f"{', '.join(plan.columns)}; rows joined by {plan.row_key or 'file and place'}{record}"),
        ("made with", model if plan.has_settings else "not known"),
        ("sampled", f"about {plan.sample:,} rows, for consistency, similarity and attacks"),
        *((option, f"{column}, {learnt}") for option, column in plan.values.items()),
        ("shown", "the most frequent unchanged words of names: PRIVATE TEXT" if plan.internal else ""),
        ("encoder", f"{plan.encoder}, reads every text of the sample" if plan.encoder else ""),
        ("masked model", f"{plan.masked_model}, {named}" if plan.masked_model else ""),
        ("figures", ", ".join(plan.figures)),
        (
            "required",
            "; ".join([*map(str, plan.limits), *(f"{limit} (settings)" for limit in plan.required)]),
        ),
        *(("left out", reason) for reason in plan.left_out),
    ]
    return Screen("DRY RUN: nothing was read.", rows, places=[("metrics", f"{plan.metrics} (restricted)")])


def table_audit(audit: TableAudit) -> Screen:
    """Return the figures of an audit: those that a requirement names first, then shares and scores, then counts."""
    standings = [(limit, "holds" if holds else "BROKEN") for limit, holds in audit.requirements]
    standings += [(f"{each.requirement} (settings)", each.loud) for each in audit.verdict.judged]
    named = {requirement.split()[0] for requirement, _ in standings}
    columns = {figure.column for figure in audit.figures} - {None}
    figures = [figure for figure in audit.shown if figure.column is None or len(columns) > 1]
    beside = usefulness_beside_risk(audit.figures)
    shown = (*USEFUL, *RISKS) if beside else ()
    figures.sort(
        key=lambda figure: (
            figure.column or "",
            figure.name in shown,
            figure.name not in named,
            figure.name not in FIRST,
            greatest(figure.name) is None,
        )
    )
    stayed = audit.stayed and ", ".join(f"{stayed.word} {stayed.times:,}" for stayed in audit.stayed)
    asked = RELEASED.format(limits="; ".join(audit.released)) if audit.released else ""
    return Screen(
        f"audit {audit.audit_id}, {audit.seconds:.1f} s: {audit.table} ({audit.version}) against {audit.source}",
        [
            *required(standings),
            ("answered", (ANSWERED if audit.has_account else UNCOUNTED) if audit.answers else ""),
            ("released", asked),
            *(("left out", reason) for reason in audit.left_out),
            ("withheld", WITHHELD if audit.withheld else ""),
            (
                "PRIVATE TEXT",
                "" if audit.stayed is None else f"most frequent unchanged words of names: {stayed or 'none'}",
            ),
        ],
        table=[
            *beside,
            *(
                (
                    figure.name,
                    figure_text(figure),
                    f"column {figure.column}" if figure.column else meaning_of(figure.name),
                )
                for figure in figures
            ),
        ],
        places=[("metrics", audit.metrics)],
        restricted=True,
    )


def usefulness_beside_risk(figures: Sequence[Metric]) -> list[tuple[str, ...]]:
    """Return a table of the text's utility and of its risks; no row where no label was learnt."""
    texts = {figure.name: figure_text(figure) for figure in figures if figure.column is None}
    useful, risks = ([(name, texts[name]) for name in names if name in texts] for names in (USEFUL, RISKS))
    if not useful:
        return []
    pairs = zip_longest(useful, risks, fillvalue=())
    return [
        ("usefulness", "value (95 %)", "risk", "value (95 %)"),
        *((*(useful_figure or ("", "")), *risk) for useful_figure, risk in pairs),
        ("figure", "value", "meaning"),
    ]


def figure_text(figure: Metric) -> str:
    """Write a figure's value, with its interval: a count, a score or a share."""
    (name, _), value = split_subject(figure.name), figure.value
    if value is None:
        return "none"
    lower, upper = figure.lower, figure.upper
    if is_score(name):
        return f"{value:.3f}" if lower is None else f"{value:.3f} ({lower:.3f} to {upper:.3f})"
    if greatest(name) is None and not name.endswith("_share"):
        return f"{value:,.0f}"
    # No risk is printed as less than it is, and nothing good as more.
    shown = percent_down(value) if name.startswith(_GOOD) else percent_up(value)
    return shown if lower is None or upper is None else f"{shown} ({100 * lower:.3g} to {100 * upper:.3g})"
