"""Differentially private word replacement for tables of private text, on Spark and Delta Lake.

The names in `__all__` here, in `dptext_spark.spark` and in `dptext_spark.audit` are the public surface:

    import dptext_spark as dp
    from dptext_spark import audit, spark as dps

Names are looked up when they are first used, so that importing the package costs nothing.

Examples:
    >>> import dptext_spark as dp
    >>> lexicon = dp.Lexicon.default()
    >>> model = dp.compile(dp.CusText(epsilon=2.0, k=20), lexicon)
    >>> model.guarantee().epsilon
    2.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dptext_spark._version import __version__

if TYPE_CHECKING:
    from dptext_spark import errors
    from dptext_spark.config.load import load_config
    from dptext_spark.config.model import RunConfig
    from dptext_spark.demo.tickets import tickets
    from dptext_spark.guarantee import Guarantee
    from dptext_spark.importance.budget import Budget
    from dptext_spark.importance.levels import Importance, Level
    from dptext_spark.lexicon.lexicon import Lexicon
    from dptext_spark.mechanisms import (
        MECHANISMS,
        MVC,
        TEM,
        CusText,
        Diffractor,
        Gaussian,
        Laplace,
        Mahalanobis,
        Projection,
        SanText,
        TruncatedGumbel,
        TruncatedLaplace,
        Vickrey,
    )
    from dptext_spark.model.artifact import open_model, save_model
    from dptext_spark.model.certificate import Certificate, certify
    from dptext_spark.model.compile import compile
    from dptext_spark.model.preview import Preview, preview
    from dptext_spark.model.privatizer import Privatizer
    from dptext_spark.model.public_text import read_prior
    from dptext_spark.randomness import RunKey
    from dptext_spark.report.run_plan import Plan, plan
    from dptext_spark.text.engine import Counters
    from dptext_spark.text.policy import Policy

# Each public name and its module; `errors` is a module itself.
_HOMES = {
    "Budget": "dptext_spark.importance.budget",
    "Certificate": "dptext_spark.model.certificate",
    "Counters": "dptext_spark.text.engine",
    "CusText": "dptext_spark.mechanisms",
    "Diffractor": "dptext_spark.mechanisms",
    "Gaussian": "dptext_spark.mechanisms",
    "Guarantee": "dptext_spark.guarantee",
    "Importance": "dptext_spark.importance.levels",
    "Laplace": "dptext_spark.mechanisms",
    "Level": "dptext_spark.importance.levels",
    "Lexicon": "dptext_spark.lexicon.lexicon",
    "MECHANISMS": "dptext_spark.mechanisms",
    "MVC": "dptext_spark.mechanisms",
    "Mahalanobis": "dptext_spark.mechanisms",
    "Plan": "dptext_spark.report.run_plan",
    "Policy": "dptext_spark.text.policy",
    "Preview": "dptext_spark.model.preview",
    "Privatizer": "dptext_spark.model.privatizer",
    "Projection": "dptext_spark.mechanisms",
    "RunConfig": "dptext_spark.config.model",
    "RunKey": "dptext_spark.randomness",
    "SanText": "dptext_spark.mechanisms",
    "TEM": "dptext_spark.mechanisms",
    "TruncatedGumbel": "dptext_spark.mechanisms",
    "TruncatedLaplace": "dptext_spark.mechanisms",
    "Vickrey": "dptext_spark.mechanisms",
    "certify": "dptext_spark.model.certificate",
    "compile": "dptext_spark.model.compile",
    "errors": "dptext_spark",
    "load_config": "dptext_spark.config.load",
    "open_model": "dptext_spark.model.artifact",
    "plan": "dptext_spark.report.run_plan",
    "preview": "dptext_spark.model.preview",
    "read_prior": "dptext_spark.model.public_text",
    "save_model": "dptext_spark.model.artifact",
    "tickets": "dptext_spark.demo.tickets",
}

__all__ = [
    "MECHANISMS",
    "MVC",
    "TEM",
    "Budget",
    "Certificate",
    "Counters",
    "CusText",
    "Diffractor",
    "Gaussian",
    "Guarantee",
    "Importance",
    "Laplace",
    "Level",
    "Lexicon",
    "Mahalanobis",
    "Plan",
    "Policy",
    "Preview",
    "Privatizer",
    "Projection",
    "RunConfig",
    "RunKey",
    "SanText",
    "TruncatedGumbel",
    "TruncatedLaplace",
    "Vickrey",
    "__version__",
    "certify",
    "compile",
    "errors",
    "load_config",
    "open_model",
    "plan",
    "preview",
    "read_prior",
    "save_model",
    "tickets",
]


_ARCHIVE = getattr(getattr(__spec__, "loader", None), "archive", None)  # of a zip, as --py-files ships one
if _ARCHIVE is not None:
    import_module("dptext_spark.runtime.paths").import_unpacked(_ARCHIVE)


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dptext_spark' has no attribute {name!r}")
    if _HOMES[name] == __name__:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
