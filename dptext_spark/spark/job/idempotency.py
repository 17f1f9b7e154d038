"""What binds a run id to one release: its row of `runs`, and a seal of it in the commit, for that table may be lost."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from dptext_spark._version import FIRST_ENGINE
from dptext_spark.errors import RunError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.spark.tables.tables import our_commits, undone_by
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS

if TYPE_CHECKING:
    from dptext_spark.spark.job.plan import RunPlan

# A run that finishes an unfinished one must agree with it in these.
SETTINGS = ("config", "artifact", "input", "input_version", "identity", "output")
OF_THE_KEY = ("key_commitment", "key_kind")
SEAL = "dptext_bound"  # in the commit of a run
# What decided what a finished run drew, and from what. The source may have gone on since: then there is nothing to do again.
DECIDED = ("columns", "row_key", "record_key", "consistency", "lexicon", "mechanism", "policy", "importance")
PLACE = ("path", "table")
_COMMITMENT = re.compile(r"(?<=; )[0-9a-f]{32}(?=\))")  # of what a row does not show
SHOWN = 40  # characters of a value that is shown


def seal(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the commit says of the row that bound its run: as it is where that is short, else a digest."""
    digests = {name: hashlib.sha256(str(record[name]).encode()).hexdigest()[:32] for name in SETTINGS}
    same = {name: record[name] for name in (*OF_THE_KEY, "second_release")}
    return {**same, **digests, "engine": engine_of(record)}


def engine_of(record: Mapping[str, Any]) -> str:
    """Return the version of the engine that made a run's draws, from its row or its seal; older ones do not say."""
    said = (
        record["engine"] if "engine" in record else json.loads(record.get("versions") or "{}").get("engine")
    )
    return str(said or FIRST_ENGINE)


def engine_of_commit(commit: Mapping[str, Any]) -> str:
    """Return the version of the engine that made the draws of a commit of ours."""
    return engine_of(json.loads(commit["userMetadata"]).get(SEAL) or {})


def other_engine(then: str) -> str:
    """Say that another engine made the draws, and what that means."""
    return f"engine ({then} then, {ENGINE_VERSION} now): the package was updated, and the same key gives other draws since"


def bind_run(
    plan: RunPlan,
    record: dict[str, Any],
    earlier: dict[str, Any] | None,
    commit: Mapping[str, Any] | None,
    spellings: Collection[str] = (),
) -> dict[str, Any]:
    """Bind a run to what its run id was begun with.

    Args:
        plan: the run.
        record: its row of `runs`.
        earlier: the row that stands there; None where there is none.
        commit: of the same run id, where it committed. Then the run is only accounted for: that draws nothing and needs no key.
        spellings: the settings as rows of earlier versions hold them.

    Returns:
        The row. Of a run that committed it names the key of its commit.

    Raises:
        RunError: the run id was begun with other settings, or that is not known; or it was begun with another key or by another
            engine, did not commit, and no second release is accepted; or another engine committed it.
    """
    before, now = earlier, record
    if earlier is None:
        if commit is None:
            return {**record, "second_release": False}
        before, now = _sealed_in(commit, plan.run_id), seal(record)
    assert before is not None
    accepted, same_engine = plan.config.run.second_release == "accept", engine_of(before) == ENGINE_VERSION
    if not same_engine and (commit is not None or not accepted):
        done, valid = (
            (
                "committed, and was not accounted for",
                "account for it with the version of the package that wrote it",
            )
            if commit is not None
            else (
                "did not finish; files that it left may hold its draws",
                "finish it with the version of the package that began it, or accept a second release of the same records by "
                "run.second_release=accept",
            )
        )
        raise RunError(
            f"run.id: {plan.run_id!r} was begun with another {other_engine(engine_of(before))}. It {done}. Valid: {valid}."
        )
    same_key = before["key_commitment"] == now["key_commitment"]
    kept: dict[str, Any] = {}
    if earlier is not None and before["config"] in spellings:  # as an earlier version wrote it
        before = {**before, "config": now["config"]}
    if earlier is not None and commit is not None and not same_key:
        # What is not shown is bound by the key of the commit, which cannot be asked: nothing is read or drawn for it again.
        kept = {"config": before["config"]}
        before, now = ({**row, "config": _COMMITMENT.sub("", row["config"])} for row in (before, now))
    differ = [name for name in SETTINGS if before[name] != now[name]]
    if differ:
        also = ", ".join([*([] if same_key or commit else ["key_commitment"]), *differ])
        raise RunError(
            f"run.id: {plan.run_id!r} was begun with another {also}; use a new run id, or the same settings."
        )
    second = bool(before["second_release"])
    if commit is not None:
        return {**record, "second_release": second, **{name: before[name] for name in OF_THE_KEY}, **kept}
    if not same_key and not accepted:
        raise RunError(
            f"run.id: {plan.run_id!r} was begun with another key and did not finish; files that it left may hold "
            "its draws. Run it with the same key (key.file), or accept a second release of the same records by "
            "run.second_release=accept."
        )
    return {**record, "second_release": second or not (same_key and same_engine)}


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
    then = engine_of(earlier)
    if then != ENGINE_VERSION:
        said.append(other_engine(then))
    elif not said and earlier["artifact"] != record["artifact"]:
        said = ["model (the lexicon's content)"]
    if earlier["output"] != record["output"]:
        said.insert(0, "output")
    if said:
        raise RunError(
            f"run.id: {record['run_id']!r} has committed with another {', another '.join(said)}. Nothing was written; valid: a "
            "new run id, or the settings that it committed with."
        )


def check_still_there(
    target: object,
    run_id: str,
    version: int,
    commits: Sequence[Mapping[str, Any]],
    valid: str = "a new run id",
) -> None:
    """Refuse a run that committed, where its commit is no longer a part of the target: then it is not done.

    A commit whose rows a later one replaced was done, and is a part of the table. Where the history begins after the version,
    the log's older part was cleaned up, and only a RESTORE can still be seen.

    Args:
        target: where the run wrote; for the message.
        run_id: of the run.
        version: that it committed.
        commits: the target's history, newest first.
        valid: what can be done.

    Raises:
        RunError: the table was deleted, made anew, or restored to a version before the commit.
    """
    found = our_commits(commits).get(run_id)
    oldest = min((int(one["version"]) for one in commits), default=0)
    restore = undone_by(commits, version)
    if not commits:
        why = "there is no table there any more"
    elif found is None and oldest <= version:
        why = "the table that is there now was made anew, without it"
    elif restore is not None:
        why = f"version {restore} restored the table to what it was before, or to a time, which may be before"
    else:
        return
    raise RunError(
        f"run.id: {run_id!r} committed version {version} of {str(target)!r}, and {why}. Nothing was written; valid: {valid}."
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
