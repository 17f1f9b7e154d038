"""What the disclosure statement assumes, and what it says of other runs."""

from __future__ import annotations

from collections.abc import Iterator

from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.statement import not_audited


def assumed(facts: RunFacts) -> Iterator[str]:
    """Write what must be true for the guarantee to hold."""
    if facts.key_kind == "insecure":
        yield (
            "Nothing that makes it hold: the draws come from AES-256 under a key that is no secret, and whoever tries it can "
            "test candidates word by word."
        )
    else:
        yield (
            "The draws come from AES-256 under a secret key, so the guarantee holds against whoever cannot break it, and only "
            "while the key is secret: its holder can test candidates word by word."
        )
        yield _key(str(facts.key_kind))
    yield (
        "The lexicon, its order, the stop-word list and all settings are public, and not made from the "
        "private text. Whoever makes one of them from the text must count that as a release of its own."
    )
    if facts.config.mechanism.reads_context:
        yield (
            "The counts of word pairs by which draws follow the word before them are public, too, and part of the model. The "
            "guarantee holds whatever they are; counts of the private text would be a release of their own."
        )
    if facts.config.lexicon.prior is not None:
        yield (
            f"The text {facts.config.lexicon.prior.corpus!r}, in which words and pairs were counted, is taken to be public. "
            "With lexicon.prior: null none is read."
        )
    yield (
        f"What is compared is {facts.guarantee.unit}: not a person, and not a whole record. The setting consistency "
        "decides which it is."
    )
    yield from _identified(facts)
    if facts.config.record_key:
        yield f"A record is all rows with the same {facts.config.record_key!r}."
    else:
        yield "A record is a row. With record_key it is all rows with the same key."


def _key(kind: str) -> str:
    return {
        "os": (
            "The key is 32 bytes of the operating system, held in memory only, and gone when the run ends. With key.file it "
            "is a file's."
        ),
        "file": (
            "The key comes from a file and outlives the run: it is as secret as the text. Without key.file it would be gone "
            "when the run ends."
        ),
        "env": (
            "The key comes from an environment variable of the driver and outlives the run wherever that is kept: it is as "
            "secret as the text. Without key.env it would be gone when the run ends."
        ),
        "secret": (
            "The key comes from the platform's secrets and outlives the run: whoever may read that secret can test "
            "candidates. Without key.secret it would be gone when the run ends."
        ),
        "given": (
            "The key was given by the calling program: it is as secret as the text. Without it the run would make its own."
        ),
    }.get(kind, "The kind of the key is not known.")


def _identified(facts: RunFacts) -> Iterator[str]:
    """Write what tells rows apart, and which of them share draws."""
    identity = facts.identity or "not known before the run"
    if identity == "row_key":
        shared = {
            "record": "equal words share a draw within a record, which may have several rows",
            "dataset": "equal words share a draw in all rows",
        }.get(facts.consistency, "no two rows share draws")
        yield f"A row is identified by {facts.config.row_key!r}, which is unique: {shared}."
    elif identity == "file_row":
        yield (
            "A row is identified by its file and its place in it, so a retried task draws the same noise "
            "again."
        )
    elif identity.startswith("ordinal"):
        yield (
            "A row is identified by its place in the scan; a retried task draws the same noise again as "
            "long as the "
            "input's files and their partitioning stay as they are. A row_key would do without that."
        )
    else:
        yield f"What identifies a row: {identity}."
    if facts.config.row_key is None:
        yield f"{not_audited(None).replace('the', 'The', 1)} (row_key: {{none: accept}})."


def across_runs(facts: RunFacts) -> Iterator[str]:
    """Write what other releases of the same records add."""
    counted = facts.ledger
    if counted is None:
        yield (
            "Every further release of the same records with new draws adds its bound to this one. A run counts them in its "
            "ledger, and its own statement says what they come to."
        )
    else:
        yield counted.sentence
        yield from counted.notes
    if facts.consistency == "token":
        yield (
            "At token level a new run id gives new draws, whatever the key. With consistency: record or dataset and one "
            "key.file, replacements stay."
        )
    elif facts.key_kind == "os":
        yield "The key is gone when the run ends: every further run draws anew. With key.file, replacements stay."
    else:
        yield (
            "The same key, lexicon, mechanism and policy give the same replacements again: of a record that did "
            "not change that tells nothing new, of one that did, which of its words did."
        )
    releases = facts.releases_in_history
    if releases is None:
        yield "How many releases the target's history holds is not known before the run."
    elif releases > 1:
        yield (
            f"The target's history holds {releases} releases of this tool: old versions and files that were "
            "not vacuumed "
            "can be read, and where they hold the same records with other draws their bounds add up. VACUUM removes old files."
        )
    else:
        yield "The target's history holds this release only."
    if facts.config.output.overwrite_raw:
        yield (
            "The target may have held raw text before (output.overwrite_raw): it stays readable in old "
            "versions, and in "
            "the statistics of the transaction log even after VACUUM."
        )
