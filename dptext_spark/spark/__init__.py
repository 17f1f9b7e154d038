"""Spark: the only part of the package that imports pyspark. `from dptext_spark import spark as dps`.

`privatize(df, ...)` is the lazy DataFrame function, `run(config)` the whole job, `spark_session()` a session with Delta,
`examine()` the checks of `dptext doctor`, `document_frequencies(df, ...)` what importance may be measured by.
Names are looked up on first use, so that a worker that only needs the column function imports no more than that.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptext_spark.spark.diagnostics.doctor import examine
    from dptext_spark.spark.frame import privatize
    from dptext_spark.spark.job.frequencies import document_frequencies
    from dptext_spark.spark.job.job import Report
    from dptext_spark.spark.runner import run
    from dptext_spark.spark.session.session import spark_session

_HOMES = {
    "Report": "job.job",
    "document_frequencies": "job.frequencies",
    "examine": "diagnostics.doctor",
    "privatize": "frame",
    "run": "runner",
    "spark_session": "session.session",
}

__all__ = ["Report", "document_frequencies", "examine", "privatize", "run", "spark_session"]


def __dir__() -> list[str]:
    """Return the public names, which exist on first use."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name from its module; say what to install where pyspark is missing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dptext_spark.spark' has no attribute {name!r}")
    import_module("dptext_spark.spark.session.session").require_pyspark()
    value = getattr(import_module(f"dptext_spark.spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
