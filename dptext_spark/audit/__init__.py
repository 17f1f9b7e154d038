"""Audits in memory, without Spark: `from dptext_spark import audit`.

`calibrate(config, require=[...])` searches the largest ε that satisfies requirements, `compare(config, spec, public, private)`
measures mechanisms where attacks succeed equally. Written tables are audited by `dptext_spark.spark.audit`.
Names are looked up on first use.

Examples:
    >>> from dptext_spark import audit
    >>> config = dp.load_config("reviews.yaml")
    >>> audit.calibrate(config, ["N_w max <= 0.5"], low=1.0, high=16.0, steps=4).epsilon
    4.0
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dptext_spark.audit.comparison import Comparison, compare
    from dptext_spark.audit.comparison_input import ComparisonSpec, Records
    from dptext_spark.audit.find_epsilon import FoundEpsilon, calibrate

_HOMES = {
    "Comparison": "audit.comparison",
    "ComparisonSpec": "audit.comparison_input",
    "FoundEpsilon": "audit.find_epsilon",
    "Records": "audit.comparison_input",
    "calibrate": "audit.find_epsilon",
    "compare": "audit.comparison",
}

__all__ = ["Comparison", "ComparisonSpec", "FoundEpsilon", "Records", "calibrate", "compare"]


def __dir__() -> list[str]:
    """Return the public names; each exists on first use."""
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    """Import a public name from its module on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'dptext_spark.audit' has no attribute {name!r}")
    value = getattr(import_module(f"dptext_spark.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
