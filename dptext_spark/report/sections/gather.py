"""The facts that a report is written from: the account of a run, and what its model says when it is examined.

Figures of the model alone (certificate, deniability, attacks with a public prior) are computed here, from the artifact: they
depend on no private text. What cannot be had is left out, with a sentence that says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dptext_spark._version import __version__
from dptext_spark.disclosure.statement import Statement
from dptext_spark.model.certificate import certify
from dptext_spark.report.results import is_attack
from dptext_spark.report.sections.model_attacks import attacks_on
from dptext_spark.report.sections.model_figures import Deniability, Model, deniability_of
from dptext_spark.report.sections.published import Published, published_section
from dptext_spark.runtime.progress import Progress, silent

_NO_UTILITY = (
    "What the text is still good for depends on the text and on its use, and was not measured in this run; results of audits "
    "can be added by --figures."
)
_JSON = ("config", "guarantee", "certificate", "disclosure", "cumulative", "versions")


def run_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `runs` with its JSON read and its time as text."""
    found = {name: json.loads(row[name]) if name in _JSON and row[name] else row[name] for name in row}
    return {
        **found,
        "versions": found["versions"] or {},
        "started_at": f"{row['started_at']:%Y-%m-%d %H:%M} UTC",
    }


def gathered(
    row: Mapping[str, Any],
    *,
    model: Model | None,
    missing: str = "",
    metrics: Sequence[tuple[str | None, str, float | None]] | None = None,
    published: Sequence[Published] = (),
    examples: Sequence[Mapping[str, str]] = (),
    results: Sequence[Mapping[str, Any]] = (),
    public: Sequence[str] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Gather the facts.

    Args:
        row: of `runs`.
        model: of the run; None where it cannot be had.
        missing: why it cannot be had.
        metrics: (column, metric, value) of the run, for a report that is not for sharing.
        published: figures that were published with noise.
        examples: `column`, `before`, `after` each, for a report that holds private text.
        results: of other audits, as :func:`dptext_spark.report.results.read_results` returns them.
        public: lines of a public text, for the attacks that need one.
        progress: progress callback, called with each step.

    Returns:
        JSON-able: `run`, `statement`, `certificate`, `worst_pair`, `deniability`, `attacks`, `utility`, `metrics`,
        `metrics_by_column`, `published`, `examples`, `internal`, `model_missing`, `version`, and why what is missing is.
    """
    say = progress or silent
    run = run_of(row)
    found = certificate = run["certificate"]
    pair: list[str] | None = None
    if model is not None:
        if found is None:
            certificate = certify(
                model.privatizer, progress=lambda done, whole: say("certifying", done / whole)
            ).as_dict()
        worst = (certificate.get("loss") or {}).get("worst")
        words = model.privatizer.vocabulary.strings()
        pair = None if worst is None else [words[int(word)].as_py() for word in worst]
    whole = None if metrics is None else {name: value for column, name, value in metrics if column is None}
    attacks, unattacked = ([], missing) if model is None else attacks_on(model.privatizer, public, say)
    given = [one for one in results if not one["restricted"] or metrics is not None]
    held = _held_back(len(results) - len(given))
    deniable = Deniability.missing(missing) if model is None else deniability_of(run, model, say)
    return {
        "version": __version__,
        "run": run,
        "internal": metrics is not None,
        "statement": _statement(run, whole, published).as_dict(),
        "certificate": certificate,
        "worst_pair": pair,
        "model_missing": missing,
        "deniability": deniable.as_dict(),
        "attacks": [*attacks, *(one for one in given if is_attack(one))],
        "attacks_missing": f"{unattacked} {held}".strip(),
        "utility": [one for one in given if not is_attack(one)],
        "utility_missing": f"{_NO_UTILITY} {held}".strip(),
        "metrics": whole,
        "metrics_by_column": _by_column(metrics or ()),
        "published": [one.as_dict() for one in published],
        "examples": [dict(one) for one in examples],
    }  # fmt: skip


def _held_back(count: int) -> str:
    return (
        f"Results that depend on the private text were left out (--internal shows them): {count}."
        if count
        else ""
    )


def _statement(
    run: Mapping[str, Any], metrics: Mapping[str, Any] | None, published: Sequence[Published]
) -> Statement:
    """Return the run's statement, with what was published since, and for --internal what ε came to."""
    statement = Statement.of(run["disclosure"] or {"sections": []})
    composed = {name: (metrics or {}).get(f"record_epsilon_{name}") for name in ("mean", "p95", "max")}
    known = {name: value for name, value in composed.items() if value is not None}
    if len(known) == len(composed):
        statement = statement.with_composed(known)
    return statement if not published else statement.extended(*published_section(published))


def _by_column(
    metrics: Sequence[tuple[str | None, str, float | None]],
) -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = {}
    for column, name, value in metrics:
        if column is not None:
            found.setdefault(column, {})[name] = value
    return found
