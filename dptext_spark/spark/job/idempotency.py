"""Bind a run id to one release, and the checkpoint of a stream to one key, model, configuration and source.

A run is bound by its row of `runs`. The commit holds a seal of the row, as the table may be lost.

Spark's checkpoint knows how far a stream has read, but not its settings: with another key or another ε it would go on unnoticed.
So a folder next to Spark's files holds a table of one row, written before the first micro-batch. This module also names the part
of the source of each micro-batch.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dptext_spark.config.model import RunConfig, other_lexicon
from dptext_spark.disclosure.facts import RunRecord, ShownSettings
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.model.target_checks import SEAL, Commit, other_engine, our_commits
from dptext_spark.runtime.validation import Json, Record
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.planned_run import RunPlan, detail_of_input, place_of
from dptext_spark.spark.schemas import BINDING, frame_of
from dptext_spark.spark.tables import Target, escaped, holds_files, own_table, undone_by
from dptext_spark.text.names.search import ListSources

# A run that finishes an unfinished one must agree with it in these.
SETTINGS = ("config", "artifact", "input", "input_version", "identity", "output")
# Settings that decided the draws of a finished run and their input. A source that has grown since needs no new run.
DECIDED = (
    "columns", "row_key", "record_key", "consistency", "lexicon", "mechanism", "policy", "importance", "budget",
)  # fmt: skip
PLACE = ("path", "table")
# Operations of Delta that change the rows of a table; others rewrite its files, or its properties.
_CHANGING = (
    "WRITE", "DELETE", "UPDATE", "MERGE", "TRUNCATE", "RESTORE", "STREAMING UPDATE", "REPLACE", "CREATE OR REPLACE",
)  # fmt: skip
_COMMITMENT = re.compile(r"(?<=; )[0-9a-f]{32}(?=\))")  # of values that a row does not show
SHOWN = 40  # characters of a value that is shown


@dataclass(frozen=True)
class Binding(Record):
    """Values that bind a run id to one release: from a row of `runs`, or as digests from the commit.

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
        """Read the binding of a row."""
        same = {field.name: getattr(record, field.name) for field in fields(cls) if field.name != "engine"}
        return cls(**same, engine=record.made_by["engine"])

    @classmethod
    def sealed(cls, record: RunRecord) -> Binding:
        """Return the commit's form of a row: short values unchanged, others as digests."""
        plain = cls.of(record)
        digests: dict[str, Any] = {
            name: hashlib.sha256(str(getattr(plain, name)).encode()).hexdigest()[:32] for name in SETTINGS
        }
        return replace(plain, **digests)


