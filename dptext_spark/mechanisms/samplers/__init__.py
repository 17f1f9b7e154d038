"""What mechanisms are made of: alias rows of short laws, laws over the whole lexicon, lists and noise.

A kernel is written once; the mechanisms of the papers differ in a line or two.
"""

from __future__ import annotations

from dptext_spark.mechanisms.samplers.exponential import ExponentialSampler
from dptext_spark.mechanisms.samplers.table import MAX_SLOTS, TableSampler, integer_weights

__all__ = ["MAX_SLOTS", "ExponentialSampler", "TableSampler", "integer_weights"]
