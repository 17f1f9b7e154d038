"""The mechanisms, by the name that settings and the command line use. This dictionary is the only registry."""

from __future__ import annotations

from dptext_spark.mechanisms.base import Law, Mechanism, Sampler
from dptext_spark.mechanisms.custext import CusText
from dptext_spark.mechanisms.diffractor import Diffractor
from dptext_spark.mechanisms.santext import SanText
from dptext_spark.mechanisms.tem import Tem

MECHANISMS: dict[str, type[Mechanism]] = {
    "custext": CusText,
    "santext": SanText,
    "tem": Tem,
    "diffractor": Diffractor,
}

__all__ = ["MECHANISMS", "CusText", "Diffractor", "Law", "Mechanism", "Sampler", "SanText", "Tem"]