def bind_run(plan: RunPlan, record: RunRecord, earlier: RunRecord | None, commit: Commit | None) -> RunRecord:
    """Bind a run to the settings that its run id began with.

    `earlier` is the present row of that run id. With a `commit` only the account is missing: that draws nothing and needs no key.

    Returns:
        The row, with the key of the commit if the run committed.

    Raises:
        RunError: the run id began with other or unknown settings; or it began with another key or engine, did not commit, and no
            second release is accepted; or another engine committed it.
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
        # Hidden values are bound by the key of the commit. It is not available: nothing is read or drawn again.
        config = earlier.config
        before, now = (replace(each, config=_COMMITMENT.sub("", each.config)) for each in (before, now))
    differ = [name for name in SETTINGS if getattr(before, name) != getattr(now, name)]
    if differ:
        _check_lexicon(before, now, plan.run_id)
        also = ", ".join([*([] if same_key or commit else ["key_commitment"]), *differ])
        raise RunError(
            f"run.id: {plan.run_id!r} began with another {also}. Use a new run id, or the same settings."
        )
    if lists and not is_accepted:
        raise _begun_with(plan, f"other lists of names: {lists}", "the earlier lists", commit)
    second = bool(before.second_release)
    if commit is not None:
        key, kind = before.key_commitment, before.key_kind
        return replace(record, second_release=second, key_commitment=key, key_kind=kind, config=config)
    if not same_key and not is_accepted:
        raise _begun_with(plan, "another key", "the same key (key.file)", commit)
    return replace(record, second_release=second or not (same_key and same_engine and not lists))


def _begun_with(plan: RunPlan, what: str, remedy: str, commit: Commit | None) -> RunError:
    """Return the error for a run id without account that began with other settings."""
    if commit is not None:
        done = "committed, but was not accounted for"
    else:
        done = "did not finish, and its files may hold its draws"
        remedy += ", or run.second_release=accept for a second release of the same records"
    return RunError(f"run.id: {plan.run_id!r} began with {what}. The earlier attempt {done}. Use {remedy}.")


def _lists_apart(before: Binding, now: Binding, same_key: bool) -> tuple[str, Binding, Binding]:
    """Separate the lists of names from the other settings.

    Digests are compared under the same key; lists under another key are unknown.

    Returns:
        (the settings whose lists differ, in words; empty where none does or can be known to; both bindings without lists).
    """
    try:
        settings = [ShownSettings(json.loads(binding.config)) for binding in (before, now)]
    except ValueError:  # a row that nobody can read differs, and that is found where texts are compared
        return "", before, now
    if not any(shown.lists for shown in settings):
        return "", before, now
    then, asked = ((shown if same_key else shown.without_digests()).lists for shown in settings)
    differing = [
        f"policy.{name}{_then_and_now(*_told(then.get(name, []), asked.get(name, [])))}"
        for name in ListSources.NAMES
        if then.get(name) != asked.get(name)
    ]
    first, second = (
        replace(binding, config=shown.without_lists().text)
        for binding, shown in zip((before, now), settings, strict=True)
    )
    return " and ".join(differing), first, second


def _told(then: Sequence[Mapping[str, Json]], now: Sequence[Mapping[str, Json]]) -> tuple[str, str]:
    """Describe lists then and now: versions of the public lists if those of pseudonyms differ, else numbers of entries."""
    versions = [
        sorted({str(source["version"]) for source in lists if "version" in source}) for lists in (then, now)
    ]
    if all(versions) and versions[0] != versions[1]:
        before, after = (f"public lists of version {', '.join(numbers)}" for numbers in versions)
        return before, after
    return _entries(then), _entries(now)


def _entries(lists: Sequence[Mapping[str, Json]]) -> str:
    """Describe the number of entries of some lists."""
    return f"{sum(int(str(source.get('entries', 0))) for source in lists):,} entries"


def _sealed_in(commit: Commit, run_id: str) -> Binding:
    sealed = commit.said.get(SEAL)
    if sealed is None:
        raise RunError(
            f"run.id: {run_id!r} committed, but its row in `runs` is lost and its commit does not name "
            "its settings. It cannot be accounted for. Use a new run id."
        )
    return Binding.from_dict(sealed, SEAL)


def _check_lexicon(before: Binding, now: Binding, run_id: str) -> None:
    """Refuse settings of another version of the packaged lexicon, with that reason: digests do not show it."""
    try:
        versions = differences(json.loads(before.config), json.loads(now.config)).get("lexicon.version")
    except ValueError:
        return
    if versions is not None:
        other = version_of_lexicon(versions)
        raise RunError(
            f"run.id: {run_id!r} began with another {other}. Nothing was written. Use a new run id."
        )


def check_same_part(plan: RunPlan, earlier: RunRecord | None) -> None:
    """Refuse a micro-batch whose number was another part of the source.

    Raises:
        RunError: Spark's own files of the stream are missing.
    """
    if earlier is not None and earlier.input_version != plan.input_version:
        raise RunError(
            f"run {plan.run_id} read another part of the source ({earlier.input_version}, now "
            f"{plan.input_version}). Spark's own files are missing in {plan.config.checkpoint!r}. Begin a new "
            "stream: another checkpoint and run id."
        )


def check_finished(record: RunRecord, earlier: RunRecord, *, of_stream: bool = False) -> None:
    """Refuse a run id that finished as another release than the one that is asked for.

    The stream of a micro-batch (`of_stream`) may have been given other lists of names since.

    Raises:
        RunError: with the settings that differ.
    """
    then, now = (
        _decided(settings.without_lists() if of_stream else settings.without_digests())
        for settings in (earlier.settings, record.settings)
    )
    changed = differences(then, now)
    reasons = [
        version_of_lexicon(values) if name == "lexicon.version" else f"{name}{_then_and_now(*values)}"
        for name, values in changed.items()
    ]
    engine = earlier.made_by["engine"]
    if engine != ENGINE_VERSION:
        reasons.append(other_engine(engine))
    elif not reasons and earlier.artifact != record.artifact:
        reasons = ["model (the lexicon's content)"]
    if earlier.output != record.output:
        reasons.insert(0, "output")
    if reasons:
        raise RunError(
            f"run.id: {record.run_id!r} has committed with another {', another '.join(reasons)}. Nothing "
            "was written. Use a new run id, or the settings of that commit."
        )


def check_still_there(
    target: object, run_id: str, version: int, commits: Sequence[Commit], remedy: str = "Use a new run id"
) -> None:
    """Refuse a run that committed, where its commit is no longer a part of the target: then it is not done.

    A commit whose rows a later one replaced was done, and is a part of the table. Where the history begins after the version,
    the log's older part was cleaned up, and only a RESTORE can still be seen.

    Raises:
        RunError: the table was deleted, made anew, or restored to a version before the commit.
    """
    own_commit = our_commits(commits).get(run_id)
    oldest = min((commit.version for commit in commits), default=0)
    restore = undone_by(commits, version)
    if not commits:
        why = "the table no longer exists"
    elif own_commit is None and oldest <= version:
        why = "the table was created anew without this version"
    elif restore is not None:
        why = f"version {restore} restored the table to an earlier state, perhaps without this version"
    else:
        return
    raise RunError(
        f"run.id: {run_id!r} committed version {version} of {str(target)!r}, but {why}. Nothing was written. {remedy}."
    )


def changed_since(record: RunRecord, earlier: RunRecord, commits: Sequence[Commit]) -> Iterator[str]:
    """Yield changes since a finished run committed: of its key, and of its target's rows."""
    if record.key_kind != "os" and record.key_commitment != earlier.key_commitment:
        yield "The table holds draws of another key. For draws under this key, use a new run id."
    version = -1 if earlier.output_version is None else earlier.output_version
    others = [
        f"{commit.operation} (version {commit.version})"
        for commit in reversed(commits)
        if commit.version > version and not commit.said and commit.operation.startswith(_CHANGING)
    ]
    if others:
        shown = ", ".join(others[:5]) + (f" and {len(others) - 5:,} more" if len(others) > 5 else "")
        yield f"The target has changed since the run committed version {version}: {shown}."


