"""What binds a run id to one release: its row of `runs`, and a seal of it in the commit, for that table may be lost."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from dptext_spark.config.model import other_lexicon
from dptext_spark.disclosure.facts import RunRecord, ShownSettings
from dptext_spark.errors import RunError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.model.target_checks import SEAL, Commit, other_engine, our_commits
from dptext_spark.runtime.validation import Json, Record
from dptext_spark.spark.tables import undone_by
from dptext_spark.text.names.search import ListSources

if TYPE_CHECKING:
    from dptext_spark.spark.job.plan import RunPlan

# A run that finishes an unfinished one must agree with it in these.
SETTINGS = ("config", "artifact", "input", "input_version", "identity", "output")
# What decided what a finished run drew, and from what. The source may have gone on since: then there is nothing to do again.
DECIDED = (
    "columns", "row_key", "record_key", "consistency", "lexicon", "mechanism", "policy", "importance", "budget",
)  # fmt: skip
PLACE = ("path", "table")
# Operations of Delta that change the rows of a table; others rewrite its files, or its properties.
_CHANGING = (
    "WRITE",
    "DELETE",
    "UPDATE",
    "MERGE",
    "TRUNCATE",
    "RESTORE",
    "STREAMING UPDATE",
    "REPLACE",
    "CREATE OR REPLACE",
)
_COMMITMENT = re.compile(r"(?<=; )[0-9a-f]{32}(?=\))")  # of what a row does not show
SHOWN = 40  # characters of a value that is shown


@dataclass(frozen=True)
class Binding(Record):
    """What binds a run id to one release: as a row of `runs` says it, or, by digests, as the commit does.

    Attributes are the columns of the row, and the version of the engine that made the draws.
    """

    key_commitment: str
    key_kind: str
    second_release: bool
    config: str
    artifact: str
    input: str
    input_version: str | None
    identity: str
    output: str
    engine: str

    @classmethod
    def of(cls, record: RunRecord) -> Binding:
        """Return what a row says."""
        same = {one.name: getattr(record, one.name) for one in fields(cls) if one.name != "engine"}
        return cls(**same, engine=engine_of(record))

    @classmethod
    def sealed(cls, record: RunRecord) -> Binding:
        """Return what the commit says of a row: as it is where that is short, else a digest."""
        plain = cls.of(record)
        digests: dict[str, Any] = {
            name: hashlib.sha256(str(getattr(plain, name)).encode()).hexdigest()[:32] for name in SETTINGS
        }
        return replace(plain, **digests)


def engine_of(record: RunRecord) -> str:
    """Return the version of the engine that made a run's draws."""
    return record.made_by["engine"]


def bind_run(plan: RunPlan, record: RunRecord, earlier: RunRecord | None, commit: Commit | None) -> RunRecord:
    """Bind a run to what its run id was begun with.

    Args:
        plan: the run.
        record: its row of `runs`.
        earlier: the row that stands there; None where there is none.
        commit: of the same run id, where it committed. Then the run is only accounted for: that draws nothing and needs no key.

    Returns:
        The row. Of a run that committed it names the key of its commit.

    Raises:
        RunError: the run id was begun with other settings, or that is not known; or it was begun with another key or by another
            engine, did not commit, and no second release is accepted; or another engine committed it.
    """
    if earlier is not None:
        before, now = Binding.of(earlier), Binding.of(record)
    elif commit is None:
        return replace(record, second_release=False)
    else:
        before, now = _sealed_in(commit, plan.run_id), Binding.sealed(record)
    is_accepted = commit is None and plan.config.run.second_release == "accept"
    same_engine, same_key = before.engine == ENGINE_VERSION, before.key_commitment == now.key_commitment
    if not same_engine and not is_accepted:
        raise _begun_with(plan, f"another {other_engine(before.engine)}", "the package that began it", commit)
    lists, before, now = _lists_apart(before, now, same_key) if earlier is not None else ("", before, now)
    config = record.config
    if earlier is not None and commit is not None and not same_key:
        # What is not shown is bound by the key of the commit, which cannot be asked: nothing is read or drawn for it again.
        config = earlier.config
        before, now = (replace(each, config=_COMMITMENT.sub("", each.config)) for each in (before, now))
    differ = [name for name in SETTINGS if getattr(before, name) != getattr(now, name)]
    if differ:
        _check_lexicon(
            before.config, now.config, f"run.id: {plan.run_id!r} was begun with another", "a new run id"
        )
        also = ", ".join([*([] if same_key or commit else ["key_commitment"]), *differ])
        raise RunError(
            f"run.id: {plan.run_id!r} was begun with another {also}; use a new run id, or the same settings."
        )
    if lists and not is_accepted:
        raise _begun_with(plan, f"other lists of names: {lists}", "the lists as they were", commit)
    second = bool(before.second_release)
    if commit is not None:
        key, kind = before.key_commitment, before.key_kind
        return replace(record, second_release=second, key_commitment=key, key_kind=kind, config=config)
    if not same_key and not is_accepted:
        raise _begun_with(plan, "another key", "the same key (key.file)", commit)
    return replace(record, second_release=second or not (same_key and same_engine and not lists))


