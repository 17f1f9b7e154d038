"""What binds a stream's checkpoint to one key, model, configuration and source, and which part of the source a micro-batch is.

Spark's checkpoint knows how far a stream has read, not what it was for: with another key or another ε it would go on as if
nothing were. So a table of one row stands in a folder of its own beside Spark's files, written before the first micro-batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from dptext_spark.disclosure.facts import ShownSettings
from dptext_spark.errors import RunError, SettingsError
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.model.target_checks import other_engine, our_commits
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.checks import detail_of_input, holds_files, place_of
from dptext_spark.spark.job.idempotency import DECIDED, differences, version_of_lexicon
from dptext_spark.spark.schemas import BINDING, frame_of
from dptext_spark.spark.tables import Target, escaped, own_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dptext_spark.config.model import RunConfig
    from dptext_spark.spark.job.plan import RunPlan

OWN = "dptext"  # the folder in the checkpoint
# Settings that decide what is drawn from what, and where it goes. The others may change while a stream lives.
SETTINGS = ("input", *DECIDED)
LONGEST = 100  # characters of a stream's run id: a micro-batch's has a number behind it


def settings_of(plan: RunPlan, run_id: str) -> ShownSettings:
    """Return the settings that a stream is bound to; a condition on a text column is bound by the key."""
    # A list of names may change while a stream lives: each micro-batch is bound to what it was given.
    shown = plan.shown_settings(run_id).without_lists().values
    place = {name: shown["output"][name] for name in ("path", "table")}
    bound = {name: shown[name] for name in SETTINGS if name in shown}  # what is not used leaves no trace
    starts = {"starting_version": shown["stream"]["starting_version"]}
    return ShownSettings({**bound, "output": place, "stream": starts})


@dataclass(frozen=True)
class StreamBinding:
    """What a checkpoint binds its stream to.

    Attributes:
        key: a commitment to it.
        model: its fingerprint.
        engine: the version that draws.
        source: the identifier of its table; None where it has none.
        columns: of the target, with their types.
        settings: that decide what is drawn from what.
    """

    key: str
    model: str
    engine: str
    source: str | None
    columns: Mapping[str, str]
    settings: ShownSettings

    @classmethod
    def of_plan(cls, plan: RunPlan, stream: str) -> StreamBinding:
        """Return what binds a stream of this run id."""
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
class Begun:
    """A stream that is bound to a checkpoint already.

    Attributes:
        stream: its run id.
        bound: what it is bound to.
        batches: its micro-batches in the table of runs, as :func:`.runs.micro_batches` returns them.
    """

    stream: str
    bound: StreamBinding
    batches: Mapping[str, int | None]


def begun(spark: SparkSession, config: RunConfig) -> Begun | None:
    """Return the stream that is bound to the checkpoint of these settings, and what it has done; None where there is none.

    Raises:
        DataError: what binds it, or the table of runs, is of another schema version.
    """
    table = own_table(spark, _binding(config))
    row = None if table is None else table.first()
    if row is None:
        return None
    stream = str(row["stream"])
    batches = runs.micro_batches(spark, place_of(config).runs, stream)
    return Begun(stream, StreamBinding.read(row["bound"]), batches)


def _binding(config: RunConfig) -> Target:
    return Target(path=f"{config.checkpoint}/{OWN}")


def begin(plan: RunPlan, begun: Begun | None) -> str:
    """Bind a new checkpoint, or compare an old one; return the run id of its stream.

    Raises:
        SettingsError: another key, model, configuration or source; a checkpoint of something else; or none where the target
            holds a release already.
    """
    config, checkpoint = plan.config, str(plan.config.checkpoint)
    named = config.run.id
    if named is not None and len(named) > LONGEST:
        raise SettingsError(
            f"run.id: {len(named)} characters given; valid with mode {config.mode}: {LONGEST} or fewer."
        )
    if begun is not None:
        return _compared(plan, begun)
    if holds_files(plan.spark, checkpoint, besides=f"/{checkpoint.rstrip('/').rpartition('/')[2]}/{OWN}/"):
        raise SettingsError(
            f"stream.checkpoint: {checkpoint!r} is the checkpoint of something else, or holds other files; valid: a new folder, "
            "or the checkpoint of this stream."
        )
    _check_not_released(plan, checkpoint)
    if named is not None and runs.find(plan.spark, plan.place.runs, named) is not None:
        raise SettingsError(
            f"run.id: {named!r} is in the table of runs, and {checkpoint!r} is no checkpoint of it; valid: another run id, or "
            "its checkpoint."
        )
    put_binding(plan)
    return plan.run_id


def put_binding(plan: RunPlan) -> None:
    """Write the table that binds a new checkpoint to its stream."""
    bound = StreamBinding.of_plan(plan, plan.run_id).text
    frame = frame_of(plan.spark, [(plan.run_id, bound)], BINDING)
    frame.write.format("delta").mode("error").save(_binding(plan.config).path)


def _compared(plan: RunPlan, begun: Begun) -> str:
    stream, before, checkpoint = begun.stream, begun.bound, plan.config.checkpoint
    if plan.config.run.id not in (None, stream):
        raise SettingsError(
            f"run.id: {plan.config.run.id!r} given, but {checkpoint!r} is the checkpoint of {stream!r}; valid: that, or null."
        )
    now = StreamBinding.read(StreamBinding.of_plan(plan, stream).text)
    settings = differences(before.settings.values, now.settings.values)
    other = other_engine(before.engine) if before.engine != ENGINE_VERSION else ""
    if not other and "lexicon.version" in settings:
        other = version_of_lexicon(settings["lexicon.version"])
    if other:
        raise SettingsError(
            f"stream.checkpoint: {checkpoint!r} is of a stream with another {other}. Valid: go on with the version of the "
            "package that began it, or a new checkpoint and a new target."
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
            f"stream.checkpoint: {checkpoint!r} is of a stream with another {', another '.join(differ)}; valid: the key, "
            "settings and source that it began with, or a new checkpoint and a new target."
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
        f"stream.checkpoint: there is none in {checkpoint!r}, but {str(plan.place.target)!r} holds a release: the whole source "
        f"would be released again. Valid: the checkpoint of that stream, stream.starting_version, "
        "stream.duplicates=drop (rows that the target holds are left out), or stream.duplicates=accept (a second release of "
        "each row)."
    )


def part_of_source(spark: SparkSession, checkpoint: str, number: int) -> str:
    """Name the part of the source that a micro-batch is: `delta:FROM..TO`, places in the source's log.

    A place is a version, all files before it included; `5[2]` is past file 2 of version 5, and `*` stands behind a place in
    the snapshot that the stream began with.

    Raises:
        RunError: the checkpoint does not say.
    """
    places = {}
    for one in (number - 1, number):
        if one < 0:
            continue
        try:
            lines = spark.read.text(escaped(f"{checkpoint}/offsets/{one}")).where(
                F.col("value").contains("reservoirVersion")
            )
            found = [json.loads(row["value"]) for row in lines.collect()]
        except (PySparkException, ValueError):
            found = []
        if len(found) != 1:
            raise RunError(f"stream.checkpoint: {checkpoint!r} does not say what micro-batch {one} read.")
        places[one] = _said(found[0])
    return f"delta:{places.get(number - 1, '')}..{places[number]}"


def _said(offset: Mapping[str, int | str | bool]) -> str:
    index = int(offset.get("index", -1))
    within = f"[{index}]" if index >= 0 else ""
    return f"{offset['reservoirVersion']}{within}{'*' if offset.get('isStartingVersion') else ''}"
