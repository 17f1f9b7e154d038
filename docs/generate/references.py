"""The reference pages: settings, command line, tables, metrics, exit codes and the public names, as the code has them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields, is_dataclass
from datetime import date
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer.main

import dptext_spark as dp
from dptext_spark import audit, errors
from dptext_spark import spark as dps
from dptext_spark.audit.table_audit import MEANING
from dptext_spark.cli.app import EXIT_CODES, INTERRUPTED, app
from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.config.sections import STYLES, Approval, Secret, Section
from dptext_spark.importance.budget import Budget
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.report.mechanism_screens import catalogue
from dptext_spark.text.names.search import ListSources, NameSearch
from dptext_spark.text.policy import Identifiers, Policy

CONF = Path(__file__).resolve().parents[2] / "conf"
LEAST = {
    "input": {"path": "/data/tickets"},
    "columns": ["body"],
    "row_key": "id",
    "output": {"path": "/data/tickets_sanitized"},
}
DOORS: dict[str, ModuleType] = {"dp": dp, "dp.errors": errors, "dps": dps, "audit": audit}
WORDS = {str: "text", int: "whole number", float: "number", date: "date", dict: "section", tuple: "list"}


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    head = list(headings)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def plain(text: str) -> str:
    """Return a sentence as a cell of a table may hold it; code in double back-ticks becomes code in single ones."""
    return text.replace("``", "`").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


# Settings


def commented() -> dict[str, str]:
    """Return what conf/reference.yaml says of each setting and section, by its path."""
    said: dict[str, str] = {}
    path: list[str] = []
    for line in (CONF / "reference.yaml").read_text(encoding="utf-8").splitlines():
        named = re.match(r"^( *)(?:# )?(\w+):\s*[^#]*?\s*(?:# (.*))?$", line)
        more = re.match(r"^ +# (.*)$", line)
        if named:
            path = [*path[: len(named[1]) // 2], named[2]]
            said[".".join(path)] = named[3] or ""
        elif more and path:
            said[".".join(path)] += f" {more[1]}"
    return said


def kind_of(annotation: Any) -> str:
    """Return what a setting may be, in words and choices."""
    origin = get_origin(annotation)
    if origin is Literal:
        return ", ".join(f"`{one}`" for one in get_args(annotation))
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(kind_of(one) for one in get_args(annotation)))
    if hasattr(annotation, "__metadata__"):
        return kind_of(get_args(annotation)[0])
    if annotation is type(None):
        return "`null`"
    if annotation is bool:
        return "`true`, `false`"
    kind = origin or annotation
    if isinstance(kind, type) and (issubclass(kind, Section) or is_dataclass(kind)):
        return "section"
    return WORDS.get(kind, "section")


def kinds(section: type, prefix: str = "") -> dict[str, str]:
    """Return what each setting of a section may be, by its path."""
    found: dict[str, str] = {}
    for name, hint in get_type_hints(section).items():
        if name in ("model_config", "__class_vars__") or name.startswith("_"):
            continue
        kind = hint if isinstance(hint, type) else None
        if kind is not None and (
            issubclass(kind, Section) or (is_dataclass(kind) and name in ("identifiers", "names"))
        ):
            found |= kinds(kind, f"{prefix}{name}.")
        else:
            found[prefix + name] = kind_of(hint)
    return found


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return every setting with its value by its path."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        inner = isinstance(value, dict) and value
        found |= flat(value, f"{prefix}{name}.") if inner else {prefix + name: value}
    return found


def defaults() -> dict[str, Any]:
    """Return the default of every setting by its path; those that leave no trace where they are not used are at the end."""
    search = {name: value for name, value in asdict(NameSearch()).items() if name != "version"}
    lists = {"policy.mask": [], "policy.keep": [], "policy.allow_unknown": False}
    lists |= {
        "policy.providers": [],
        "policy.identifiers.languages": list(Identifiers().languages),
    }
    approval = {f"approval.{name}": value for name, value in Approval().model_dump().items()}
    untraced = {
        "style": STYLES[0],
        "require": [],
        **approval,
        "lexicon.prior": None,
        "lexicon.exclude": None,
        **flat(search, "policy.names."),
        **lists,
    }
    return flat(parse_config(LEAST).as_dict()) | untraced


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f"`{value}`"
    if value is None or isinstance(value, bool):
        return f"`{str(value).lower().replace('none', 'null')}`"
    return f"`{value}`"


def settings() -> str:
    """Return every setting but the mechanism's: its default, what it may be, and what it does."""
    # The file of all settings names the budget in a comment.
    said, given = commented(), defaults() | {"budget": None}
    may_be = kinds(RunConfig) | kinds(Policy, "policy.")
    may_be |= {f"policy.{name}": "list of sections" for name in ListSources.NAMES}
    may_be["policy.providers"] = "list of import paths"
    may_be["policy.allow_unknown"] = may_be.pop("allow_unknown")
    required = {"input.path", "columns", "row_key", "output.path"}
    groups: dict[str, list[str]] = {"": []}
    for path in given:
        section, dot, _ = path.partition(".")
        groups.setdefault(section if dot else "", []).append(path)
    parts = []
    for section, paths in groups.items():
        if section == "mechanism":
            continue
        parts.append(f"## {section}" if section else "## At the top")
        intro = said.get(section, "")
        parts += [plain(intro[0].upper() + intro[1:]) + "."] if intro else []
        rows = []
        for path in paths:
            default = "" if path in required else _value(given[path])
            about = said[path] or said.get(path.rpartition(".")[0], "")
            rows.append((f"`{path}`", default, may_be.get(path, "section"), plain(about)))
        parts.append(table(("setting", "default", "what it may be", "meaning"), rows))
        if section == "policy":
            parts += [
                _section_of_its_own(
                    "importance", "[Importance levels](../guide/importance.md)", Importance, Level
                ),
                _section_of_its_own("budget", "[ε of a record](../guide/epsilon.md)", Budget),
            ]
        if section == "key":
            parts.append(
                table(
                    ("setting", "what it may be"),
                    [(f"`key.secret.{n}`", k) for n, k in kinds(Secret).items()],
                )
            )
    return "\n\n".join(parts)


