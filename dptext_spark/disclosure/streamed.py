"""What the disclosure statement says of a stream: a table that is sanitized in parts, as its source grows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def streamed(facts: Mapping[str, Any]) -> Iterator[str]:
    """Write what is true of a stream beside what is true of each of its micro-batches; nothing of a run that is none."""
    config, level = facts["config"], facts["consistency"]
    if config.get("mode") not in ("incremental", "streaming"):
        return
    yield (
        f"The table grows by micro-batches (mode: {config['mode']}). When each was written, and which records came together, can "
        "be read off the table's history and files. No setting hides that; rarer and larger micro-batches tell less."
    )
    if level == "token":
        yield (
            "A draw belongs to its micro-batch: a row key that comes again in a later one is drawn anew, and one that is "
            "repeated after a failure draws the same again."
        )
    else:
        scope = "record" if level == "record" else "dataset"
        yield f"Equal words of a {scope} have equal replacements in all micro-batches, as long as the key and the model stay."
    if config.get("record_key") and level != "dataset":
        yield "A record may have rows in several micro-batches: figures of a micro-batch count only what it held of the record."
    yield {
        "refuse": "Updates and deletes in the source stop the stream: nothing is left out unseen (stream.changes: refuse).",
        "ignore": (
            "UPDATES AND DELETES IN THE SOURCE ARE NOT CARRIED OVER (stream.changes: ignore): what was released of a row stays "
            "in the table after the source changed or deleted it, and rows that such a commit adds (a MERGE) are left out."
        ),
    }[config["stream"]["changes"]]
    yield from _repeated(facts)


def _repeated(facts: Mapping[str, Any]) -> Iterator[str]:
    """Write what happens to a row key that comes again."""
    config = facts["config"]
    others = facts.get("other_columns")
    seen = "in the table or in the same micro-batch"
    if others is not None and config["row_key"] not in others:
        seen = (
            "in the same micro-batch (the table does not hold the row key, so that earlier ones are not seen)"
        )
    yield {
        "refuse": f"A row key that is found again {seen} stops the stream (stream.duplicates: refuse).",
        "drop": (
            f"A row whose key is found again {seen} is left out (stream.duplicates: drop). That a row is missing tells that its "
            "key came again."
        ),
        "accept": (
            "A ROW KEY MAY COME AGAIN (stream.duplicates: accept): each time is one more release of its record, and where the "
            "draws differ their bounds add up. Once with stream.duplicates: drop."
        ),
    }[config["stream"]["duplicates"]]
