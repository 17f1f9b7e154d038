"""Differentially private word replacement for tables of private text, on Spark and Delta Lake.

What stands in `__all__` is the public surface; the job on Spark is `from dptext_spark import spark`. Names
are looked up when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dptext_spark._version import __version__

if TYPE_CHECKING:
    from dptext_spark.errors import (
        CountMismatchError,
        DataError,
        DPTextError,
        RecordingError,
        RunError,
        SettingsError,
    )
    from dptext_spark.guarantee import Guarantee
    from dptext_spark.lexicon.lexicon import Lexicon
    from dptext_spark.mechanisms import MECHANISMS, CusText
    from dptext_spark.model.certificate import Certificate, certify
    from dptext_spark.model.privatizer import Privatizer
    from dptext_spark.randomness.draws import RunKey
    from dptext_spark.text.counters import Counters
    from dptext_spark.text.policy import Policy

_HOMES = {
    "Certificate": "dptext_spark.model.certificate",
    "CountMismatchError": "dptext_spark.errors",
    "Counters": "dptext_spark.text.counters",
    "CusText": "dptext_spark.mechanisms",
    "DPTextError": "dptext_spark.errors",
    "DataError": "dptext_spark.errors",
    "Guarantee": "dptext_spark.guarantee",
    "Lexicon": "dptext_spark.lexicon.lexicon",
    "MECHANISMS": "dptext_spark.mechanisms",
    "Policy": "dptext_spark.text.policy",
    "Privatizer": "dptext_spark.model.privatizer",
    "RecordingError": "dptext_spark.errors",
    "RunError": "dptext_spark.errors",
    "RunKey": "dptext_spark.randomness.draws",
    "SettingsError": "dptext_spark.errors",
    "certify": "dptext_spark.model.certificate",
}

__all__ = [
    "MECHANISMS",
    "Certificate",
    "CountMismatchError",
    "Counters",
    "CusText",
    "DPTextError",
    "DataError",
    "Guarantee",
    "Lexicon",
    "Policy",
    "Privatizer",
    "RecordingError",
    "RunError",
    "RunKey",
    "SettingsError",
    "__version__",
    "certify",
]


_ARCHIVE = getattr(getattr(__spec__, "loader", None), "archive", None)  # of a zip, as --py-files ships one
if _ARCHIVE is not None:
    import_module("dptext_spark.runtime.zip_import").import_unpacked(_ARCHIVE)


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dptext_spark' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
