"""Twelve plans whose statements are kept as text; `python -m tests.frozen.statements` writes them anew, to be read as text.

Nine draw from a small lexicon that is read from a file, three are the styles over the packaged words. The statement is that of
`dptext run --dry-run`: it needs neither Spark nor the table.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

from dptext_spark.config.load import parse_config
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.report.run_plan import plan
from tests.core.names import beginning

FOLDER = Path(__file__).resolve().parent / "statements"
WORDS = 400
DAY = re.compile(r"\b20\d\d-\d\d-\d\d\b")
# How each differs from CusText at token level over the small lexicon.
SCENARIOS: dict[str, dict[str, Any]] = {
    "token": {},
    "record": {"consistency": "record", "record_key": "customer", "columns": ["subject", "body"]},
    "dataset": {"consistency": "dataset", "columns": ["notes[].text", "meta.remark"]},
    "no_bound": {"mechanism": {"name": "custext", "mapping": "aggressive"}},
    "metric": {"mechanism": {"name": "mahalanobis", "epsilon": 12.0}, "input": {"where": {"country": "DE"}}},
    "budget": {"budget": {"record": 50.0, "delta": 1e-5}},
    "importance": {"importance": {"levels": [{"share": 20}, {"share": 30, "epsilon": 4.0}, {"epsilon": 8.0}]}},
    "lists": {
        "policy": {"mask": [{"column": "customer", "kind": "person", "replace": "pseudonym"}], "oov": "keep"},
        "output": {"other_columns": ["city"]},
    },
    "stream": {"mode": "incremental", "mechanism": {"name": "custext", "epsilon": 2.0, "remap": "bayes"}},
    "balanced": {"style": "balanced"},
    "strict": {"style": "strict"},
    "papers": {"style": "papers"},
}  # fmt: skip


def _settings(name: str, folder: Path) -> dict[str, Any]:
    """Merge a scenario with what all of them share, section by section."""
    settings: dict[str, Any] = {
        "input": {"path": "/data/tickets"}, "columns": ["body"], "row_key": "id", "output": {"path": "/data/sanitized"},
        "key": {"file": str(folder / "key")},
    }  # fmt: skip
    scenario = SCENARIOS[name]
    if "style" not in scenario:
        settings["lexicon"] = {"source": str(folder / "vectors.txt")}
    for section, value in scenario.items():
        shared = settings.get(section)
        settings[section] = {**shared, **value} if isinstance(shared, dict) else value
    return settings


def write_inputs(folder: Path) -> None:
    """Write the small lexicon and a key into a folder."""
    lexicon = beginning(Lexicon.default(), WORDS)
    words, vectors = lexicon.vocabulary.strings().to_pylist(), lexicon.vectors.round(4).tolist()
    lines = (f"{word} {' '.join(map(str, one))}" for word, one in zip(words, vectors, strict=True))
    (folder / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "key").write_bytes(sha256(b"frozen").digest())
    (folder / "key").chmod(0o600)


def statement(name: str, folder: Path) -> str:
    """Plan a scenario and return its statement, without the folder of the inputs."""
    planned = plan(parse_config(_settings(name, folder)))
    assert planned.facts.disclosure is not None
    return DAY.sub("DAY", planned.facts.disclosure.markdown().replace(str(folder), "FOLDER"))


def main() -> None:
    """Write the kept statements anew."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.environ["DPTEXT_CACHE"] = str(folder / "cache")
        write_inputs(folder)
        FOLDER.mkdir(exist_ok=True)
        for name in SCENARIOS:
            (FOLDER / f"{name}.md").write_text(statement(name, folder), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