def _begun_with(plan: RunPlan, what: str, valid: str, commit: Commit | None) -> RunError:
    """Return the error for a run id that was begun with something else than is asked for, and has no account."""
    if commit is not None:
        done = "committed, and was not accounted for"
    else:
        done = "did not finish; files that it left may hold its draws"
        valid += ", or a second release of the same records by run.second_release=accept"
    return RunError(f"run.id: {plan.run_id!r} was begun with {what}. It {done}. Valid: {valid}.")


def _lists_apart(before: Binding, now: Binding, same_key: bool) -> tuple[str, Binding, Binding]:
    """Tell the lists of names apart from the other settings.

    Digests are compared under the same key; what was read under another one is not known.

    Returns:
        (the settings whose lists differ, in words; empty where none does or can be known to; both bindings without lists).
    """
    try:
        settings = [ShownSettings(json.loads(one.config)) for one in (before, now)]
    except ValueError:  # a row that nobody can read differs, and that is found where texts are compared
        return "", before, now
    if not any(one.lists for one in settings):
        return "", before, now
    then, asked = ((one if same_key else one.without_digests()).lists for one in settings)
    found = [
        f"policy.{name}{_then_and_now(*_told(then.get(name, []), asked.get(name, [])))}"
        for name in ListSources.NAMES
        if then.get(name) != asked.get(name)
    ]
    first, second = (
        replace(one, config=held.without_lists().text)
        for one, held in zip((before, now), settings, strict=True)
    )
    return " and ".join(found), first, second


def _told(then: Sequence[Mapping[str, Json]], now: Sequence[Mapping[str, Json]]) -> tuple[str, str]:
    """Return in words what lists were and are: the versions of the public lists, where pseudonyms are of others, else entries."""
    versions = [sorted({str(one["version"]) for one in lists if "version" in one}) for lists in (then, now)]
    if all(versions) and versions[0] != versions[1]:
        before, after = (f"public lists of version {', '.join(found)}" for found in versions)
        return before, after
    return _entries(then), _entries(now)


def _entries(lists: Sequence[Mapping[str, Json]]) -> str:
    """Return how many entries were read for some lists, in words."""
    return f"{sum(int(str(one.get('entries', 0))) for one in lists):,} entries"


def _sealed_in(commit: Commit, run_id: str) -> Binding:
    sealed = commit.said.get(SEAL)
    if sealed is None:
        raise RunError(
            f"run.id: {run_id!r} committed, its row in `runs` is lost, and its commit does not say what it was begun with; "
            "it cannot be accounted for. Use a new run id."
        )
    return Binding.from_dict(sealed, SEAL)


def _check_lexicon(before: str, now: str, said: str, valid: str) -> None:
    """Refuse settings of another version of the packaged lexicon, with that reason; digests of settings do not say."""
    try:
        found = differences(json.loads(before), json.loads(now)).get("lexicon.version")
    except ValueError:
        return
    if found is not None:
        raise RunError(f"{said} {version_of_lexicon(found)}. Nothing was written; valid: {valid}.")


def check_same_part(plan: RunPlan, earlier: RunRecord | None) -> None:
    """Refuse a micro-batch whose number was another part of the source.

    Raises:
        RunError: Spark's own files of the stream are missing.
    """
    if earlier is not None and earlier.input_version != plan.input_version:
        raise RunError(
            f"run {plan.run_id} was another part of the source ({earlier.input_version}, now {plan.input_version}): Spark's own "
            f"files are missing in {plan.config.checkpoint!r}. Begin a new stream: another checkpoint and another run id."
        )


