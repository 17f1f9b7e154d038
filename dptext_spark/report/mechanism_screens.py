"""The screens of commands that choose a mechanism: the catalogue, and a search for ε with a bar for each ε."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from dptext_spark.audit.epsilon_search import Calibration, Guessing, Trial
from dptext_spark.audit.find_epsilon import FoundEpsilon
from dptext_spark.audit.find_setting import Combination, FoundSetting
from dptext_spark.mechanisms import MECHANISMS, mechanism_named
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.report.console import Screen
from dptext_spark.rounding import exact, percent_up, round_conservatively


def described(name: str) -> dict[str, Any]:
    """Return the description of a mechanism and its parameters, JSON-able.

    Raises:
        SettingsError: there is no such mechanism.
    """
    kind = mechanism_named("name", name)
    defaults = {field.name: field.default for field in fields(kind)}
    return {
        "name": name,
        "paper": kind.paper,
        "guarantee": kind.protects,
        "cost": kind.sampler.cost,
        "measured": kind.measured,  # an order of magnitude; None where no record has one
        "certificate": kind.certified_by or kind.sampler.certified_by,
        "parameters": [
            {"name": parameter, "default": default, "required": default is None and not declared.null}
            | declared.as_dict()
            for parameter, declared in parameters_of(kind).items()
            for default in [defaults[parameter]]
        ],
    }


def catalogue() -> list[dict[str, Any]]:
    """Return all mechanisms that are registered."""
    return [described(name) for name in MECHANISMS]


def rows(mechanism: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the description of a mechanism and its parameters, for a person."""
    measured = f" (measured: {mechanism['measured']})" if mechanism["measured"] else ""
    parameters = []
    for each in mechanism["parameters"]:
        default = "null" if each["default"] is None else each["default"]
        head = f"{each['name']} (required)" if each["required"] else f"{each['name']} = {default}"
        parameters.append((head, f"{each['meaning']} Valid: {each['valid']}."))
    return [
        ("paper", mechanism["paper"]),
        ("guarantee", mechanism["guarantee"]),
        ("cost", mechanism["cost"] + measured),
        ("certificate", mechanism["certificate"]),
        *parameters,
    ]


def overview() -> Screen:
    """Return the guarantee of each mechanism, and all of each on demand."""
    mechanisms = catalogue()
    return Screen(
        f"{len(mechanisms)} mechanisms, and what each guarantees",
        [(each["name"], each["guarantee"]) for each in mechanisms],
        next="dptext mechanisms NAME for one of them, dptext mechanisms --full for all",
        more=[(each["name"], rows(each)) for each in mechanisms],
    )


BAR = 24  # characters


def calibration(search: FoundEpsilon) -> Screen:
    """Return the ε that was found, at which words, how sure that is, and the curve as a table."""
    result = search.calibration
    assert result.epsilon is not None
    at = result.at(result.epsilon)
    rows = []
    for requirement, finding in zip(result.requirements, at.findings, strict=True):
        word = "" if finding.word is None else f", the word {search.word(finding.word)!r}"
        judged = round_conservatively(finding.judged, 4, up=requirement.caps)
        rows.append((str(requirement), f"{judged} there{word}"))
    if result.guessing is not None:
        rows.append(("bayes", _guessing(result.guessing)))
    if at.names is not None:
        names = percent_up(at.names)
        rows.append(("names", f"{names} of the lexicon's names (by public lists) are guessed at this ε"))
    if result.words:
        rows.append(("words", _words(result)))
    head = ("ε", *map(str, result.requirements), "verdict")
    return Screen(
        f"ε = {exact(result.epsilon)} is the largest found that satisfies {' and '.join(map(str, result.requirements))}.",
        rows,
        table=[head, *(_row(result, point) for point in result.points)],
        warnings=[*_warnings(search)],
    )


