"""The registered mechanisms as records: guarantee, cost, certificate, and parameters with defaults and ranges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, NamedTuple

from dptext_spark.errors import require_choice
from dptext_spark.mechanisms import MECHANISMS, Mechanism
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.mechanisms.samplers import ExponentialSampler, TableSampler
from dptext_spark.mechanisms.samplers.noise import NoiseSampler
from dptext_spark.mechanisms.samplers.noisy_selection import SelectionSampler
from dptext_spark.mechanisms.samplers.ordering import OrderingSampler
from dptext_spark.model.certificate import Verdict
from dptext_spark.report.terminal.console import hanging


class Search(NamedTuple):
    """How the loss is certified.

    Attributes:
        said: in words.
        best: the verdict on a claim that holds.
    """

    said: str
    best: Verdict


class Kernel(NamedTuple):
    """What the mechanisms of a kernel have in common: the cost of a token, and how the loss is certified."""

    cost: str
    search: Search


_DECIDES = "it confirms the claim or refutes it"
_REFUTES = "it can refute the claim and never confirms it: `not refuted` is the best verdict"
KERNELS: dict[type, Kernel] = {
    TableSampler: Kernel(
        "constant: a table look-up a token",
        Search(
            "exact: the integers that are sampled, compared output by output over all pairs of words that share an output set; "
            f"{_DECIDES}",
            "confirmed",
        ),
    ),
    OrderingSampler: Kernel(
        "constant: a table look-up a token",
        Search(
            "by a proved bound: every two neighbours in a list, compared output by output, bound all pairs; "
            + _DECIDES,
            "confirmed",
        ),
    ),
    ExponentialSampler: Kernel(
        "a few distances a token: a table look-up, and distances where the draw falls outside the nearest words",
        Search(
            "over all pairs of words that the guarantee covers, by the exact sum of each law, the rounding of the law stated; "
            f"{_DECIDES}",
            "confirmed",
        ),
    ),
    NoiseSampler: Kernel(
        "a search over the lexicon a token, or none where the noise cannot reach another word",
        Search(
            f"by draws of the words of near and distant pairs: a lower bound on the loss at a stated confidence; {_REFUTES}",
            "not refuted",
        ),
    ),
    SelectionSampler: Kernel(
        "constant: a noisy distance for each of the few dozen nearest words at most",
        Search(
            "by a lower bound in closed form, for every word and its nearest other one; it refutes the claim on real lexicons "
            "and never confirms it: `not refuted` is the best verdict",
            "not refuted",
        ),
    ),
}
_HALF_SPACES = "by draws on half-spaces between distant words: a lower bound on its δ at a stated confidence"
# Noise with a δ is searched in other ways than the rest of its kernel.
SEARCHES: dict[str, Search] = {
    "gaussian": Search(f"of the released word {_HALF_SPACES}; {_REFUTES}", "not refuted"),
    "truncated_laplace": Search(
        "of the noisy vector exactly: its δ over all pairs, the probability to leave the other word's support; of the released "
        f"word {_HALF_SPACES}; either can refute the claim, `calibration: verified` too, and neither confirms it: `not refuted` "
        "is the best verdict",
        "not refuted",
    ),
}
LEAST_TEXT = 40  # columns beside the parameters' names; with less, what is said of them stands below
# Orders of magnitude that stand in benchmarks/records; what is not measured there has none.
MEASURED = {"custext": "some 5 ns for the draw of some 50 ns a token, text to text, on one core"}


def catalogue() -> list[dict[str, Any]]:
    """Return one record for each mechanism.

    Returns:
        `name`, `paper`, `guarantee`, `cost` (a class, in words), `measured` (an order of magnitude; None where no record has
        one), `certificate` and `parameters`: a list of `name`, `default`, `required` and what
        :meth:`dptext_spark.mechanisms.parameters.Parameter.as_dict` says.
    """
    return [_record(name, kind) for name, kind in MECHANISMS.items()]


def described(name: str) -> dict[str, Any]:
    """Return the record of one mechanism.

    Raises:
        SettingsError: there is no such mechanism.
    """
    require_choice("name", name, MECHANISMS)
    return _record(name, MECHANISMS[name])


def search_of(kind: type[Mechanism]) -> Search:
    """Return how a mechanism's loss is certified."""
    return SEARCHES.get(kind.name, KERNELS[kind.sampler].search)


def _record(name: str, kind: type[Mechanism]) -> dict[str, Any]:
    kernel, declared = KERNELS[kind.sampler], parameters_of(kind)
    defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    return {
        "name": name,
        "paper": kind.paper,
        "guarantee": kind.protects,
        "cost": kernel.cost,
        "measured": MEASURED.get(name),
        "certificate": search_of(kind).said,
        "parameters": [
            {
                "name": one,
                "default": defaults[one],
                "required": defaults[one] is None and not parameter.null,
                **parameter.as_dict(),
            }
            for one, parameter in declared.items()
        ],
    }


def catalogue_text(records: Iterable[dict[str, Any]], columns: int) -> str:
    """Write records for a person, in lines of so many columns."""
    return "\n\n".join("\n".join(_lines(record, columns)) for record in records)


def _lines(record: dict[str, Any], columns: int) -> list[str]:
    measured = f" (measured: {record['measured']})" if record["measured"] else ""
    said = {name: record[name] for name in ("paper", "guarantee", "cost", "certificate")}
    said["cost"] += measured
    lines = [record["name"], *(hanging(f"  {name:<13}", text, columns) for name, text in said.items())]
    heads = [f"    {_head(parameter)}" for parameter in record["parameters"]]
    indent = max(map(len, heads)) + 2
    for head, parameter in zip(heads, record["parameters"], strict=True):
        text = f"{parameter['meaning']} Valid: {parameter['valid']}."
        if columns - indent >= LEAST_TEXT:
            lines.append(hanging(f"{head:<{indent}}", text, columns))
        else:
            lines += [head, hanging(" " * 8, text, columns)]
    return lines


def _head(parameter: dict[str, Any]) -> str:
    """Return `name = default` as YAML writes it."""
    if parameter["required"]:
        return f"{parameter['name']} (required)"
    default = parameter["default"]
    return f"{parameter['name']} = {'null' if default is None else default}"
