"""What a person reads of an audit of a written table: before it, its plan; after it, its figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dptext_spark.audit.attacks.masked_inference import MOST
from dptext_spark.audit.table.metrics import ATTRIBUTE, LABEL, MASKED
from dptext_spark.report.terminal.console import WIDTH, hanging
from dptext_spark.rounding import percent_down, percent_up

_SCORES = ("cosine", "rouge_", "bleu", "embedding_", "bert_", "membership_")
_COUNTS = ("_rows", "_missing", "_words")
_SHARES = {name for name in (*LABEL, *ATTRIBUTE, *MASKED) if not name.endswith(_COUNTS)}


def audit_plan_text(plan: Mapping[str, Any], columns: int = WIDTH) -> str:
    """Write a plan; see :meth:`dptext_spark.audit.table.plan.AuditPlan.as_dict`."""
    key = plan["row_key"]
    record = f", record key {plan['record_key']}" if plan["record_key"] else ""
    mechanism = plan["mechanism"]
    model = (
        f"{mechanism['name']}, ε = {mechanism['epsilon']:g}, consistency {plan['consistency']}"
        if mechanism
        else "not known"
    )
    rows = [
        ("table", plan["table"]),
        ("against", plan["source"]),
        ("compared", f"{', '.join(plan['columns'])}; rows joined by {key}{record}"),
        ("made with", model),
        ("sampled", f"about {plan['sample']:,} rows, for consistency, similarity and attacks"),
        *(
            (
                name,
                f"{plan[name]}, learnt from and tried on about {plan['label_rows']:,} rows; NULL is left out",
            )
            for name in ("label", "attribute")
            if plan[name]
        ),
        *(
            (said, f"{plan[name]}, {cost}")
            for name, said, cost in (
                ("encoder", "encoder", "which reads every text of the sample"),
                (
                    "masked_model",
                    "masked model",
                    f"which is asked for up to {MOST:,} words of the sample, twice, each a run over its text",
                ),
            )
            if plan[name]
        ),
        ("figures", ", ".join(plan["figures"])),
        *(("required", requirement) for requirement in plan["requirements"]),
        *(("left out", reason) for reason in plan["left_out"]),
        ("metrics to", f"{plan['metrics']} (restricted)"),
    ]
    lines = [hanging(f"{name:<14}", text, columns) for name, text in rows]
    return "\n".join([*lines, "Nothing was read."])


def table_audit_text(found: Mapping[str, Any], columns: int = WIDTH) -> str:
    """Write the figures of an audit; see :meth:`dptext_spark.spark.auditing.audit.TableAudit.as_dict`."""
    lines = [
        hanging("", f"{found['table']} ({found['version']}) against {found['source']}", columns),
        hanging("", f"audit {found['audit_id']}, {found['seconds']:.1f} s", columns),
    ]
    several = len({figure["column"] for figure in found["figures"]} - {None}) > 1
    column = None
    for figure in found["figures"]:
        if figure["column"] is not None and not several:
            continue
        if figure["column"] != column:
            column = figure["column"]
            lines.append(f"column {column}")
        head = f"  {figure['name']:<24} {figure_text(figure):>24}"
        lines.append(hanging(f"{head}  ", figure["meaning"], columns) if column is None else head)
    lines += [
        hanging("  required  ", f"{one['requirement']}: {'holds' if one['holds'] else 'BROKEN'}", columns)
        for one in found["requirements"]
    ]
    lines += [hanging("  left out  ", reason, columns) for reason in found["left_out"]]
    lines.append(f"metrics in {found['metrics']}")
    lines.append("These figures depend on the private text: not for sharing.")
    return "\n".join(lines)


def figure_text(figure: Mapping[str, Any]) -> str:
    """Write a figure's value, with its interval; see :meth:`dptext_spark.audit.table.metrics.Metric.as_dict`."""
    name, value = figure["name"], figure["value"]
    if value is None:
        return "none"
    if name.startswith(_SCORES):
        between = "" if figure["lower"] is None else f" ({figure['lower']:.3f} to {figure['upper']:.3f})"
        return f"{value:.3f}{between}"
    # A share of all words is a share: original_share_all.
    if not name.removesuffix("_all").endswith(("share", "success")) and name not in _SHARES:
        return f"{value:,.0f}"
    # No risk is printed as less than it is, and nothing good as more.
    said = percent_down(value) if name.startswith("accuracy") else percent_up(value)
    if figure["lower"] is None:
        return said
    return f"{said} ({100 * figure['lower']:.3g} to {100 * figure['upper']:.3g})"