def differences(
    before: Mapping[str, Json], now: Mapping[str, Json], section: str = ""
) -> dict[str, tuple[object, object]]:
    """Return the settings that differ, by name with dots, with both values."""
    changed: dict[str, tuple[object, object]] = {}
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name), now.get(name)
        if (section, name) == ("lexicon", "version") and None in (old, new):
            continue  # an artifact decided one: the model's fingerprint is compared
        if isinstance(old, dict) and isinstance(new, dict) and {"name"} & old.keys() == {"name"} & new.keys():
            inner = differences(old, new, name)
            changed |= {f"{name}.{field}": values for field, values in inner.items()}
        elif old != new:
            changed[name] = (old, new)
    return changed


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
    short = all(isinstance(value, int | float | str) and len(str(value)) <= SHOWN for value in (before, now))
    return f" ({before} then, {now} now)" if short else ""


OWN = "dptext"  # the folder in the checkpoint
# Settings that decide draws, input and target. The others may change while a stream lives.
BOUND_SETTINGS = ("input", *DECIDED)
LONGEST = 100  # characters of a stream's run id: a micro-batch's has a number behind it


def settings_of(plan: RunPlan, run_id: str) -> ShownSettings:
    """Return the settings that a stream is bound to; a condition on a text column is bound by the key."""
    # A list of names may change while a stream lives: each micro-batch is bound to its own lists.
    shown = plan.shown_settings(run_id).without_lists().values
    place = {name: shown["output"][name] for name in ("path", "table")}
    bound = {name: shown[name] for name in BOUND_SETTINGS if name in shown}  # unused settings leave no trace
    starts = {"starting_version": shown["stream"]["starting_version"]}
    return ShownSettings({**bound, "output": place, "stream": starts})