def _section_of_its_own(name: str, guide: str, *kinds_of_it: type) -> str:
    """Return the settings of a section that is `null` by default, which the file of all settings leaves out."""
    parts = [f"## {name}", f"A section in place of `null`; {guide} explains it."]
    for kind, prefix in zip(kinds_of_it, (f"{name}.", f"{name}.levels[]."), strict=False):
        about, may_be = _attributes(kind), kinds(kind)
        rows = [(f"`{prefix}{one.name}`", may_be[one.name], plain(about[one.name])) for one in fields(kind)]
        parts.append(table(("setting", "what it may be", "meaning"), rows))
    return "\n\n".join(parts)


def _attributes(kind: type) -> dict[str, str]:
    """Return what a docstring says of each attribute."""
    listed = (inspect.getdoc(kind) or "").split("Attributes:\n", 1)[1].split("\n\n", 1)[0]
    found = re.findall(r"^    (\w+): (.*?)(?=^    \w+:|\Z)", listed, flags=re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()).replace("None", "null") for name, text in found}


def mechanism_parameters() -> str:
    """Return every mechanism with its paper, guarantee, cost, certificate and parameters."""
    parts = []
    for one in catalogue():
        cost = one["cost"] + (f" (measured: {one['measured']})" if one["measured"] else "")
        rows = [
            (
                f"`{p['name']}`",
                "required" if p["required"] else _value(p["default"]),
                plain(p["valid"]),
                plain(p["meaning"]),
            )
            for p in one["parameters"]
        ]
        facts = [f"- Paper: {one['paper']}.", f"- Guarantee: {one['guarantee']}.", f"- Cost: {cost}."]
        facts.append(f"- Certificate: {one['certificate']}.")
        parts += [f"### {one['name']}", plain("\n".join(facts)).replace(" - ", "\n- ")]
        parts.append(table(("parameter", "default", "valid", "meaning"), rows))
    return "\n\n".join(parts)


def examples() -> str:
    """Return the commented files of conf/, whole."""
    parts = []
    for file in sorted(CONF.glob("*.yaml")):
        if file.stem != "reference":
            text = file.read_text(encoding="utf-8").strip()
            parts.append(f'## {file.name}\n\n```yaml title="conf/{file.name}"\n{text}\n```')
    return "\n\n".join(parts)


# The command line


