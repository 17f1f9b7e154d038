"""The mechanisms, by the name that settings and the command line use. This dictionary is the only registry.

Examples:
    >>> dp.MECHANISMS["custext"](epsilon=2.0) == dp.CusText(epsilon=2.0)
    True
    >>> len(dp.MECHANISMS)
    12
"""

from __future__ import annotations

from dptext_spark.errors import require_choice
from dptext_spark.mechanisms.base import Law, Mechanism, Sampler
from dptext_spark.mechanisms.calibrated_noise import MVC, Mahalanobis, Projection, Vickrey
from dptext_spark.mechanisms.clipped_noise import Gaussian, Laplace, TruncatedLaplace
from dptext_spark.mechanisms.custext import CusText
from dptext_spark.mechanisms.diffractor import Diffractor
from dptext_spark.mechanisms.santext import TEM, SanText
from dptext_spark.mechanisms.truncated_gumbel import TruncatedGumbel

MECHANISMS: dict[str, type[Mechanism]] = {
    "custext": CusText,
    "santext": SanText,
    "tem": TEM,
    "diffractor": Diffractor,
    "mvc": MVC,
    "mahalanobis": Mahalanobis,
    "vickrey": Vickrey,
    "projection": Projection,
    "truncated_gumbel": TruncatedGumbel,
    "laplace": Laplace,
    "gaussian": Gaussian,
    "truncated_laplace": TruncatedLaplace,
}


def mechanism_named(field: str, name: object) -> type[Mechanism]:
    """Return a mechanism by its name. :class:`SettingsError`: there is none; `field` is what the message calls the name."""
    require_choice(field, name, MECHANISMS)
    return MECHANISMS[str(name)]


__all__ = [
    "MECHANISMS",
    "MVC",
    "TEM",
    "CusText",
    "Diffractor",
    "Gaussian",
    "Laplace",
    "Law",
    "Mahalanobis",
    "Mechanism",
    "Projection",
    "Sampler",
    "SanText",
    "TruncatedGumbel",
    "TruncatedLaplace",
    "Vickrey",
    "mechanism_named",
]