@dataclass(frozen=True)
class StreamBinding:
    """Values that a checkpoint binds its stream to.

    Attributes:
        key: a commitment to the key.
        model: its fingerprint.
        engine: the version that draws.
        source: the identifier of its table; None where it has none.
        columns: of the target, with their types.
        settings: those that decide draws and input.
    """

    key: str
    model: str
    engine: str
    source: str | None
    columns: Mapping[str, str]
    settings: ShownSettings

    @classmethod
    def of_plan(cls, plan: RunPlan, stream: str) -> StreamBinding:
        """Compute the binding of a stream of this run id."""
        table = plan.detail or detail_of_input(plan.spark, plan.config.input)
        return cls(
            key=plan.key.commitment(stream),
            model=plan.privatizer.fingerprint,
            engine=ENGINE_VERSION,
            source=None if table is None else table.id,
            columns={name: plan.df.schema[name].dataType.simpleString() for name in plan.kept},
            settings=settings_of(plan, stream),
        )

    @classmethod
    def read(cls, text: str) -> StreamBinding:
        """Read it back from its text."""
        values = json.loads(text)
        return cls(**{**values, "settings": ShownSettings(values["settings"])})

    @property
    def text(self) -> str:
        """It as the table holds it, JSON."""
        return json.dumps({**vars(self), "settings": self.settings.values}, sort_keys=True)


@dataclass(frozen=True)
class BegunStream:
    """A stream that is bound to a checkpoint already: its run id, its binding, and its micro-batches in the table of runs."""

    stream: str
    bound: StreamBinding
    batches: Mapping[str, int | None]


def begun(spark: SparkSession, config: RunConfig) -> BegunStream | None:
    """Return the stream bound to the checkpoint of these settings, with its micro-batches; None if there is none.

    Raises:
        DataError: the binding, or the table of runs, is of another schema version.
    """
    table = own_table(spark, _binding(config))
    row = None if table is None else table.first()
    if row is None:
        return None
    stream = str(row["stream"])
    batches = runs.micro_batches(spark, place_of(config).runs, stream)
    return BegunStream(stream, StreamBinding.read(row["bound"]), batches)


def _binding(config: RunConfig) -> Target:
    return Target(path=f"{config.checkpoint}/{OWN}")


def begin(plan: RunPlan, begun: BegunStream | None) -> str:
    """Bind a new checkpoint, or compare an old one; return the run id of its stream.

    Raises:
        SettingsError: another key, model, configuration or source; a checkpoint of something else; or none where the target
            holds a release already.
    """
    config, checkpoint = plan.config, str(plan.config.checkpoint)
    named = config.run.id
    if named is not None and len(named) > LONGEST:
        raise SettingsError(
            f"run.id: {len(named)} characters are too many for mode {config.mode}. Use {LONGEST} or fewer."
        )
    if begun is not None:
        return _compared(plan, begun)
    if holds_files(plan.spark, checkpoint, besides=f"/{checkpoint.rstrip('/').rpartition('/')[2]}/{OWN}/"):
        raise SettingsError(
            f"stream.checkpoint: {checkpoint!r} is another checkpoint, or holds other files. Use a new "
            "folder, or the checkpoint of this stream."
        )
    _check_not_released(plan, checkpoint)
    if named is not None and runs.find(plan.spark, plan.place.runs, named) is not None:
        raise SettingsError(
            f"run.id: {named!r} is in the table of runs, but {checkpoint!r} is not its checkpoint. Use "
            "another run id, or its checkpoint."
        )
    put_binding(plan)
    return plan.run_id


