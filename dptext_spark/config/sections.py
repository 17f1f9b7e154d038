"""The sections of the settings, each as strict about types and names as the next.

The run key, where it needs no Spark: from a file, or from an environment variable.

The ledger of an input: the one that the settings name, else the nearest one, else a new one beside the input.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from dptext_spark.config.condition import Condition, parse_condition
from dptext_spark.config.locations import absolute, has_scheme, normal_path
from dptext_spark.config.values import (
    MOST_COLUMNS,
    check_one_place,
    parse_day,
    parse_options,
    parse_sources,
    parse_table,
    problem,
    without_nul,
)
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import PACKAGED
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.validation import invalid, valid

STYLES = ("balanced", "strict", "papers")  # each a file of conf/; the first is the default
LONGEST_SAID = 300  # characters of purpose and people in a report
_UNREADABLE = (
    "key.deliver: executors needs a key that workers can read. Set key.file or key.env, or choose closure."
)
Name = Annotated[str, Field(min_length=1)]
Positive = Annotated[int, Field(ge=1)]
Place = Annotated[str, Field(min_length=1), AfterValidator(without_nul)]
Folder = Annotated[Place, AfterValidator(absolute)]  # a relative path becomes absolute
Table = Annotated[str, BeforeValidator(parse_table)]
Variable = Annotated[
    str,
    Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$"),
    valid("the name of an environment variable, never the key itself"),
]
RunId = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9._-]{1,128}$"),
    valid("1 to 128 letters, digits, dots, dashes and underscores"),
]
Fingerprint = Annotated[
    str,
    Field(pattern=r"^[0-9a-f]{64}(\+[0-9a-f]{64})?$"),
    valid(
        "64 hexadecimal digits, as `prepare` prints them, or with + and 64 more, which vouch for its machine code"
    ),
]
Partitions = Annotated[Literal["auto", "keep"] | Positive, valid("auto, keep, or an integer of 1 or more")]
Interval = Annotated[
    Annotated[str, Field(pattern=r"^[1-9][0-9]* (second|minute|hour|day)s?$")] | None,
    valid("null, or an interval such as 10 seconds, 1 minute, 2 hours"),
]
Limit = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | None, valid("null, or a finite number above 0")
]


def _that_differ(columns: tuple[str, ...]) -> tuple[str, ...]:
    if len({name.lower() for name in columns}) < len(columns):
        raise ValueError(columns)
    return columns


OtherColumns = Annotated[
    Literal["keep", "drop"] | Annotated[tuple[Name, ...], Field(strict=False), AfterValidator(_that_differ)],
    valid("keep, drop, or a list of columns that differ"),
]


class Section(BaseModel):
    """A part of the settings: frozen, no unknown names, no type but the right one."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)


class Input(Section):
    """Input of a run: a path or a catalog name."""

    path: Folder | None = None
    table: Table | None = None
    format: Literal["delta", "parquet", "csv", "tsv", "json", "text"] = "delta"
    # Both may hold private values: no representation shows them.
    options: Annotated[dict[str, str], BeforeValidator(parse_options), Field(repr=False)] = {}
    where: Annotated[Condition | None, BeforeValidator(parse_condition), Field(repr=False)] = None

    @model_validator(mode="after")
    def _one_place(self) -> Input:
        check_one_place("input", self.path, self.table)
        mode = next((name for name in self.options if name.lower() == "mode"), None)
        if mode is not None and self.format not in ("csv", "tsv", "json"):
            raise problem(
                f"input.options.{mode}: not valid with format {self.format}, because all its records fit. Choose csv, tsv "
                "or json, or remove it."
            )
        return self

    @property
    def by_name(self) -> dict[str, str]:
        """The options by their names in lower case: Spark tells no cases apart."""
        return {name.lower(): value for name, value in self.options.items()}

    @property
    def encoding(self) -> str | None:
        """The encoding that the options name; None where they name none."""
        return self.by_name.get("encoding", self.by_name.get("charset"))

    @property
    def separator(self) -> str | None:
        """The separator that the options name; None where they name none."""
        return self.by_name.get("sep", self.by_name.get("delimiter"))


class Embedding(Section):
    """Words and their vectors: the packaged lexicon, a saved folder, or a file of word vectors to read."""

    source: Place = PACKAGED
    format: Literal["auto", "glove", "word2vec", "word2vec-binary", "fasttext"] = "auto"
    limit: Annotated[int, Field(ge=2)] | None = None
    vocabulary: Place | None = None

    @model_validator(mode="after")
    def _only_for_files(self) -> Embedding:
        limits = [name for name in ("limit", "vocabulary") if getattr(self, name) is not None]
        if limits and (self.source == PACKAGED or Path(self.source).is_dir()):
            raise problem(
                f"lexicon: {limits[0]} limits a file while it is read, but source {self.source!r} is not a file. Set it to "
                "null."
            )
        return self