def settings_found(result: FoundSetting) -> Screen:
    """Return the settings that leave most of the text, and the others that meet the requirements."""
    best = result.met[0]
    rows = [
        ("texts", f"{result.rows:,} public ones as candidates, {result.queries:,} of them as targets"),
        ("judged", "by the upper end of the interval"),
        (
            "similarity",
            "mean cosine of a text and its output, minus that of the text and another text's output",
        ),
        ("ruled out", f"{len(result.broken)} settings, by their least ε" if result.broken else ""),
    ]
    head = ("ε", *map(str, best.limits), "similarity", "setting")
    return Screen(
        f"{len(result.met)} settings meet {' and '.join(map(str, best.limits))}; the first leaves most of the text.",
        rows,
        table=[head, *map(_setting, result.met)],
        warnings=["Time ended the search: a larger ε, or another setting, may do as well."] * result.is_cut,
        more=[("Ruled out at the least ε", [head, *map(_setting, result.broken)])] if result.broken else (),
    )


def _setting(combination: Combination) -> tuple[str, ...]:
    epsilon = min(combination.seen) if combination.epsilon is None else combination.epsilon
    point = combination.seen[epsilon]
    if point.refused is not None:
        return (exact(epsilon), *("-" for _ in combination.limits), "-", f"{combination}: refused")
    judged = [
        str(round_conservatively(finding.judged, 4, up=limit.caps))
        for limit, finding in zip(combination.limits, point.findings, strict=True)
    ]
    return (exact(epsilon), *judged, f"{combination.similarities[epsilon]:.3f}", str(combination))


def _row(result: Calibration, point: Trial) -> tuple[str, ...]:
    if point.refused is not None:
        return (exact(point.epsilon), *("-" for _ in result.requirements), "refused")
    cells = []
    for requirement, finding in zip(result.requirements, point.findings, strict=True):
        value = round_conservatively(finding.value, 4, up=requirement.caps)
        bound = round_conservatively(finding.judged, 4, up=requirement.caps)
        cells.append(value if finding.exact else f"{value} ({'<=' if requirement.caps else '>='} {bound})")
    verdict = "found" if point.epsilon == result.epsilon else "holds" if point.holds else "fails"
    return (exact(point.epsilon), *cells, f"{verdict}  {_bar(result, point)}")


def _bar(result: Calibration, point: Trial) -> str:
    """Return a bar for the first requirement: up to its largest value, on a logarithmic scale for counts."""
    values = [point.findings[0].value for point in result.points if point.findings]
    scale = math.log1p if max(values) > 1.0 else float
    most = scale(max(values))
    return "█" * (round(BAR * scale(point.findings[0].value) / most) if most > 0 else 0)


def _warnings(search: FoundEpsilon) -> Iterator[str]:
    """Warn where another ε may do as well, or an ε in between may not."""
    result = search.calibration
    if result.open_end:
        yield "The range ends at this ε. A larger ε may satisfy the requirements, too (`high` of `audit.calibrate`)."
    if result.holds_from is not None and result.holds_from > result.points[0].epsilon:
        yield f"The requirements hold from ε = {exact(result.holds_from)} on, not below."
    for requirement, moves_one_way in zip(result.requirements, result.monotone, strict=True):
        if not moves_one_way:
            yield (
                f"{requirement.subject} is not monotone in ε. It may fail between the tried ε, and there was no finer search."
            )
    mechanism = search.settings.get("mechanism")
    if isinstance(mechanism, dict) and "remap" in mechanism:  # recorded where it is used
        yield (
            "The figures are those of the released words, after the remap. The remap may raise N_w, though nobody learns more. "
            "Require `bayes token` instead."
        )


def _words(result: Calibration) -> str:
    """Name the words that figures are over, and their certainty."""
    some = f"{result.words:,} of {result.total:,} words"
    of = some if result.words < result.total else f"all {result.total:,} words"
    if result.draws is None:
        return f"exact, over {of} of the lexicon; every one counts as drawn"
    return (
        f"estimated from {result.draws:,} draws of each of {of} ({result.chosen}). Limits are compared with bounds for all of "
        f"these words, at a confidence of {result.confidence:g} at each ε. Other words may be worse"
    )


def _guessing(found: Guessing) -> str:
    """Name the words that `bayes` is over, and its certainty."""
    text = f"over the {found.words:,} words that the policy draws, with the frequencies of the prior ({found.prior}); "
    if found.exact:
        return f"{text}exact"
    sure = "" if found.how.startswith("read") else f", at a confidence of {found.confidence:g} at each ε"
    return f"{text}{found.how}. Limits are compared with the bound on the cautious side{sure}"
