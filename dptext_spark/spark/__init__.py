"""Spark: the only part of the package that imports pyspark. `from dptext_spark import spark as dps`.

`privatize(df, ...)` is the lazy DataFrame function and `run(config)` the whole job; `report(run_id, config)` shows a run,
`audit(table, against=...)` compares a written table with its source, `doctor(config)` looks at a cluster before a run,
`document_frequencies(df, ...)` counts texts per word for importance, `preview(df, ...)` shows a few rows before and after,
`compare_rows(before, after)` shows texts before and after, `register(spark, name, model)` makes a function of SQL, and
`spark_session()` is a session with Delta. Names are looked up on first use: a worker that needs only the column function imports
no more.

Examples:
    >>> from dptext_spark import spark as dps
    >>> spark = dps.spark_session()
    >>> df = spark.createDataFrame([(1, "Please send the parcel.")], "id long, body string")
    >>> dps.privatize(df, ["body"], model, row_key="id", key=dp.RunKey.generate()).columns
    ['id', 'body']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptext_spark.audit.table_audit import TableAudit
    from dptext_spark.doctor import CheckResult
    from dptext_spark.report.before_and_after import RowComparison, compare_rows
    from dptext_spark.spark.audit_job import audit
    from dptext_spark.spark.diagnostics import doctor
    from dptext_spark.spark.frame import privatize
    from dptext_spark.spark.job.job import RunResult
    from dptext_spark.spark.job.prepare import document_frequencies
    from dptext_spark.spark.run_report import RunReport, report
    from dptext_spark.spark.runner import run
    from dptext_spark.spark.session import spark_session
    from dptext_spark.spark.sql_function import Registration, register
    from dptext_spark.spark.table_sample import TablePreview, preview

_HOMES = {
    "CheckResult": "doctor",
    "Registration": "spark.sql_function",
    "RowComparison": "report.before_and_after",
    "RunReport": "spark.run_report",
    "RunResult": "spark.job.job",
    "TableAudit": "audit.table_audit",
    "TablePreview": "spark.table_sample",
    "audit": "spark.audit_job",
    "compare_rows": "report.before_and_after",
    "doctor": "spark.diagnostics",
    "document_frequencies": "spark.job.prepare",
    "preview": "spark.table_sample",
    "privatize": "spark.frame",
    "register": "spark.sql_function",
    "report": "spark.run_report",
    "run": "spark.runner",
    "spark_session": "spark.session",
}

__all__ = [
    "CheckResult",
    "Registration",
    "RowComparison",
    "RunReport",
    "RunResult",
    "TableAudit",
    "TablePreview",
    "audit",
    "compare_rows",
    "doctor",
    "document_frequencies",
    "preview",
    "privatize",
    "register",
    "report",
    "run",
    "spark_session",
]


def __dir__() -> list[str]:
    """Return the public names, which exist on first use."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name from its module; without pyspark, the error names the package to install."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dptext_spark.spark' has no attribute {name!r}")
    import_module("dptext_spark.spark.session").require_pyspark()
    value = getattr(import_module(f"dptext_spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