class PriorSource(Section):
    """A public text whose words and pairs of words are counted: UTF-8, a document a line."""

    corpus: Place


class LexiconSource(Embedding):
    """The words, and further embeddings if the mechanism takes several: only words that are in all are used."""

    # Public frequencies of words and pairs. null: packaged counts for the packaged lexicon, Zipf's law for any other.
    prior: PriorSource | None = None

    more: Annotated[tuple[Embedding, ...], BeforeValidator(parse_sources)] = ()
    # A UTF-8 file of words that are never drawn, one a line; for every lexicon.
    exclude: Place | None = None

    @property
    def is_packaged(self) -> bool:
        """True if at least one embedding is of the packaged lexicon."""
        return PACKAGED in (self.source, *(embedding.source for embedding in self.more))


class Output(Section):
    """Output of a run: always Delta, to a path or a catalog name."""

    path: Folder | None = None
    table: Table | None = None
    mode: Literal["error", "append", "overwrite"] = "error"
    other_columns: OtherColumns = "drop"  # the row key always goes along
    partition_by: Annotated[tuple[Name, ...], Field(strict=False, max_length=MOST_COLUMNS)] = ()

    @model_validator(mode="after")
    def _one_place(self) -> Output:
        check_one_place("output", self.path, self.table)
        return self


class Secret(Section):
    """A secret of the platform: its scope and its name there."""

    scope: Name
    name: Name


class Key(Section):
    """Source of the run key. Without one: 32 bytes from the operating system, for this run only."""

    file: Place | None = None
    # Its pattern is too short for a key, so nobody gives one by mistake.
    env: Variable | None = None
    secret: Secret | None = None
    # The key travels in the function's closure, or each worker reads the file or its own variable.
    deliver: Literal["closure", "executors"] = "closure"

    @model_validator(mode="after")
    def _one_source(self) -> Key:
        sources = [name for name in ("file", "env", "secret") if getattr(self, name) is not None]
        if len(sources) > 1:
            raise problem(f"key: {' and '.join(sources)} are set. Choose one of file, env and secret.")
        if self.deliver == "executors" and self.kind not in ("file", "env"):
            raise problem(_UNREADABLE)
        return self

    @property
    def kind(self) -> str:
        """Kind of the source: file, env, secret, or os."""
        return next((name for name in ("file", "env", "secret") if getattr(self, name) is not None), "os")


def read_key(key: Key) -> RunKey | None:
    """Read the key from a file or a variable that the settings name, and remove nothing; None if they name neither.

    Raises:
        SettingsError: the key cannot be read, is no key, or others may read the file.
    """
    if key.file is not None:
        return RunKey.from_file(key.file, key.deliver)
    if key.env is not None:
        return RunKey.from_env(key.env, key.deliver)
    return None


def refuse_given(key: Key, given: RunKey | None) -> None:
    """Refuse a key that a program hands in where each worker is to read its own.

    Raises:
        SettingsError: the settings ask for that.
    """
    if given is not None and key.deliver == "executors":
        raise SettingsError(_UNREADABLE)


def taken(key: Key) -> RunKey | None:
    """Return the key if it needs no Spark: from a file, or from a variable.

    A variable is removed from this process's environment, so that later child processes do not inherit it. If this runs before
    Spark starts, only the driver has the key. The variable stays where each worker reads its own: workers of a local Spark may
    start later and inherit the driver's environment.

    Raises:
        SettingsError: as :func:`read_key`.
    """
    run_key = read_key(key)
    if key.env is not None and key.deliver == "closure":
        drop_variable(key)
    return run_key


def drop_variable(key: Key) -> None:
    """Remove the variable that the settings name from this process's environment, if it is there."""
    if key.env is not None:
        os.environ.pop(key.env, None)


class Run(Section):
    """Options of the job itself."""

    id: RunId | None = None
    artifact: Place | None = None
    artifact_fingerprint: Fingerprint | None = None
    ship: Literal["artifact", "path", "broadcast"] = "artifact"
    udf: Literal["auto", "arrow", "pandas"] = "auto"
    partitions: Partitions = "auto"
    second_release: Literal["refuse", "accept"] = "refuse"

    @model_validator(mode="after")
    def _names_what_is_expected(self) -> Run:
        if self.artifact_fingerprint is not None and self.artifact is None:
            raise problem(
                "run.artifact_fingerprint: set without run.artifact. Name the model in run.artifact, or set the "
                "fingerprint to null."
            )
        return self

    @property
    def expected_seal(self) -> str | None:
        """The seal of the model that `artifact_fingerprint` names."""
        return None if self.artifact_fingerprint is None else self.artifact_fingerprint.partition("+")[0]

    @property
    def expected_code(self) -> str | None:
        """The digest of the machine code that `artifact_fingerprint` vouches for."""
        return (self.artifact_fingerprint or "").partition("+")[2] or None