def put_binding(plan: RunPlan) -> None:
    """Write the table that binds a new checkpoint to its stream."""
    bound = StreamBinding.of_plan(plan, plan.run_id).text
    frame = frame_of(plan.spark, [(plan.run_id, bound)], BINDING)
    frame.write.format("delta").mode("error").save(_binding(plan.config).path)


def _compared(plan: RunPlan, begun: BegunStream) -> str:
    stream, before, checkpoint = begun.stream, begun.bound, plan.config.checkpoint
    if plan.config.run.id not in (None, stream):
        raise SettingsError(
            f"run.id: {plan.config.run.id!r} is not the stream of {checkpoint!r}. Use {stream!r} or null."
        )
    now = StreamBinding.read(StreamBinding.of_plan(plan, stream).text)
    settings = differences(before.settings.values, now.settings.values)
    other = other_engine(before.engine) if before.engine != ENGINE_VERSION else ""
    if not other and "lexicon.version" in settings:
        other = version_of_lexicon(settings["lexicon.version"])
    if other:
        raise SettingsError(
            f"stream.checkpoint: {checkpoint!r} belongs to a stream with another {other}. Go on with the "
            "version of the package that began it, or use a new checkpoint and a new target."
        )
    differ = [name for name in ("key", "source") if getattr(before, name) != getattr(now, name)]
    differ += settings
    if not differ and before.model != now.model:
        differ = ["model (the lexicon's content)"]
    if before.columns != now.columns:
        changed = sorted({name for name, _ in before.columns.items() ^ now.columns.items()})
        differ.append(f"columns of the target ({', '.join(changed)}; see output.other_columns)")
    if differ:
        raise SettingsError(
            f"stream.checkpoint: {checkpoint!r} belongs to a stream with another {', another '.join(differ)}. Use its "
            "first key, settings and source, or a new checkpoint and a new target."
        )
    return stream


def _check_not_released(plan: RunPlan, checkpoint: str) -> None:
    """Refuse to read a whole source again into a table that holds it: the checkpoint was lost, or is another stream's."""
    config = plan.config.stream
    if config.starting_version is not None or not our_commits(plan.commits()):
        return
    if config.duplicates in ("accept", "drop"):
        return
    raise SettingsError(
        f"stream.checkpoint: {checkpoint!r} has none, but {str(plan.place.target)!r} holds a release. The stream would "
        "release the whole source again. Use the checkpoint of that stream, or set stream.starting_version. Or set "
        "stream.duplicates to drop (leaves out rows that the target holds) or accept (releases each row again)."
    )


def part_of_source(spark: SparkSession, checkpoint: str, number: int) -> str:
    """Name a micro-batch's part of the source: `delta:FROM..TO`, places in the source's log.

    A place is a version, with all files before it; `5[2]` is past file 2 of version 5. A `*` follows a place in the snapshot that
    the stream began with.

    Raises:
        RunError: the checkpoint does not name it.
    """
    places = {}
    for batch in (number - 1, number):
        if batch < 0:
            continue
        try:
            lines = spark.read.text(escaped(f"{checkpoint}/offsets/{batch}")).where(
                F.col("value").contains("reservoirVersion")
            )
            offsets = [json.loads(row["value"]) for row in lines.collect()]
        except (PySparkException, ValueError):
            offsets = []
        if len(offsets) != 1:
            raise RunError(f"stream.checkpoint: {checkpoint!r} lacks the input of micro-batch {batch}.")
        places[batch] = _said(offsets[0])
    return f"delta:{places.get(number - 1, '')}..{places[number]}"


def _said(offset: Mapping[str, int | str | bool]) -> str:
    index = int(offset.get("index", -1))
    within = f"[{index}]" if index >= 0 else ""
    return f"{offset['reservoirVersion']}{within}{'*' if offset.get('isStartingVersion') else ''}"
