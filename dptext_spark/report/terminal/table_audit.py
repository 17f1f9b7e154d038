"""What a person reads of an audit of a written table: before it, its plan; after it, its figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from dptext_spark.audit.attacks.inference import MOST
from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.results import Metric
from dptext_spark.audit.table_audit import TableAudit
from dptext_spark.config.requirements import ALONE, greatest, meaning_of, split_subject
from dptext_spark.report.terminal.console import Screen
from dptext_spark.rounding import percent_down, percent_up

_SCORE = re.compile(r"-?\d to 1(00)?\b|^how well")  # in the meaning of a figure that is no share
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

WITHHELD = "figures of names: they are shown with --internal, and stand among the metrics"
ANSWERED = (
    "each answer is exact, so that whoever asks again with other limits finds the figure; the questions stand among the metrics, "
    "by `asked`"
)
UNCOUNTED = (
    "each answer is exact, so that whoever asks again with other limits finds the figure; the table has no account, and nothing "
    "counts the questions"
)
RELEASED = "whether {limits} holds is told, and nothing else of the figure; whoever asks with several limits finds it out"


def required(standings: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield requirements by how they stand, a row for each standing; broken ones first."""
    grouped: dict[str, list[str]] = {"BROKEN": []}
    for requirement, standing in standings:
        grouped.setdefault(standing, []).append(requirement)
    yield from (
        ("required", f"{standing}: {'; '.join(names)}") for standing, names in grouped.items() if names
    )


def audit_plan(plan: AuditPlan) -> Screen:
    """Return a plan."""
    record = f", record key {plan.record_key}" if plan.record_key else ""
    mechanism = plan.model.mechanism.as_dict()
    model = f"{mechanism['name']}, ε = {mechanism['epsilon']:g}, consistency {plan.level}"
    learnt = f"learnt from and tried on about {plan.label_rows:,} rows; NULL is left out"
    named = f"which is asked for up to {MOST:,} words of the sample, twice, each a run over its text"
    rows = [
        ("table", plan.table),
        ("against", plan.source),
        ("compared", f"{', '.join(plan.columns)}; rows joined by {plan.row_key or 'file and place'}{record}"),
        ("made with", model if plan.has_settings else "not known"),
        ("sampled", f"about {plan.sample:,} rows, for consistency, similarity and attacks"),
        *((option, f"{column}, {learnt}") for option, column in plan.values.items()),
        ("shown", "the words of names that stayed most: PRIVATE TEXT" if plan.internal else ""),
        ("encoder", f"{plan.encoder}, which reads every text of the sample" if plan.encoder else ""),
        ("masked model", f"{plan.masked_model}, {named}" if plan.masked_model else ""),
        ("figures", ", ".join(plan.figures)),
        (
            "required",
            "; ".join([*map(str, plan.limits), *(f"{limit} (settings)" for limit in plan.required)]),
        ),
        *(("left out", reason) for reason in plan.left_out),
    ]
    return Screen("DRY RUN: nothing was read.", rows, places=[("metrics", f"{plan.metrics} (restricted)")])


def table_audit(found: TableAudit) -> Screen:
    """Return the figures of an audit: those that a requirement names first, then shares and scores, then counts."""
    standings = [(limit, "holds" if holds else "BROKEN") for limit, holds in found.requirements]
    standings += [(f"{each.requirement} (settings)", each.loud) for each in found.verdict.judged]
    named = {requirement.split()[0] for requirement, _ in standings}
    columns = {figure.column for figure in found.figures} - {None}
    figures = [figure for figure in found.shown if figure.column is None or len(columns) > 1]
    beside = usefulness_beside_risk(found.figures)
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
    stayed = found.stayed and ", ".join(f"{stayed.word} {stayed.times:,}" for stayed in found.stayed)
    asked = RELEASED.format(limits="; ".join(found.released)) if found.released else ""
    return Screen(
        f"audit {found.audit_id}, {found.seconds:.1f} s: {found.table} ({found.version}) against {found.source}",
        [
            *required(standings),
            ("answered", (ANSWERED if found.has_account else UNCOUNTED) if found.answers else ""),
            ("released", asked),
            *(("left out", reason) for reason in found.left_out),
            ("withheld", WITHHELD if found.withheld else ""),
            (
                "PRIVATE TEXT",
                "" if found.stayed is None else f"words of names that stayed most: {stayed or 'none'}",
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
        places=[("metrics", found.metrics)],
        restricted=True,
    )


def usefulness_beside_risk(figures: Sequence[Metric]) -> list[tuple[str, ...]]:
    """Return a table of what the text is still good for and what it gives away; no row where no label was learnt."""
    texts = {figure.name: figure_text(figure) for figure in figures if figure.column is None}
    useful, risks = ([(name, texts[name]) for name in names if name in texts] for names in (USEFUL, RISKS))
    if not useful:
        return []
    pairs = zip_longest(useful, risks, fillvalue=())
    return [
        ("usefulness", "value (95 %)", "risk", "value (95 %)"),
        *((*(useful_figure or ("", "")), *risk) for useful_figure, risk in pairs),
        ("figure", "value", "what it is"),
    ]


def figure_text(figure: Metric) -> str:
    """Write a figure's value, with its interval: a count, a score or a share."""
    (name, _), value = split_subject(figure.name), figure.value
    if value is None:
        return "none"
    lower, upper = figure.lower, figure.upper
    if _SCORE.search(ALONE.get(name, meaning_of(name))):
        return f"{value:.3f}" if lower is None else f"{value:.3f} ({lower:.3f} to {upper:.3f})"
    if greatest(name) is None and not name.endswith("_share"):
        return f"{value:,.0f}"
    # No risk is printed as less than it is, and nothing good as more.
    shown = percent_down(value) if name.startswith(_GOOD) else percent_up(value)
    return shown if lower is None or upper is None else f"{shown} ({100 * lower:.3g} to {100 * upper:.3g})"
