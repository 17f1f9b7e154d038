"""What is printed of an audit of a written table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dptext_spark.audit.table_audit import COUNTS, LABEL, MEANING, NAMED, KeptWords, TableAudit
from dptext_spark.cli.app import main
from dptext_spark.config.requirements import Metric, Requirement
from dptext_spark.report.console import LINES
from dptext_spark.report.summary import RISKS, USEFUL, table_audit
from tests.frozen.written import assert_as_frozen, beyond

FOUND = TableAudit(
    audit_id="r1", table="/data/out", version="delta:3", source="/data/in", source_version="delta:1", metrics="/m/metrics",
    figures=(
        Metric("rows", 12_345), Metric("original_share", 0.12341), Metric("original_share_all", 0.46801),
        Metric("bayes_success", 0.5, 0.45, 0.55),
        Metric("oov_kept_share", None), Metric("accuracy_private_private", 0.71239, 0.7, 0.75), Metric("label_rows", 1_200),
        Metric("attribute_adaptive", 0.30001, 0.2, 0.4), Metric("cosine", 0.9126, 0.9, 0.92), Metric("bleu", 31.25),
        Metric("embedding_cosine", 0.8112, 0.8, 0.82), Metric("bert_f1", 0.9, 0.89, 0.91), Metric("masked_words", 2_000),
        Metric("masked_success", 0.10001, 0.08, 0.12), Metric("masked_unprotected", 0.31),
        Metric("words", 7, column="a"), Metric("words", 9, column="b"),
    ),
    results=(), limits=(Requirement("rows", ">=", 1), Requirement("rows", "<=", 1)), left_out=("attacks: no law",), seconds=2.04,
)  # fmt: skip


def without(name: str) -> TableAudit:
    return replace(FOUND, figures=tuple(figure for figure in FOUND.figures if figure.column != name))


def test_audits_are_as_they_were() -> None:
    plain = table_audit(FOUND).text(200)
    others = {"without an account": {"has_account": False}, "without limits": {"limits": ()}}
    audits = {name: replace(FOUND, **changes) for name, changes in others.items()} | {
        "a column": without("b")
    }
    texts = {name: beyond(table_audit(audit).text(200), plain) for name, audit in audits.items()}
    assert_as_frozen("terminal", "audit", {"plain": plain, **texts})
    assert "column" not in table_audit(without("b")).text()


def test_a_screen_has_what_was_required_first_then_shares() -> None:
    many = [Metric(name, 0.5) for name in MEANING]
    found = replace(FOUND, figures=(*many, *(replace(each, column=c) for c in "ab" for each in many)))
    lines = table_audit(found).text().splitlines()
    assert len(lines) <= LINES
    names = [row[0] for row in table_audit(found).table]
    names = names[names.index("figure") + 1 :]
    assert names[:2] == ["rows", "unchanged_rows_share"]
    assert names.index("bayes_success") < names.index("words")
    assert len(names) == 3 * len(set(MEANING) - set(NAMED))
    assert all(f"{standing}: rows" in "".join(lines) for standing in ("BROKEN", "holds"))


def test_usefulness_stands_beside_risk_where_labels_were_learnt() -> None:
    figures = [Metric(name, 0.5, 0.4, 0.6) for name in MEANING]
    found = replace(FOUND, figures=(*figures, Metric("words", 7, column="a")))
    table = table_audit(found).table
    beside = table[1 : next(place for place, row in enumerate(table) if row[0] == "figure")]
    assert tuple(row[0] for row in beside if row[0]) == USEFUL
    assert tuple(row[2] for row in beside if len(row) > 2) == RISKS
    assert {*USEFUL, *RISKS} <= set(MEANING)
    text = table_audit(found).text()
    assert len(text.splitlines()) <= LINES
    for name in (*USEFUL, *RISKS):
        assert text.count(f" {name} ") == 1
    # A table of another tool: no law, so nobody knows words by it, and there is less to show.
    by_law = ("guess", "linkage_10", "singled", "attribute")
    other = [Metric(name, 0.5) for name in MEANING if not name.startswith(by_law)]
    rows = table_audit(replace(FOUND, figures=tuple(other))).table
    assert ("label_rows", "0") in rows
    assert rows[1] == ("accuracy_private_private", "50 %", "linkage_top1", "50 %")
    unlabelled = [Metric(name, 0.5) for name in MEANING if name not in LABEL]
    names = [row[0] for row in table_audit(replace(FOUND, figures=tuple(unlabelled))).table]
    assert names[0] == "rows"
    assert "linkage_top1" in names[:5]


def test_each_answer_is_exact() -> None:
    assert FOUND.answers == {"rows >= 1": True, "rows <= 1": False}
    settings = (Requirement("original_share", "<=", 0.2), Requirement("rouge_1", ">=", 0.2))  # not measured
    assert replace(FOUND, required=settings).answers == {**FOUND.answers, "original_share <= 0.2": True}


def test_figures_of_names_are_for_who_asks_for_private_ones() -> None:
    named = tuple(Metric(name, 0.0421, column=column) for name in sorted(NAMED) for column in (None, "a"))
    counts = dict.fromkeys(COUNTS, 4)
    found = replace(
        FOUND, figures=(*FOUND.figures, *named), results=(KeptWords.of(counts),),
        limits=(Requirement("names_kept", "<=", 0.02), Requirement("persons_kept", "<=", 0.5), Requirement("rows", ">=", 1)),
    )  # fmt: skip
    text, held = table_audit(found).text(400, full=True), found.as_dict()
    assert "4.2" not in text + json.dumps(held)
    assert not [line for line in text.splitlines() if line.strip().split(" ")[0] in NAMED]
    for part in ("BROKEN: names_kept <= 0.02", "holds: persons_kept <= 0.5", "withheld"):
        assert part in text
    assert held["withheld"] == sorted(NAMED)
    assert held["released"] == ["names_kept <= 0.02", "persons_kept <= 0.5"]
    of_settings = replace(found, limits=(), required=found.limits)
    assert of_settings.released == held["released"]
    assert [one["name"] for one in held["results"]] == ["kept words"]
    assert not any("name" in one for one in held["results"][0]["figures"])
    whole = replace(found, internal=True)
    said = table_audit(whole).text(400, full=True)
    assert re.search(r"persons_kept +4[.]21 %", said)
    assert "withheld" not in said
    assert "released" not in said
    assert "withheld" not in whole.as_dict()
    assert any("name" in one for one in whole.as_dict()["results"][0]["figures"])


def test_a_figure_of_each_kind_of_name_is_one_of_them() -> None:
    parts = ("names_", "person", "location", "listed")
    named = {name for name in MEANING if any(part in name for part in parts)}
    assert named == set(NAMED)


def test_a_dry_run_needs_no_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "run.yaml"
    settings.write_text("mechanism: {epsilon: 3}\nconsistency: dataset\n")
    dry = ["audit", "/none/out", "--against", "/none/in", "--columns", "body", "--row-key", "id", "--dry-run"]
    texts = {}
    for name, more in {
        "settings": ["--config", str(settings), "--require", "context_success <= 0.5"],
        "labels": ["--label", "mood", "--attribute", "city"],
    }.items():
        assert main([*dry, *more]) == 0
        texts[name] = capsys.readouterr().out
    assert_as_frozen("terminal", "audit, dry run", texts)
    assert main([*dry, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert (planned["mechanism"], planned["columns"], len(planned["left_out"])) == (None, ["body"], 1)