def commands() -> list[tuple[str, Any]]:
    """Return (name, command) of every command that runs, such as ("lexicon info", ...)."""
    found = []
    for name, command in sorted(typer.main.get_command(app).commands.items()):  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        found += [(f"{name} {one}", inner[one]) for one in inner] if inner else [(name, command)]
    return found


def command_line() -> str:
    """Return every command with its arguments and options."""
    parts = []
    for name, command in commands():
        defaults = inspect.signature(command.callback).parameters
        arguments = [one for one in command.params if not one.opts[0].startswith("-")]
        usage = " ".join([f"dptext {name}", *(_argument(one) for one in arguments), "[OPTIONS]"])
        parts += [f"## dptext {name}", plain(command.help or ""), f"```text\n{usage}\n```"]
        rows = [
            (_names(one), _default(one, defaults[one.name].default), plain(one.help or ""))
            for one in command.params
        ]
        if rows:
            parts.append(table(("argument or option", "default", "what it does"), rows))
    return "\n\n".join(parts)


def _argument(argument: Any) -> str:
    shown = (argument.metavar or argument.name or "").upper() + ("..." if argument.nargs == -1 else "")
    return shown if argument.required else f"[{shown}]"


def _names(one: Any) -> str:
    if not one.opts[0].startswith("-"):
        return f"`{_argument(one)}`"
    takes = "" if getattr(one, "is_flag", False) else f" {one.metavar or one.name.upper()}"
    return ", ".join(f"`{name}{takes}`" for name in (*one.opts, *one.secondary_opts))


def _default(one: Any, default: Any) -> str:
    if one.required:
        return "required"
    if default in (None, (), [], False) or default is inspect.Parameter.empty:
        return ""
    return f"`{default}`"


def exit_codes() -> str:
    """Return every exit code, what it says, and the error that Python code meets in its place."""
    kinds_of = {one.exit_code: name for name, one in vars(errors).items() if _is_error(one)}
    rows = [
        (str(code), plain(said), f"`{kinds_of[code]}`" if code in kinds_of else "")
        for code, said in EXIT_CODES.items()
    ]
    rows.append((str(INTERRUPTED), "interrupted from the keyboard", "`KeyboardInterrupt`"))
    return table(("exit code", "meaning", "error"), rows)


def _is_error(one: Any) -> bool:
    return isinstance(one, type) and issubclass(one, errors.DPTextError) and one is not errors.DPTextError


# Tables and metrics


def tables() -> str:
    """Return the columns of every table that a run writes beside its target."""
    from dptext_spark.spark import schemas

    places = {
        "RUNS": ("runs", "`<target>_audit/shareable/runs`: one row a run."),
        "LEDGER": (
            "ledger",
            "`_dptext_ledger` near the input, or `ledger.path` or `ledger.table`: one row a run and text column, and one for "
            "each change of its status ([The ledger](../guide/ledger.md)).",
        ),
        "METRICS": (
            "metrics",
            "`<target>_audit/restricted/metrics`: figures that depend on the private text. For a small table they reveal who "
            "changed: do not share them. [Metrics](metrics.md) lists their names.",
        ),
    }
    parts = []
    for name, (heading, about) in places.items():
        rows = [
            (f"`{field.name}`", f"`{field.dataType.simpleString()}`", plain(field.metadata["comment"]))
            for field in getattr(schemas, name).fields
        ]
        parts += [f"## {heading}", plain(about), table(("column", "type", "what it holds"), rows)]
    return "\n\n".join(parts)


