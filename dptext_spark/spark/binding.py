"""What binds a run id to one release: its row of `runs`, and a seal of it in the commit, for that table may be lost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dptext_spark.errors import RunError
from dptext_spark.text.identifiers import NO_IDENTIFIERS

if TYPE_CHECKING:
    from dptext_spark.spark.setup import Setup

# A run that finishes an unfinished one must agree with it in these.
SETTINGS = ("config", "artifact", "input", "input_version", "identity", "output")
OF_THE_KEY = ("key_commitment", "key_kind")
SEAL = "dptext_bound"  # in the commit of a run
# What decided what a finished run drew, and from what. The source may have gone on since: then there is nothing to do again.
DECIDED = ("columns", "row_key", "record_key", "consistency", "lexicon", "mechanism", "policy", "importance")
PLACE = ("path", "table")
SHOWN = 40  # characters of a value that is shown


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the commit says of the row that bound its run: as it is where that is short, else a digest."""
    digests = {name: hashlib.sha256(str(record[name]).encode()).hexdigest()[:32] for name in SETTINGS}
    return {**{name: record[name] for name in (*OF_THE_KEY, "second_release")}, **digests}


def bound(
    setup: Setup, record: dict[str, Any], earlier: dict[str, Any] | None, commit: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Bind a run to what its run id was begun with.

    Args:
        setup: the run.
        record: its row of `runs`.
        earlier: the row that stands there; None where there is none.
        commit: of the same run id, where it committed. Then the run is only accounted for: that draws nothing and needs no key.

    Returns:
        The row. Of a run that committed it names the key of its commit.

    Raises:
        RunError: the run id was begun with other settings, or that is not known; or it was begun with another key, did not
            commit, and no second release is accepted.
    """
    before, now = earlier, record
    if earlier is None:
        if commit is None:
            return {**record, "second_release": False}
        before, now = _sealed_in(commit, setup.run_id), seal(record)
    assert before is not None
    differ = [name for name in SETTINGS if before[name] != now[name]]
    same_key = before["key_commitment"] == now["key_commitment"]
    if differ:
        also = ", ".join([*([] if same_key or commit else ["key_commitment"]), *differ])
        raise RunError(
            f"run.id: {setup.run_id!r} was begun with another {also}; use a new run id, or the same settings."
        )
    second = bool(before["second_release"])
    if commit is not None:
        return {**record, "second_release": second, **{name: before[name] for name in OF_THE_KEY}}
    if not same_key and setup.config.run.second_release != "accept":
        raise RunError(
            f"run.id: {setup.run_id!r} was begun with another key and did not finish; files that it left may hold "
            "its draws. Run it with the same key (key.file), or accept a second release of the same records by "
            "run.second_release=accept."
        )
    return {**record, "second_release": second or not same_key}


def _sealed_in(commit: Mapping[str, Any], run_id: str) -> dict[str, Any]:
    found = json.loads(commit["userMetadata"]).get(SEAL)
    if found is None:
        raise RunError(
            f"run.id: {run_id!r} committed, its row in `runs` is lost, and its commit does not say what it was begun with; "
            "it cannot be accounted for. Use a new run id."
        )
    return dict(found)


def check_finished(record: Mapping[str, Any], earlier: Mapping[str, Any]) -> None:
    """Refuse a run id that finished as another release than the one that is asked for.

    Args:
        record: the row of `runs` that would bind the run.
        earlier: the row that stands there.

    Raises:
        RunError: with the settings that differ.
    """
    before, now = (_decided(json.loads(row["config"])) for row in (earlier, record))
    found = differences(before, now)
    said = [f"{name}{_then_and_now(*values)}" for name, values in found.items()]
    if not said and earlier["artifact"] != record["artifact"]:
        said = ["model (the lexicon's content, or the version of the engine)"]
    if earlier["output"] != record["output"]:
        said.append("output")
    if said:
        raise RunError(
            f"run.id: {record['run_id']!r} has committed with another {', another '.join(said)}. Nothing was written; valid: a "
            "new run id, or the settings that it committed with."
        )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ, by name with dots: what they were, and what they are."""
    found: dict[str, tuple[Any, Any]] = {}
    for name in sorted(before.keys() | now.keys()):
        one, other = before.get(name), now.get(name)
        if name == "identifiers":  # what was begun before there were any looks for none
            one, other = (asdict(NO_IDENTIFIERS) if value is None else value for value in (one, other))
        if (
            isinstance(one, dict)
            and isinstance(other, dict)
            and {"name"} & one.keys() == {"name"} & other.keys()
        ):
            found |= {f"{name}.{inner}": values for inner, values in differences(one, other).items()}
        elif one != other:
            found[name] = (one, other)
    return found


def _decided(config: Mapping[str, Any]) -> dict[str, Any]:
    place = {name: (config.get("input") or {}).get(name) for name in PLACE}
    return {**{name: config.get(name) for name in DECIDED}, "input": place}


def _then_and_now(before: Any, now: Any) -> str:
    """Return two values where they are short."""
    short = all(isinstance(one, int | float | str) and len(str(one)) <= SHOWN for one in (before, now))
    return f" ({before} then, {now} now)" if short else ""