def check_finished(record: RunRecord, earlier: RunRecord, *, of_stream: bool = False) -> None:
    """Refuse a run id that finished as another release than the one that is asked for.

    The stream of a micro-batch (`of_stream`) may have been given other lists of names since.

    Raises:
        RunError: with the settings that differ.
    """
    then, now = (
        _decided(one.without_lists() if of_stream else one.without_digests())
        for one in (earlier.settings, record.settings)
    )
    found = differences(then, now)
    said = [
        version_of_lexicon(values) if name == "lexicon.version" else f"{name}{_then_and_now(*values)}"
        for name, values in found.items()
    ]
    engine = engine_of(earlier)
    if engine != ENGINE_VERSION:
        said.append(other_engine(engine))
    elif not said and earlier.artifact != record.artifact:
        said = ["model (the lexicon's content)"]
    if earlier.output != record.output:
        said.insert(0, "output")
    if said:
        raise RunError(
            f"run.id: {record.run_id!r} has committed with another {', another '.join(said)}. Nothing was written; valid: a "
            "new run id, or the settings that it committed with."
        )


def check_still_there(
    target: object, run_id: str, version: int, commits: Sequence[Commit], valid: str = "a new run id"
) -> None:
    """Refuse a run that committed, where its commit is no longer a part of the target: then it is not done.

    A commit whose rows a later one replaced was done, and is a part of the table. Where the history begins after the version,
    the log's older part was cleaned up, and only a RESTORE can still be seen.

    Raises:
        RunError: the table was deleted, made anew, or restored to a version before the commit.
    """
    found = our_commits(commits).get(run_id)
    oldest = min((one.version for one in commits), default=0)
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


def changed_since(record: RunRecord, earlier: RunRecord, commits: Sequence[Commit]) -> Iterator[str]:
    """Say what is not as it was when a finished run committed: its key, and the rows of its target."""
    if record.key_kind != "os" and record.key_commitment != earlier.key_commitment:
        yield "Another key than now drew what is there; valid for draws under this key: a new run id."
    version = -1 if earlier.output_version is None else earlier.output_version
    others = [
        f"{commit.operation} (version {commit.version})"
        for commit in reversed(commits)
        if commit.version > version and not commit.said and commit.operation.startswith(_CHANGING)
    ]
    if others:
        shown = ", ".join(others[:5]) + (f" and {len(others) - 5:,} more" if len(others) > 5 else "")
        yield f"The target is not what the run committed as version {version}: since then {shown} changed it."


def differences(
    before: Mapping[str, Json], now: Mapping[str, Json], section: str = ""
) -> dict[str, tuple[object, object]]:
    """Return the settings that differ, by name with dots: what they were, and what they are."""
    found: dict[str, tuple[object, object]] = {}
    for name in sorted(before.keys() | now.keys()):
        one, other = before.get(name), now.get(name)
        if (section, name) == ("lexicon", "version") and None in (one, other):
            continue  # of one an artifact decided: the model's fingerprint tells
        if (
            isinstance(one, dict)
            and isinstance(other, dict)
            and {"name"} & one.keys() == {"name"} & other.keys()
        ):
            inner = differences(one, other, name)
            found |= {f"{name}.{field}": values for field, values in inner.items()}
        elif one != other:
            found[name] = (one, other)
    return found


def version_of_lexicon(values: tuple[object, object]) -> str:
    """Return the sentence of two versions of the packaged lexicon that differ."""
    then, now = values
    return other_lexicon(int(str(then)), int(str(now)))


def _decided(settings: ShownSettings) -> dict[str, Json]:
    values = settings.values
    place = {name: (values.get("input") or {}).get(name) for name in PLACE}
    return {**{name: values[name] for name in DECIDED if name in values}, "input": place}


def _then_and_now(before: object, now: object) -> str:
    """Return two values where they are short."""
    short = all(isinstance(one, int | float | str) and len(str(one)) <= SHOWN for one in (before, now))
    return f" ({before} then, {now} now)" if short else ""
