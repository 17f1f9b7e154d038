"""What a person reads of an audit of a written table: before it, its plan; after it, its figures."""

from __future__ import annotations

from dptext_spark.audit.attacks.masked_inference import MOST
from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.table.findings import TableAudit
from dptext_spark.audit.table.metrics import ATTRIBUTE, LABEL, MASKED
from dptext_spark.audit.table.plan import AuditPlan
from dptext_spark.config.requirements import MEANING
from dptext_spark.report.terminal.console import WIDTH, entries, hanging
from dptext_spark.rounding import percent_down, percent_up

_SCORES = ("cosine", "rouge_", "bleu", "embedding_", "bert_", "membership_")
_COUNTS = ("_rows", "_missing", "_words")
_SHARES = {name for name in (*LABEL, *ATTRIBUTE, *MASKED) if not name.endswith(_COUNTS)}
_ENDINGS = ("share", "success", "_kept", "_kept_whole")
_GOOD = ("accuracy", "distinct")  # shares of which more is better

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


def audit_plan_text(plan: AuditPlan, columns: int = WIDTH) -> str:
    """Write a plan."""
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
        *([("shown", "the words of names that stayed most: PRIVATE TEXT")] if plan.internal else []),
        *([("encoder", f"{plan.encoder}, which reads every text of the sample")] if plan.encoder else []),
        *([("masked model", f"{plan.masked_model}, {named}")] if plan.masked_model else []),
        ("figures", ", ".join(plan.figures)),
        *(("required", str(limit)) for limit in plan.limits),
        *(("required", f"{limit} (settings)") for limit in plan.required),
        *(("left out", reason) for reason in plan.left_out),
        ("metrics to", f"{plan.metrics} (restricted)"),
    ]
    lines = [hanging(f"{name:<14}", text, columns) for name, text in rows]
    return "\n".join([*lines, "Nothing was read."])


def table_audit_text(found: TableAudit, columns: int = WIDTH) -> str:
    """Write the figures of an audit."""
    lines = [
        hanging("", f"{found.table} ({found.version}) against {found.source}", columns),
        hanging("", f"audit {found.audit_id}, {found.seconds:.1f} s", columns),
    ]
    several = len({figure.column for figure in found.figures} - {None}) > 1
    column = None
    for figure in found.shown:
        if figure.column is not None and not several:
            continue
        if figure.column != column:
            column = figure.column
            lines.append(f"column {column}")
        head = f"  {figure.name:<24} {figure_text(figure):>24}"
        lines.append(hanging(f"{head}  ", MEANING[figure.name], columns) if column is None else head)
    notes = [
        *(("required", f"{limit}: {'holds' if holds else 'BROKEN'}") for limit, holds in found.requirements),
        *(("required", f"{each.requirement} (settings): {each.loud}") for each in found.verdict.judged),
        *([("answered", ANSWERED if found.has_account else UNCOUNTED)] if found.answers else []),
        *([("released", RELEASED.format(limits="; ".join(found.released)))] if found.released else []),
        *(("left out", reason) for reason in found.left_out),
        *([("withheld", WITHHELD)] if found.withheld else []),
    ]
    if found.stayed is not None:
        words = ", ".join(f"{stayed.word} {stayed.times:,}" for stayed in found.stayed) or "none"
        notes.append(("PRIVATE TEXT", f"words of names that stayed most: {words}"))
    lines += entries(notes, columns, 0)
    lines.append(f"metrics in {found.metrics}")
    lines.append("These figures depend on the private text: not for sharing.")
    return "\n".join(lines)


def figure_text(figure: Metric) -> str:
    """Write a figure's value, with its interval."""
    name, value = figure.name, figure.value
    if value is None:
        return "none"
    bounded = figure.lower is not None and figure.upper is not None
    if name.startswith(_SCORES):
        return f"{value:.3f} ({figure.lower:.3f} to {figure.upper:.3f})" if bounded else f"{value:.3f}"
    # A share of all words is a share: original_share_all.
    if not name.removesuffix("_all").endswith(_ENDINGS) and name not in _SHARES:
        return f"{value:,.0f}"
    # No risk is printed as less than it is, and nothing good as more.
    good = name.startswith(_GOOD)
    said = percent_down(value) if good else percent_up(value)
    if figure.lower is None or figure.upper is None:
        return said
    return f"{said} ({100 * figure.lower:.3g} to {100 * figure.upper:.3g})"
