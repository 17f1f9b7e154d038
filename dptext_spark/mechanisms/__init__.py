"""The mechanisms, by the name that settings and the command line use. This dictionary is the only registry."""

from __future__ import annotations

from dptext_spark.mechanisms.base import Law, Mechanism, Sampler
from dptext_spark.mechanisms.custext import CusText
from dptext_spark.mechanisms.truncated_gumbel import TruncatedGumbel

MECHANISMS: dict[str, type[Mechanism]] = {"custext": CusText, "truncated_gumbel": TruncatedGumbel}

__all__ = ["MECHANISMS", "CusText", "Law", "Mechanism", "Sampler", "TruncatedGumbel"]