OF_WORDS = {
    "words": "words of the input",
    "drawn": "words that were drawn",
    "stop_kept": "stop words that stayed in clear",
    "oov": "words that the lexicon does not hold",
    "numbers": "numbers",
    "changed": "words that were replaced by another word",
    "same": "drawn words that are unchanged",
    "changed_share": "share of all words that were replaced by another word",
    "original_share": "share of the drawn words that are unchanged",
    "original_share_all": "share of all words that are unchanged, kept stop words included",
    "oov_share": "share of all words that the lexicon does not hold",
    "stop_share": "share of all words that are kept stop words",
    "not_chosen": "words that importance did not choose, in clear",
    "not_chosen_share": "their share of all words",
    "identifiers": "identifiers that were replaced; they do not count as words",
    "identifiers_provided": "those that a provider found",
    "names_masked": "words and phrases of a list that became `[NAME]`, and words of its names that became pseudonyms "
    "(`policy.mask`); missing where there are none",
    "names_kept": "those that stay in clear (`policy.keep`); missing where there are none. `names_kept` in `require` is another "
    "figure, `audit_names_kept` of an audit: the share of the words of names that are unchanged",
    "persons_found": "names of persons that public lists and rules, or a classifier, found (`policy.names`): whole names where "
    "they are masked, each word where pseudonyms take their place; missing where there are none",
    "locations_found": "towns, countries and states, likewise",
    "person_words": "words of names of persons that any search found; this and the next metrics are missing where there are none",
    "person_words_replaced": "those that were replaced",
    "person_words_kept": "those that are unchanged, by normal form: a pseudonym may be the name itself",
    "person_words_kept_share": "their share",
    "location_words": "words of names of places that were found, likewise",
    "location_words_replaced": "those that were replaced",
    "location_words_kept": "those that are unchanged",
    "location_words_kept_share": "their share",
    "listed_words": "words of entries of lists (`policy.mask`, `policy.keep`), likewise",
    "listed_words_replaced": "those that were replaced",
    "listed_words_kept": "those that are unchanged, as `policy.keep` asks",
    "listed_words_kept_share": "their share",
}
OF_A_RUN = {
    "unknown_rows": "rows with more than half of their words unknown, in all text columns: another language, or codes",
    "write_seconds": "wall time of the write",
    "tokens_per_second": "words over wall time of the write",
    "duplicates_dropped": "rows of a micro-batch that `stream.duplicates: drop` left out",
    "record_epsilon_mean": "ε of a record, by the number of its draws: the mean; NULL where it is no single figure",
    "record_epsilon_p50": "the median",
    "record_epsilon_p95": "the 95th percentile",
    "record_epsilon_max": "the largest",
    "record_bound_p50": "ε of a record of the median number of draws, by the least valid bound; missing where there is none",
    "record_bound_max": "of the largest number",
    "record_bound_delta": "the δ up to which that holds; 0 where the sum is the least",
    "consistency_scopes_sampled": "records, or rows, that the consistency audit looked at",
    "consistency_rows": "rows in those",
    "consistency_groups": "words that occur more than once in a scope",
    "consistency_broken_groups": "those of them with more than one replacement: 0, or the run is marked as failed",
    "consistency_broken_rows": "texts with words that do not match their source",
}


def metrics_of_a_run() -> str:
    """Return the metrics that a run writes, by column and for the whole."""
    from dptext_spark.spark.job.writing import shares
    from dptext_spark.text.engine import COUNTERS, OF_NAMES, OF_STAYED

    # One word that nothing counts is one that was not chosen; what is missing where there is none is there.
    names = shares(dict.fromkeys(COUNTERS, 0) | {"words": 1} | dict.fromkeys((*OF_NAMES, *OF_STAYED), 1))
    rows = []
    for name in names:
        about = OF_WORDS.get(name) or f"those of the type `{name.removeprefix('identifiers_')}`"
        rows.append((f"`{name}`", about))
    whole = [(f"`{name}`", plain(about)) for name, about in OF_A_RUN.items()]
    return "\n\n".join(
        [
            "### Of each text column, and of all",
            table(("metric", "meaning"), rows),
            "### Of the run",
            table(("metric", "meaning"), whole),
        ]
    )


def metrics_of_an_audit() -> str:
    """Return the metrics that `dptext audit` writes and compares."""
    return table(("metric", "meaning"), [(f"`{name}`", plain(text)) for name, text in MEANING.items()])


# The public names


def api() -> str:
    """Return a directive of mkdocstrings for each public name."""
    parts = []
    for short, module in DOORS.items():
        parts.append(f"## {module.__name__}")
        named = (f"{short}.{name}" for name in sorted(module.__all__, key=str.lower))
        parts += [_directive(name) for name in named if name not in ("dp.__version__", "dp.errors")]
    return "\n\n".join(parts)


def _directive(name: str) -> str:
    """Return the directive of a public name, such as `dp.Lexicon`, by the place where it is defined."""
    door, _, last = name.rpartition(".")
    value = getattr(DOORS[door], last)
    place = (
        f"{value.__module__}.{value.__qualname__}"
        if callable(value)
        else "dptext_spark.mechanisms.MECHANISMS"
    )
    return f"::: {place}\n    options:\n      heading: {name}\n      toc_label: {name}"
