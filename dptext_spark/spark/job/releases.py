"""What a release is, for the ledger: which input and version it reads, and which draws it makes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

from pyspark.errors import PySparkException

from dptext_spark.config.locations import normal_path, normal_table
from dptext_spark.config.messages import briefly
from dptext_spark.config.model import RunConfig
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.composition import NOT_OF_THE_DISTANCE
from dptext_spark.ledger.entry import TABLE
from dptext_spark.mechanisms import Mechanism
from dptext_spark.model.artifact import Manifest
from dptext_spark.model.privatizer import ENGINE_VERSION
from dptext_spark.spark.job.checks import detail_of_input
from dptext_spark.spark.job.plan import RunPlan
from dptext_spark.spark.tables.tables import Target


@dataclass(frozen=True)
class Source:
    """The input of a run.

    Attributes:
        place: one spelling of where it is, by whatever name it was called; `table:` and a name where it has no place.
        table_id: identifier of a Delta table; None for other inputs.
        version: what was read; with the run id where the input has no version that tells whether it changed.
        spelled: the place as Spark calls it, which is part of what a file is called.
    """

    place: str
    table_id: str | None
    version: str
    spelled: str


def source_of(plan: RunPlan) -> Source:
    """Find what the input is: the same table by its path and by its name, at whatever time."""
    source, version = plan.config.input, plan.input_version
    found = plan.detail
    if found is None and (source.table or source.format == "delta"):
        found = detail_of_input(plan.spark, source)
    if found is not None:
        return Source(normal_path(found.location), found.id, version, found.location)
    files = plan.df.inputFiles()
    local = bool(files) and all(urlparse(name).scheme in ("", "file") for name in files)
    unsure = f"{version} ({plan.run_id})"
    if source.path:
        place = _whole(source.path, files[0] if files else "")
        return Source(normal_path(place), None, version if local else unsure, source.path)
    location = _location(plan, Target(name=str(source.table)))
    if location is None:  # a view: what it selects may change without a new version
        name = normal_table(str(source.table))
        return Source(f"{TABLE}{name}", None, unsure, name)
    return Source(normal_path(location), None, version if local else unsure, location)


def release_of(plan: RunPlan, source: Source, column: str, run_id: str) -> str:
    """Name the draws of a column: whatever may change one of them is in it (concepts/mechanisms, Draws), and nothing of the key.

    Args:
        plan: the run.
        source: its input.
        column: the text column; at record and dataset level a word has the same draw in every column, and where importance
            chooses words, which are drawn depends on all columns.
        run_id: that the draws of token level are for: of the run, or of the stream that the records are added to.
    """
    config, level = plan.config, plan.config.consistency
    parts: list[Any] = ["release", plan.privatizer.fingerprint, ENGINE_VERSION, level]
    if level == "token":
        parts += [run_id, column]
    if level != "dataset":
        parts.append(_identity(plan, source, record=level == "record"))
    if config.importance is not None or config.budget is not None:  # words are chosen in all of them together
        parts.append(["columns", *plan.columns])
    if source.table_id is None:  # options decide how files are read, so that the text may be another
        parts += [config.input.format, dict(sorted(config.input.options.items()))]
    return plan.key.commitment(json.dumps(parts, sort_keys=True))


def metric_of(guarantee: Guarantee, mechanism: Mechanism, made: Manifest) -> str:
    """Name a distance so that equal names are equal distances: by the lexicon and, but for the Euclidean, the mechanism."""
    made_from: list[Any] = [made.spec.get("lexicon_fingerprint", made.fingerprint)]
    if guarantee.metric != "euclidean":
        parameters = mechanism.as_dict(recorded=True).items()
        made_from.append({name: value for name, value in parameters if name not in NOT_OF_THE_DISTANCE})
    digest = hashlib.sha256(json.dumps(made_from, sort_keys=True).encode()).hexdigest()[:12]
    return f"{guarantee.metric}, space {digest}"


def shown_mechanism(config: RunConfig) -> str:
    """Return the mechanism of the settings, what chooses words and the engine as JSON; lists of words by length and digest."""
    shown = {
        name: briefly(value) if isinstance(value, list) else value
        for name, value in config.mechanism.as_dict(recorded=True).items()
    }
    if config.importance is not None:
        shown["importance"] = config.importance.as_dict()
    if config.budget is not None:
        shown["budget"] = config.budget.as_dict()
    shown["engine"] = ENGINE_VERSION
    return json.dumps(shown, ensure_ascii=False)


def _identity(plan: RunPlan, source: Source, *, record: bool) -> list[Any]:
    """Return what tells rows or records apart: another one gives the same words other draws."""
    config, kind = plan.config, plan.identity.kind
    if record and config.record_key:
        return ["record_key", config.record_key]
    if kind == "row_key":
        return ["row_key", config.row_key]
    if kind == "file_row":
        return [kind, source.spelled]
    return [kind, source.spelled, config.input.where]


def _whole(path: str, file: str) -> str:
    """Return a path up to its first wildcard, with the store that Spark found it in where it names none."""
    for wildcard in "*?[{":
        path = (
            path.split(wildcard)[0]
            if wildcard not in path
            else path[: path.index(wildcard)].rpartition("/")[0]
        )
    found = urlparse(file)
    if found.scheme not in ("", "file") and not urlparse(path).scheme:
        return f"{found.scheme}://{found.netloc}{path}"
    return path or "/"


def _location(plan: RunPlan, target: Target) -> str | None:
    """Return where a table of another format lies; None for a view."""
    try:
        row = plan.spark.sql(f"DESCRIBE DETAIL {target.sql}").select("location").first()
    except PySparkException:
        return None
    return None if row is None or not row[0] else str(row[0])
