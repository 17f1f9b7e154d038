"""Models of the 300 commonest words with one feature each, what they draw, and settings that make one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.importance.budget import Budget
from dptext_spark.importance.levels import Importance
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.fluent_toys import with_pairs
from tests.core.names import beginning

KEY = RunKey.insecure(5)


def chosen_by(consistency: str, provider: Any = "random", **more: Any) -> Importance:
    strategy: Any = "conservative" if consistency == "record" else "aggressive"
    return Importance(percent=50, provider=provider, strategy=strategy, **more)


def compiled(policy: Policy, consistency: Any = "token", which: str = "plain", **more: Any) -> Privatizer:
    """Compile a small model with a feature: remap, fluent, importance, budget, or that of `more`; plain has none."""
    lexicon = beginning(Lexicon.default(), 300)
    remap: Any = "bayes" if which == "remap" else "none"
    if which == "fluent":
        lexicon = with_pairs(lexicon)
    if which == "importance":
        more["importance"] = chosen_by(consistency)
    if which == "budget":
        more["budget"] = Budget(record=2.0, delta=0.01)
    return compile(
        CusText(epsilon=2.0, k=5, fluent=which == "fluent", remap=remap), lexicon, policy, consistency, **more
    )


def drawn(made: Privatizer, texts: list[Any], **more: Any) -> list[Any]:
    """Draw a batch; texts are strings with their places for identities where nothing else is said."""
    given = {"column": "c", "row_ids": pa.array(range(len(texts)), pa.int64()), "key": KEY, "run_id": "r"}
    out, _ = made.privatize(pa.array(texts, more.pop("kind", pa.string())), **given | more)
    return list(out.to_pylist())


def settings_of(folder: Path, policy: dict[str, Any], **more: Any) -> RunConfig:
    """Return settings of a run that prepares such a model."""
    if not (folder / "lexicon").exists():
        beginning(Lexicon.default(), 300).save(folder / "lexicon")
    least = {
        "input": {"path": str(folder / "in")},
        "columns": ["body"],
        "output": {"path": str(folder / "out")},
    }
    made = {"lexicon": {"source": str(folder / "lexicon")}, "mechanism": {"name": "custext", "k": 5}}
    return parse_config({**least, **made, "policy": policy, **more})
