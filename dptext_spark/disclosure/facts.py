"""Facts and statements of a run, as values: its facts, and its row of the table `runs`.

Facts are those of a run, of a stream, or of a run that is only planned. A fact that one of these lacks is None. A row holds the
settings and their consequences as JSON; only this module reads that JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from dptext_spark.config.model import RunConfig, columns_along
from dptext_spark.disclosure.statement import Statement
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.budget import Budget
from dptext_spark.importance.levels import Importance
from dptext_spark.importance.selector import Selector
from dptext_spark.ledger.balance import Balance
from dptext_spark.mechanisms.base import Summary
from dptext_spark.model.certificate import NO_BOUND, Certificate
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import RecordAccount, RecordEpsilon
from dptext_spark.runtime.validation import Json
from dptext_spark.text.identifiers.provider import ProviderRecord
from dptext_spark.text.names.name_lists import SHOWN
from dptext_spark.text.names.search import ListSources
from dptext_spark.text.policy import Policy

Figures = Mapping[str, float | None]
Metrics = Mapping[str | None, Figures]  # of each text column, and of the whole run under None
# Facts that are written as they are.
_PLAIN = (
    "status", "run_id", "rows", "seconds", "write_seconds", "tokens_per_second", "text_bytes", "cores", "compiled_loops",
    "identity", "input", "input_version", "output", "output_version", "releases_in_history", "key_kind", "second_release",
)  # fmt: skip


@dataclass(frozen=True)
class MicroBatches:
    """Number of micro-batches that a stream has made.

    Attributes:
        mode: incremental or streaming.
        now: by this process.
        in_all: since the stream began; `rows` and `seconds` are theirs.
    """

    mode: str
    now: int
    in_all: int
    rows: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """The facts of a run, of a stream, or of a run that is only planned; None where one is not known.

    Attributes:
        guarantee: of a drawn word.
        mapping: public figures of the law.
        importance: what the provider of importance says of itself.
        key_kind: os, file, env, secret, given or insecure.
        identity: identifies rows: row_key, file_row or ordinal:N.
        other_columns: what else the output holds.
        releases_in_history: runs that the target's history holds.
        second_release: whether records of an unfinished run were released again.
        ledger: what was spent on the input so far.
        status: `planned`, or how the run ended.
        problems: what does not agree.
        rows: written; of a stream, by this process, as `seconds` is.
        write_seconds: None where an earlier process wrote.
        text_bytes: of the input.
        counted: when rows were counted: `while writing`, or `again` in a second pass; None where they were not.
        compiled_loops: how many loops had to be compiled.
        record_epsilon: ε of its records; of a stream only how it composes. Its figures depend on the private text.
        record: how the draws of a record compose, whatever their number.
        runs: path of the table `runs`; `metrics` that of the table `metrics`, which depends on the text.
        audited: what the consistency audit found, in a sentence; `passed` where it ran.
        classifier: the beginning of the digest of the classifier of names; None where there is none.
        providers: by import path, in the order of the settings.
        expected_change: the band of the share of drawn words that change, by the law alone: the middle 90 % of words as they are
            common in public. Without a law, the reason. None before a run has ended, and of a micro-batch.
        figures: the metrics of the whole run by name, which depend on the private text.
    """

    config: RunConfig
    guarantee: Guarantee
    mapping: Summary = field(default_factory=Summary)
    certificate: Certificate | None = None
    importance: str | None = None
    key_kind: str | None = None
    identity: str | None = None
    other_columns: tuple[str, ...] | None = None
    releases_in_history: int | None = None
    second_release: bool = False
    ledger: Balance | None = None
    disclosure: Statement | None = None
    status: str = "planned"
    run_id: str = ""
    problems: tuple[str, ...] = ()
    rows: int | None = None
    seconds: float | None = None
    write_seconds: float | None = None
    tokens_per_second: float | None = None
    text_bytes: int | None = None
    counted: Literal["while writing", "again"] | None = None
    cores: int | None = None
    compiled_loops: int | None = None
    batches: MicroBatches | None = None
    record_epsilon: RecordEpsilon | None = None
    record: RecordAccount | None = None
    input: str = ""
    input_version: str | None = None
    corrupt_records: int | None = None
    output: str = ""
    output_version: int | None = None
    runs: str = ""
    metrics: str = ""
    audited: str = ""
    passed: bool | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    classifier: str | None = None
    providers: tuple[ProviderRecord, ...] = ()
    expected_change: tuple[float, float] | str | None = None
    figures: Figures | None = None

    @classmethod
    def planned(
        cls,
        config: RunConfig,
        privatizer: Privatizer,
        certificate: Certificate | None = None,
        record: RecordAccount | None = None,
    ) -> RunFacts:
        """Return the facts known before a run; `record` is that of the privatizer, where it was looked at."""
        return cls(
            config=config,
            guarantee=privatizer.guarantee(of_rows=True),
            mapping=privatizer.sampler.summary,
            certificate=certificate,
            importance=privatizer.selector.provider.sentence
            if isinstance(privatizer.selector, Selector)
            else None,
            key_kind=config.key.kind,
            identity="row_key" if config.row_key else None,
            other_columns=config.other_columns,
            record=record,
            classifier=None if privatizer.classifier is None else privatizer.classifier.digest[:16],
            providers=tuple(provider.record for provider in privatizer.imported),
        )

    @property
    def consistency(self) -> str:
        """Token, record or dataset."""
        return self.config.consistency

    @property
    def policy(self) -> Policy:
        """The policy: words that are drawn, kept, masked."""
        return self.config.policy

    @property
    def selection(self) -> Importance | None:
        """The words that importance chooses; None where all are drawn."""
        return self.config.importance

    @property
    def budget(self) -> Budget | None:
        """The budget of each record; None where that is not bounded."""
        return self.config.budget

    @property
    def is_refuted(self) -> bool:
        """True if the guarantee is known not to hold."""
        verdict = None if self.certificate is None else self.certificate.verdict
        return "refuted" in (self.guarantee.status, verdict)

    @property
    def is_unbounded(self) -> bool:
        """True if the guarantee compares no two words, so that it bounds nothing."""
        return self.certificate is not None and self.certificate.verdict == NO_BOUND

    def as_dict(self, *, internal: bool = True) -> dict[str, Json]:
        """Return the facts, JSON-able, without the restricted ones unless `internal`."""
        of_a_run, epsilon = self.batches is None, self.record_epsilon
        audited = {"said": self.audited, **({"passed": self.passed} if of_a_run else {})}
        values = {
            **{name: getattr(self, name) for name in _PLAIN},
            "problems": list(self.problems),
            **({"counted": self.counted} if of_a_run else {}),
            **({} if self.batches is None else {"batches": asdict(self.batches)}),
            "guarantee": self.guarantee.as_dict(),
            "certificate": None if self.certificate is None else self.certificate.as_dict(),
            "consistency": self.consistency,
            "record_epsilon": None if epsilon is None else {"basis": epsilon.basis},
            "other_columns": None if self.other_columns is None else list(self.other_columns),
            "mapping": self.mapping.as_dict(),
            **({"corrupt_records": self.corrupt_records} if of_a_run else {}),
            "audit": {"runs": self.runs, "metrics": self.metrics},
            "consistency_audit": audited,
            "ledger": None if self.ledger is None else self.ledger.as_dict(),
            "versions": dict(self.versions),
            "disclosure": None if self.disclosure is None else self.disclosure.as_dict(),
        }
        if not internal:
            return values
        composed = asdict(epsilon) if epsilon is not None and of_a_run else None
        restricted = {} if self.figures is None else {**self.figures, "record_epsilon": composed}
        return {**values, "restricted": restricted}


@dataclass(frozen=True)
class ShownSettings:
    """The settings as a row of `runs` holds them: without secrets, and of any version of the package.

    `values`: as in that row, JSON-able.
    """

    values: dict[str, Any]

    @property
    def text(self) -> str:
        """The settings as a row holds them."""
        return json.dumps(self.values, sort_keys=True)

    @property
    def columns(self) -> tuple[str, ...]:
        """The text columns."""
        return tuple(self.values["columns"])

    @property
    def consistency(self) -> str:
        """Token, record or dataset."""
        return str(self.values["consistency"])

    @property
    def mechanism(self) -> str:
        """The name of the mechanism."""
        return str(self.values["mechanism"]["name"])

    @property
    def remap(self) -> str:
        """The remap of a draw: `none` to release the draw itself, or `bayes`."""
        return str(self.values["mechanism"].get("remap", "none"))

    @property
    def row_key(self) -> str | None:
        """The column that identifies a row; None where the place does."""
        return self.values.get("row_key")

    @property
    def record_key(self) -> str | None:
        """The column whose equal values are one record; None where each row is one."""
        return self.values.get("record_key")

    @property
    def other_columns(self) -> tuple[str, ...] | None:
        """The columns beside the texts that the output holds: the row key and named ones; None for all."""
        return columns_along(self.values["output"]["other_columns"], self.row_key)

    @property
    def releases_other_columns(self) -> bool:
        """True if the output holds other columns than texts."""
        return self.other_columns != ()

    @property
    def policy(self) -> Policy:
        """The policy: words that are drawn, kept, masked."""
        return Policy(**self.without_lists().values["policy"])

    @property
    def lists(self) -> dict[str, list[dict[str, Json]]]:
        """The lists of names that the run was given, with their sizes and keyed digests."""
        policy = self.values.get("policy") or {}
        return {name: policy[name] for name in ListSources.NAMES if name in policy}

    def without_lists(self) -> ShownSettings:
        """Return the facts as if no list of names had been given."""
        if not self.lists:
            return self
        policy = {
            name: value for name, value in self.values["policy"].items() if name not in ListSources.NAMES
        }
        return ShownSettings({**self.values, "policy": policy})

    def without_digests(self) -> ShownSettings:
        """Return the settings with the names of lists, but without the digests of their contents."""
        if not self.lists:
            return self
        named = {
            name: [{key: value for key, value in source.items() if key not in SHOWN} for source in some]
            for name, some in self.lists.items()
        }
        return ShownSettings({**self.values, "policy": {**self.values["policy"], **named}})

    @property
    def selection(self) -> Importance | None:
        """The words that importance chooses; None where all are drawn."""
        chosen = self.values.get("importance")
        return None if chosen is None else Importance.of(chosen)

    @property
    def budget(self) -> Budget | None:
        """The budget of each record; None where that is not bounded."""
        bounded = self.values.get("budget")
        return None if bounded is None else Budget.from_dict(bounded, "runs.config.budget")


@dataclass(frozen=True)
class RunRecord:
    """A row of the table `runs`: the values that bind a run, and, once it has ended, its results.

    Attributes are the table's columns; their JSON is read by the properties. `config` is compared by its text.
    """

    run_id: str
    status: str
    started_at: datetime
    config: str
    guarantee: str
    key_commitment: str
    key_kind: str
    artifact: str
    input: str
    input_version: str | None
    identity: str
    output: str
    certificate: str | None = None
    disclosure: str | None = None
    output_version: int | None = None
    second_release: bool = False
    cumulative: str | None = None
    rows: int | None = None
    seconds: float | None = None
    tokens_per_second: float | None = None
    versions: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> RunRecord:
        """Read a row; a column that it lacks is NULL."""
        known: dict[str, Any] = {column.name: row.get(column.name) for column in fields(cls)}
        return cls(**known)

    @cached_property
    def settings(self) -> ShownSettings:
        """The settings of the run."""
        return ShownSettings(json.loads(self.config))

    @cached_property
    def promised(self) -> Guarantee:
        """The guarantee of a drawn word."""
        return Guarantee.from_dict(json.loads(self.guarantee), "runs.guarantee")

    @cached_property
    def certified(self) -> Certificate | None:
        """The certificate of the guarantee."""
        return None if not self.certificate else Certificate.of(json.loads(self.certificate))

    @cached_property
    def statement(self) -> Statement:
        """The statement; empty where the run ended before its account was written."""
        return Statement.of(json.loads(self.disclosure)) if self.disclosure else Statement(())

    @cached_property
    def spent(self) -> Balance | None:
        """The spending of all releases of the input."""
        return (
            None if not self.cumulative else Balance.from_dict(json.loads(self.cumulative), "runs.cumulative")
        )

    @cached_property
    def made_by(self) -> dict[str, str]:
        """The versions that it worked with."""
        return dict(json.loads(self.versions or "{}"))

    @property
    def began(self) -> str:
        """When, to the minute."""
        return f"{self.started_at:%Y-%m-%d %H:%M} UTC"

    def ended(self, facts: RunFacts) -> RunRecord:
        """Return the row with what the run came to."""
        assert facts.disclosure is not None
        return replace(
            self,
            status=facts.status,
            output_version=facts.output_version,
            rows=facts.rows,
            seconds=facts.seconds,
            tokens_per_second=facts.tokens_per_second,
            disclosure=json.dumps(facts.disclosure.as_dict(), ensure_ascii=False),
        )

    def as_dict(self) -> dict[str, Json]:
        """Return the row by column, JSON-able: the time as text."""
        return {**asdict(self), "started_at": self.started_at.isoformat()}

    def opened(self) -> dict[str, Json]:
        """Return the row with its JSON read, for a report."""
        values = asdict(self)
        for name in ("config", "guarantee", "certificate", "disclosure", "cumulative", "versions"):
            values[name] = json.loads(values[name]) if values[name] else values[name]
        return {**values, "versions": values["versions"] or {}, "started_at": self.began}


@dataclass(frozen=True)
class UnchangedRun:
    """A run whose run id had committed before, so that nothing was done.

    Attributes:
        record: its row of `runs`.
        input_version_now: of the input, where that has gone on since.
        since: sentences on what is not as it was: another key, and commits of others to the target.
    """

    record: RunRecord
    input_version_now: str | None = None
    since: tuple[str, ...] = ()
    status: Literal["unchanged"] = "unchanged"

    @property
    def run_id(self) -> str:
        """The run id."""
        return self.record.run_id

    def as_dict(self, *, internal: bool = True) -> dict[str, Json]:  # noqa: ARG002  (nothing of it depends on the text)
        """Return the values, JSON-able."""
        named = {"status": self.status, "run_id": self.run_id, "input_version_now": self.input_version_now}
        return {**named, "since": list(self.since), "run": self.record.as_dict()}
