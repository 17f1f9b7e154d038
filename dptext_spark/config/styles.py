"""The settings of a table by a style: protection comes from a file in conf/, input and output from the table.

The written file holds names of columns, and no other word of the data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path
from typing import Any

from dptext_spark.config.file import dumped
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.config.requirements import COUNTED
from dptext_spark.config.sections import STYLES as STYLES
from dptext_spark.errors import SettingsError, file_errors, require_choice
from dptext_spark.runtime.paths import folder_of

SAID = {
    "strict": "every word is drawn or masked, for tables that are shared outside the organisation",
    "balanced": "words that carry meaning are drawn among 30 like them, for people and programs that you know",
    "papers": "every word between spaces is drawn, as in the papers' experiments; not for real text",
}

# Requirements of each style with their reasons, by figures of the run and of an audit without options.
REQUIRED = {
    "strict": {
        "original_share <= 0.1": "words of the lexicon that stay as they were",
        "bayes_success <= 0.12": "drawn words that are guessed from what stands in their place",
        "context_success <= 0.2": "the same, with the words around them; 0.08 of film reviews",
        "names_kept <= 0.02": "words of names, by public lists, that stay as they were",
    },
    "balanced": {
        "original_share <= 0.4": "words of the lexicon that stay as they were, stop words aside",
        "bayes_success <= 0.35": "drawn words that are guessed from what stands in their place",
        "context_success <= 0.7": "the same, with the words around them; 0.33 of film reviews, 0.64 of forms and their answers",
        "names_kept <= 0.02": "words of names, by public lists, that stay as they were",
    },
    "papers": {
        "original_share <= 0.15": "words of the lexicon that stay as they were",
        "bayes_success <= 0.4": "drawn words that are guessed from what stands in their place",
    },
}


@dataclass(frozen=True)
class TableSettings:
    """Facts of a table for the settings of its run.

    Attributes:
        path: of the table.
        format: as `input.format`.
        columns: paths of the texts, in their one spelling.
        row_key: the row key of the run; None for none.
        row_keys: candidates, named in a comment if the run takes none.
        record_keys: candidates, named in a comment only.
        others: further columns, named in a comment: they are not released.
        attributes: further columns with few values, named in a comment.
        options: as `input.options`.
        is_name: whether `path` is a name in the catalog.
        is_foreign: whether its words are mostly unknown. Then lists of English names would find other words.
        has_names: whether these lists find names in the sample, so that an audit has some to count.
    """

    path: str
    format: str
    columns: tuple[str, ...]
    row_key: str | None = None
    row_keys: tuple[str, ...] = ()
    record_keys: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()
    options: Mapping[str, str | bool] = field(default_factory=dict)
    is_name: bool = False
    is_foreign: bool = False
    has_names: bool = True

    @property
    def target(self) -> str:
        """Place of the sanitized table: next to the table."""
        if self.is_name:
            return f"{self.path[:-1]}_sanitized`" if self.path.endswith("`") else f"{self.path}_sanitized"
        folder, slash, name = self.path.rstrip("/").rpartition("/")  # as text: a scheme has two slashes
        stem = name.split(".")[0] or name
        others = (other.name for other in Path(folder).glob(f"{escape(stem)}*") if Path(self.path).exists())
        if any(
            other != name and other.split(".")[0] == stem and not other.endswith(".yaml") for other in others
        ):
            stem = name.replace(".", "_")  # the target of the other one would have the same name
        return f"{folder}{slash}{stem}_sanitized"

    def settings(self, style: str) -> dict[str, Any]:
        """Return the settings by a style.

        Raises:
            SettingsError: an unknown style.
            DataError: conf/ is not installed with the package.
        """
        require_choice("style", style, STYLES)
        place = "table" if self.is_name else "path"
        settings: dict[str, Any] = {"input": {place: self.path}}
        if not self.is_name:
            settings["input"]["format"] = self.format
        if self.options:
            settings["input"]["options"] = dict(self.options)
        settings["columns"] = list(self.columns)
        settings["row_key"] = {"none": "accept"} if self.row_key is None else self.row_key
        settings["style"] = style
        if self.is_foreign:
            settings["policy"] = {"names": "none"}
        return {**settings, "output": {place: self.target}, "require": list(self.required(style))}

    def required(self, style: str) -> dict[str, str]:
        """Return the requirements of the table in a style, with their reasons.

        Names have no requirement if none are looked for or found. Without a row key, only counts of the run have one.
        """
        return {
            text: why
            for text, why in REQUIRED[style].items()
            if ("names" not in text or (self.has_names and not self.is_foreign))
            and (self.row_key is not None or text.split()[0] in COUNTED)
        }


def settings_file(table: TableSettings, style: str) -> tuple[str, RunConfig]:
    """Return a commented YAML file for a table, and the settings that it holds.

    Raises:
        SettingsError: an unknown style, or names that are invalid in settings.
        DataError: conf/ is not installed with the package.
    """
    settings = table.settings(style)
    config = parse_config(settings)
    comments = {
        "input": "What is read.",
        "columns": "Columns whose text is replaced. Look whether one is missing: the others are not looked at.",
        "row_key": "Unique and never NULL in a sample only: the run checks all rows. It is released in clear.",
        "style": f"{style.capitalize()}: {SAID[style]}.\n"
        f"# conf/{style}.yaml has the mechanism, policy and consistency that it consists of; what you name takes their place.",
        "policy": "Names are not looked for: the lists are made for English; policy.mask takes lists of any language.",
        "output": "What is written: the texts and the row key. Another column goes along in clear where other_columns names it.",
        "require": "What must hold, or `dptext release` ends with 7. Each answer tells one bit of the private text.",
    }
    if table.row_key is None:
        sampled = "Unique in the sample:" if table.row_keys else "None is unique in the sample."
        comments["row_key"] = (
            "No key: the place in the files tells rows apart, and no audit can join the written table to its source later.\n"
            "# By `none: accept` you accept that. A unique column that is named here lets it, and is released. "
            + "\n".join(
                [sampled, *(f"# {line}" for key in table.row_keys for line in _dumped({"row_key": key}))]
            )
        )
    lines = [
        f"# Settings for one table in the style {style!r}. They hold names of its columns, and no other word of it.",
        "# Every other setting has a default: docs/reference/settings lists them, docs/guide/settings says which to take.",
        "",
    ]
    for name, value in settings.items():
        if name == "require":
            limits = table.required(style)
            lines += [
                f"# {comments[name]}",
                "require:",
                *(f"  - {limit}  # {limits[limit]}" for limit in value),
            ]
            continue
        lines += [f"# {comments[name]}", *_dumped({name: value})]
        if name == "row_key" and table.record_keys:
            lines.append(
                "# Rows that share one of these may be of one person or thing; as a record their draws are added up:"
            )
            lines += [f"# {line}" for key in table.record_keys for line in _dumped({"record_key": key})]
        if name == "output" and table.others:
            lines.append(
                "# Not released, for some may tell who is meant; add to other_columns what may be seen by all:"
            )
            lines += [f"# {line}" for line in _dumped(list(table.others))]
        if name == "output" and table.attributes and table.row_key is not None:
            lines.append(
                "# Has few values. `dptext audit FILE --attribute COLUMN` measures whether the released text gives it away:"
            )
            lines += [f"# {line}" for line in _dumped(list(table.attributes))]
    return "\n".join(lines) + "\n", config


def _dumped(value: Mapping[str, Any] | Sequence[str]) -> list[str]:
    """Write a value as YAML, long lines as they are: a comment may hold each."""
    plain = dict(value) if isinstance(value, Mapping) else list(value)
    return dumped(plain, 10_000).splitlines()


def file_for(table: str) -> str:
    """Return the name of a table's settings file: the table's own, or the last part of a catalog name."""
    place = Path(table)
    is_path = place.exists() or "/" in table
    name = place.resolve().name.split(".")[0] if is_path else table.split(".")[-1].strip("`")
    return f"{name.replace('/', '_') or 'table'}.yaml"


def refuse_existing(file: Path) -> None:
    """Refuse a file that is there, or whose folder is not, before anything is read.

    Raises:
        SettingsError: so.
    """
    if file.exists() or file.is_symlink():
        raise SettingsError(
            f"--to: {str(file)!r} exists, and dptext overwrites no file. Choose another name."
        )
    if not file.parent.is_dir():
        raise SettingsError(
            f"--to: the folder {str(file.parent)!r} does not exist. Choose an existing folder."
        )


def write_new(file: Path, text: str) -> None:
    """Write a file that is not there yet.

    Raises:
        SettingsError: it is there, or cannot be written.
    """
    refuse_existing(file)
    with file_errors("--to", file, "written", SettingsError), file.open("x", encoding="utf-8") as out:
        out.write(text)


def file_of_style(given: Path) -> Path:
    """Find the settings file of a path. A style's name means its file in conf/, unless a file has that name.

    Raises:
        DataError: conf/ is not installed with the package.
    """
    if str(given) not in STYLES or given.exists():
        return given
    return folder_of("conf") / f"{given}.yaml"
