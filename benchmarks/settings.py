"""The settings of conf/ side by side: strict, balanced and the papers', each run on SST-2 and audited as a user would."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.importance import MODEL, PACKAGE
from benchmarks.measure import Grid, Section
from benchmarks.sentiment import KEY, Task
from benchmarks.sizes import Sizes
from benchmarks.sources import lexicons
from benchmarks.tables import local
from dptext_spark.config.load import load_config
from dptext_spark.encoder.weights import require_encoders
from dptext_spark.errors import DPTextError, SettingsError
from dptext_spark.runtime.paths import folder_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CORES = 2
SETTINGS = ("strict", "balanced", "papers")  # files of conf/
# Figures of `dptext audit` that tell what is found, and what the text is still good for, as docs/guide/settings says it.
FOUND = {
    "original_share_all": "words that are as they were, of all",
    "bayes_success": "drawn words that the best guess finds from the replacement alone",
    "context_success": "drawn words that are guessed from the text around them, too",
}
GOOD_FOR = {
    "cosine": "semantic similarity, by word vectors",
    "embedding_cosine": "semantic similarity, by an encoder",
    "rouge_1": "overlap in words (ROUGE-1)",
    "accuracy_private_private": "a classifier of what is said, learnt and tried on sanitized text",
    "accuracy_plain_private": "learnt on the source, tried on sanitized text",
}


def measure(sizes: Sizes, say: Callable[[str], None]) -> Section:
    """Run and audit each file, with GloVe for the papers' settings where it is here."""
    section = Section("settings", f"The files of conf/ on SST-2, local[{CORES}]")
    found, section.skipped = lexicons(sizes.lexicon_words, tokenizer="whitespace")
    name, lexicon = found[-1]
    task, reasons = Task.sst2(lexicon, None if sizes.lexicon_words is None else min(sizes.rows, 1_600))
    section.skipped += [one for one in reasons if one not in section.skipped]
    encoder: str | None = os.environ.get(MODEL, PACKAGE)
    try:
        require_encoders(encoder, None)
    except DPTextError as error:
        section.skipped.append(f"embedding_cosine: {MODEL} names no encoder ({error})")
        encoder = None
    audits: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory(prefix="dptext-bench-") as work:
        folder = Path(work)
        saved = folder / "lexicon"
        lexicon.save(saved)
        try:
            with local(CORES, folder) as session:
                _write(session, task, folder)
                for settings in SETTINGS:
                    say(f"settings: {settings}")
                    source = str(saved) if settings == "papers" else "default"
                    audits[settings] = _audited(session, settings, source, folder, encoder)
        except SettingsError as error:
            section.skipped.append(f"settings: {error}")
            return section
    section.facts = {
        "text": task.name, "rows": len(task.train) + len(task.test), "lexicon of papers.yaml": name, "encoder": encoder,
        "audits": audits,
    }  # fmt: skip
    section.grids.append(Grid("What an audit finds", ("figure", "no noise", *SETTINGS), tuple(_rows(audits))))
    section.notes += [
        "Figures of `dptext audit --label`, as it names them. Attacks and similarity are of a sample of 2,000 rows; classifiers "
        "(TF-IDF and logistic regression) learn from four rows in five and are tried on the others. Without noise: "
        "accuracy on the text as it is; a guess that is always right.",
        "bayes_success and context_success are shares of the drawn words: stop words among them in strict and papers, not in "
        "balanced, which keeps them in clear. original_share_all has them.",
    ]
    return section


def markdown(rows: Sequence[Sequence[str | float | None]]) -> str:
    """Return the rows of a record's grid as the table of docs/guide/settings."""
    meaning = FOUND | GOOD_FOR
    lines = [
        f"| figure of `dptext audit` | | no noise | {' | '.join(f'`{one}`' for one in SETTINGS)} |",
        f"|---|---|---|{'---|' * len(SETTINGS)}",
    ]
    for name, *values in rows:
        cells = ("" if value is None else f"{value:.2f}" for value in values)
        lines.append(f"| `{name}` | {meaning[str(name)]} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _write(session: SparkSession, task: Task, folder: Path) -> None:
    """Write the sentences as a Delta table: `id`, `sentence`, `label`."""
    texts = pa.concat_arrays([task.train, task.test])
    table = pa.table(
        {
            "id": pa.array(range(len(texts)), pa.int64()),
            "sentence": texts,
            "label": pa.array([*task.train_labels, *task.test_labels]),
        }
    )
    pq.write_table(table, folder / "sentences.parquet")
    session.read.parquet(str(folder / "sentences.parquet")).write.format("delta").save(
        str(folder / "sentences")
    )


def _audited(
    session: SparkSession, settings: str, lexicon: str, folder: Path, encoder: str | None
) -> dict[str, Any]:
    """Run a file of settings on the sentences, audit what it wrote, and return the figures by their names."""
    from dptext_spark.audit.table.plan import AuditPlan
    from dptext_spark.spark.auditing.audit import audit_table
    from dptext_spark.spark.runner import run

    source, target = folder / "sentences", folder / settings
    values = {
        "input.path": source, "input.format": "delta", "columns": "[sentence]", "row_key": "id", "record_key": "null",
        "output.path": target, "output.other_columns": "[id]", "lexicon.source": lexicon,
        "run.id": f"bench-{settings}",  # part of the draws at token level
        "ledger.path": "null",
        "ledger.limit": "null",  # the benchmarks' key is no secret, for which no ε stands
    }  # fmt: skip
    config = load_config(
        folder_of("conf") / f"{settings}.yaml", [f"{name}={value}" for name, value in values.items()]
    )
    done = run(config, session, key=KEY).as_dict()
    plan = AuditPlan.of(str(target), str(source), config=config, label="label", encoder=encoder)
    figures = {one.name: one for one in audit_table(plan, session).figures if one.column is None}
    wanted = (*FOUND, *GOOD_FOR, "accuracy_plain_plain", "accuracy_majority", "oov_share", "aligned_share")
    return {
        "status": done["status"],
        "mechanism": config.as_dict()["mechanism"],
        "figures": {name: figures[name].as_dict() for name in wanted if name in figures},
    }


def _rows(audits: dict[str, dict[str, Any]]) -> list[tuple[str | float | None, ...]]:
    """Return a row for each figure that was found, beside what it is without noise."""
    found = {settings: one["figures"] for settings, one in audits.items()}
    some = found[SETTINGS[0]]
    without = dict.fromkeys((*FOUND, *GOOD_FOR), 1.0) | dict.fromkeys(
        ("accuracy_private_private", "accuracy_plain_private"), some["accuracy_plain_plain"]["value"]
    )
    return [
        (name, without[name], *(found[settings][name]["value"] for settings in SETTINGS))
        for name in (*FOUND, *GOOD_FOR)
        if name in some
    ]
