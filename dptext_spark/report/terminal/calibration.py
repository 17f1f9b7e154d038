"""A search for ε as a person reads it: the curve with a bar for each ε, and what was found."""

from __future__ import annotations

import math

from dptext_spark.audit.deniability.calibrate import Calibration, Guessing, Point
from dptext_spark.audit.deniability.find_epsilon import FoundEpsilon
from dptext_spark.report.terminal.console import grid, hanging
from dptext_spark.rounding import exact, percent_up, round_conservatively

BAR = 24  # characters


def calibration_text(found: FoundEpsilon, columns: int) -> str:
    """Return the curve as a table, the ε that was found, at which words, and how sure that is."""
    result = found.calibration
    head = ["ε", *(str(one) for one in result.requirements), "", ""]
    curve = grid([head, *(_row(result, point) for point in result.points)])
    return "\n".join([curve, "", *(hanging("", sentence, columns) for sentence in _sentences(found))])


def _row(result: Calibration, point: Point) -> list[str]:
    if point.refused is not None:
        return [exact(point.epsilon), *("-" for _ in result.requirements), "refused", ""]
    cells = []
    for one, finding in zip(result.requirements, point.findings, strict=True):
        value = round_conservatively(finding.value, 4, up=one.caps)
        bound = round_conservatively(finding.judged, 4, up=one.caps)
        cells.append(value if finding.exact else f"{value} ({'<=' if one.caps else '>='} {bound})")
    verdict = "found" if point.epsilon == result.epsilon else "holds" if point.holds else "fails"
    return [exact(point.epsilon), *cells, verdict, _bar(result, point)]


def _bar(result: Calibration, point: Point) -> str:
    """Return a bar for the first requirement: up to its largest value, on a logarithmic scale for counts."""
    values = [one.findings[0].value for one in result.points if one.findings]
    scale = math.log1p if max(values) > 1.0 else float
    most = scale(max(values))
    return "█" * (round(BAR * scale(point.findings[0].value) / most) if most > 0 else 0)


def _sentences(found: FoundEpsilon) -> list[str]:
    result = found.calibration
    assert result.epsilon is not None
    assert result.holds_from is not None
    standing = []
    for one, finding in zip(result.requirements, result.at(result.epsilon).findings, strict=True):
        at = "" if finding.word is None else f", the word {found.word(finding.word)!r}"
        standing.append(f"{one} (there {round_conservatively(finding.judged, 4, up=one.caps)}{at})")
    sentences = [f"ε = {exact(result.epsilon)} is the largest found that satisfies {' and '.join(standing)}."]
    if result.open_end:
        sentences.append("It is the end of the range: a larger ε may satisfy it too (--high).")
    if result.holds_from > result.points[0].epsilon:
        sentences.append(f"It holds from ε = {exact(result.holds_from)} on, not below.")
    for one, one_way in zip(result.requirements, result.monotone, strict=True):
        if not one_way:
            sentences.append(
                f"{one.subject} does not move one way only as ε grows: between the ε that were looked at it may fail, and "
                "no finer search was made."
            )
    mechanism = found.settings.get("mechanism")
    if isinstance(mechanism, dict) and "remap" in mechanism:  # recorded where it is used
        sentences.append(
            "These are figures of what is released, after the remap. N_w may rise by it though nobody learns more: require "
            "`bayes token` in its place."
        )
    if result.guessing is not None:
        sentences.append(_guessing(result.guessing))
    names = result.at(result.epsilon).names
    if names is not None:
        sentences.append(
            f"Of the lexicon's words that public lists hold as names, {percent_up(names)} are guessed there."
        )
    if not result.words:
        return sentences
    some = f"{result.words:,} of {result.total:,} words"
    of = some if result.words < result.total else f"all {result.total:,} words"
    if result.draws is None:
        sentences.append(f"Exact, over {of} of the lexicon; every one counts as drawn.")
    else:
        sentences.append(
            f"Estimated from {result.draws:,} draws of each of {of} ({result.chosen}); limits are compared with bounds that hold "
            f"for all of them at a confidence of {result.confidence:g} at each ε. A word that was not looked at may do worse."
        )
    return sentences


def _guessing(found: Guessing) -> str:
    """Say over which words `bayes` is, and how sure."""
    said = f"bayes: over the {found.words:,} words that the policy draws, as frequent as the prior has it: {found.prior}; "
    if found.exact:
        return f"{said}exact."
    said += f"{found.how}. Limits are compared with the bound on the cautious side"
    sure = "" if found.how.startswith("read") else f", at a confidence of {found.confidence:g} at each ε"
    return f"{said}{sure}."