class Audit(Section):
    """Places of the audit tables."""

    shareable: Folder | None = None
    restricted: Folder | None = None


def _of_one_line(value: str) -> str:
    if not value.strip() or len(value) > LONGEST_SAID or not value.isprintable():
        raise invalid(f"a text of at most {LONGEST_SAID} characters, on one line")
    return value


Said = Annotated[str, AfterValidator(_of_one_line)]
Day = Annotated[date | None, BeforeValidator(parse_day)]


class Approval(Section):
    """Approval of a release: purpose of the table, owner and end. It changes nothing in a run.

    It is no part of a model, of a run's binding settings or of the account: a report takes it from its own settings.
    """

    purpose: Said | None = None
    owner: Said | None = None
    expires: Day = None

    @model_validator(mode="after")
    def _is_in_force(self) -> Approval:
        today = datetime.now(timezone.utc).date()
        if self.expires is not None and self.expires < today:
            raise problem(
                f"approval.expires: {self.expires} is in the past: today is {today} (UTC), and the approval has expired. "
                "Choose a later day, or null."
            )
        return self


class Stream(Section):
    """Options of an incremental or streaming run: how it reads its source, and where it remembers its progress."""

    trigger: Interval = None
    checkpoint: Folder | None = None
    changes: Literal["refuse", "ignore"] = "refuse"
    duplicates: Literal["refuse", "drop", "accept"] = "refuse"
    max_files: Positive | None = None
    starting_version: Annotated[int, Field(ge=0)] | None = None


class Ledger(Section):
    """Place of the ledger that counts ε across runs, limit for one word of a column, and reason to pass it.

    The ledger keeps the limit of an input. It binds a run that names none; a run that names a lower one keeps to that.
    """

    path: Folder | None = None
    table: Table | None = None
    limit: Limit = None
    raise_limit: Name | None = None
    override: Name | None = None

    @property
    def place(self) -> str | None:
        """The folder or the catalog name that the settings give; None where the input's own ledger is meant."""
        return self.path or self.table

    @model_validator(mode="after")
    def _one_place(self) -> Ledger:
        if self.path is not None and self.table is not None:
            raise problem("ledger: path and table are both set. Choose one of them, or neither.")
        return self

    @model_validator(mode="after")
    def _raises_to_something(self) -> Ledger:
        if self.raise_limit is not None and self.limit is None:
            raise problem(
                "ledger.raise_limit: set without ledger.limit, so that there is no limit to raise. Set ledger.limit, or "
                "remove the reason."
            )
        return self


FOLDER = "_dptext_ledger"  # readers of tables skip names that begin with _
NAME = "dptext_ledger"
FIELDS = "ledger.path or ledger.table"
_PATTERN = re.compile(r"[*?\[{]")
_ROOT = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:(//[^/]*)?")


def ledger_place(
    source: Input, settings: Ledger, is_there: Callable[[str], bool], schema: Callable[[], str] = str
) -> str:
    """Return the ledger that counts the releases of an input: a folder, or a catalog name.

    Args:
        source: the input.
        settings: that may name a ledger.
        is_there: whether a folder is a Delta table.
        schema: of the session, where the input's name has none; empty where it is not known.
    """
    if settings.place is not None:
        return settings.place
    if source.table is not None:
        qualifier = source.table.rpartition(".")[0] or schema()
        return f"{qualifier}.{NAME}" if qualifier else NAME
    near = [f"{folder.rstrip('/')}/{FOLDER}" for folder in parents_of(str(source.path))]
    return next(filter(is_there, near), near[0])


def ledger_on_disk(source: Input, settings: Ledger) -> str:
    """Return the ledger by the folders on this machine's disks."""
    return ledger_place(source, settings, is_delta_here)


def is_delta_here(path: str) -> bool:
    """Check whether a folder of this machine is a Delta table."""
    return os.path.isdir(os.path.join(normal_path(path), "_delta_log"))


def is_table_name(place: str) -> bool:
    """Check whether a ledger is named by a catalog name: paths are absolute."""
    return not (place.startswith(("/", "~")) or has_scheme(place))


def parents_of(path: str) -> list[str]:
    """Return the folders above an input, the nearest first; of a pattern, those of the folder before its first sign."""
    here = not has_scheme(path) or path.startswith("file:")
    if here:
        path = normal_path(path)
    if _PATTERN.search(path) and not (here and os.path.lexists(path)):
        path = path[: _PATTERN.search(path).start()].rpartition("/")[0]  # type: ignore[union-attr]
    root = _ROOT.match(path)
    prefix = root[0] if root is not None else ""
    parts = [part for part in path[len(prefix) :].split("/") if part]
    return ["/".join([prefix, *parts[:number]]) or "/" for number in range(max(len(parts) - 1, 0), -1, -1)]
