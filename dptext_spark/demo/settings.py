"""One text by each of the files of settings in conf/ that most users choose among."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from dptext_spark.config.load import parse_model_config
from dptext_spark.model.compile import prepare
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.progress import Progress, silent

# Files of conf/, what protects most first. Those of papers are for corpora that are cut at blanks, which tickets are not.
SETTINGS = ("strict", "balanced")


class Released(NamedTuple):
    """A text as one file of settings releases it: the file's name, what it says of the mechanism, and one draw."""

    settings: str
    mechanism: str
    text: str


def side_by_side(text: str, key: RunKey, progress: Progress | None = None) -> list[Released]:
    """Release a text by each of `SETTINGS`, all with the packaged lexicon.

    Args:
        text: public, such as one of a sample: it is returned as each of them releases it.
        key: that the draws follow from.
        progress: progress callback, called with each step.

    Raises:
        DataError: conf/ is not installed with the package.
    """
    return [_released(settings, text, key, progress or silent) for settings in SETTINGS]


def _released(settings: str, text: str, key: RunKey, progress: Progress) -> Released:
    config = parse_model_config({"style": settings})
    privatizer, _ = prepare(config, progress)
    out, _ = privatizer.privatize(pa.array([text]), column="text", row_ids=pa.array([0]), key=key)
    mechanism = config.spec()["mechanism"]
    words = "stop words drawn" if config.policy.stop_words == "draw" else "stop words in clear"
    level = (
        f"one replacement a word of a {config.consistency}"
        if config.consistency != "token"
        else "each word anew"
    )
    return Released(
        settings, f"{mechanism['name']}, ε = {mechanism['epsilon']:g}, {level}, {words}", out[0].as_py()
    )
