"""What is printed of an audit of a written table."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.table.findings import TableAudit
from dptext_spark.audit.table.metrics import COUNTS, MEANING, NAMED, KeptWords
from dptext_spark.cli.app import main
from dptext_spark.config.requirements import Requirement
from dptext_spark.report.terminal.table_audit import table_audit_text

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


def test_figures_intervals_requirements_and_what_is_left_out() -> None:
    lines = [" ".join(line.split()) for line in table_audit_text(FOUND, 200).splitlines()]
    assert lines[:2] == ["/data/out (delta:3) against /data/in", "audit r1, 2.0 s"]
    for said in (
        "rows 12,345 ",
        "original_share 12.4 % ",
        "original_share_all 46.9 % ",
        "bayes_success 50 % (45 to 55) ",
        "oov_kept_share none ",
        "accuracy_private_private 71.2 % (70 to 75) ",
        "label_rows 1,200 ",
        "attribute_adaptive 30.1 % (20 to 40) ",
        "cosine 0.913 (0.900 to 0.920) ",
        "bleu 31.250 ",
        "embedding_cosine 0.811 (0.800 to 0.820) ",
        "bert_f1 0.900 (0.890 to 0.910) ",
        "masked_words 2,000 ",
        "masked_success 10.1 % (8 to 12) ",
        "masked_unprotected 31 % ",
    ):
        assert [line for line in lines if line.startswith(said)], said
    assert lines[lines.index("column b") + 1] == "words 9"
    assert "required rows >= 1: holds" in lines
    assert "required rows <= 1: BROKEN" in lines
    assert "left out attacks: no law" in lines
    assert lines[-1] == "These figures depend on the private text: not for sharing."


def test_each_answer_is_said_to_be_exact_and_to_be_counted_or_not() -> None:
    assert FOUND.answers == {"rows >= 1": True, "rows <= 1": False}
    settings = (Requirement("original_share", "<=", 0.2), Requirement("rouge_1", ">=", 0.2))
    both = replace(FOUND, required=settings)
    assert both.answers == {
        "original_share <= 0.2": True,
        "rows >= 1": True,
        "rows <= 1": False,
    }  # rouge_1: not measured
    assert "stand among the metrics" in table_audit_text(FOUND, 400)
    assert "nothing counts the questions" in table_audit_text(replace(FOUND, has_account=False), 400)
    assert "answered" not in table_audit_text(replace(FOUND, limits=()), 400)


def test_figures_of_names_are_for_who_asks_for_private_ones() -> None:
    named = tuple(Metric(name, 0.0421, column=column) for name in sorted(NAMED) for column in (None, "a"))
    counts = dict.fromkeys(COUNTS, 4)
    found = replace(
        FOUND, figures=(*FOUND.figures, *named), results=(KeptWords.of(counts),),
        limits=(Requirement("names_kept", "<=", 0.02), Requirement("persons_kept", "<=", 0.5), Requirement("rows", ">=", 1)),
    )  # fmt: skip
    text, held = table_audit_text(found, 400), found.as_dict()
    assert "4.2" not in text + json.dumps(held)
    assert not [line for line in text.splitlines() if line.strip().split(" ")[0] in NAMED]
    assert "required  names_kept <= 0.02: BROKEN" in text
    assert "required  persons_kept <= 0.5: holds" in text
    assert "whether names_kept <= 0.02; persons_kept <= 0.5 holds is told" in text
    assert "withheld  figures of names" in text
    assert held["withheld"] == sorted(NAMED)
    assert held["released"] == ["names_kept <= 0.02", "persons_kept <= 0.5"]
    of_settings = replace(found, limits=(), required=found.limits)
    assert of_settings.released == held["released"]
    assert [one["name"] for one in held["results"]] == ["kept words"]
    assert not any("name" in one for one in held["results"][0]["figures"])
    whole = replace(found, internal=True)
    said = table_audit_text(whole, 400)
    assert re.search(r"persons_kept +4[.]21 %", said)
    assert "withheld" not in said
    assert "released" not in said
    assert "withheld" not in whole.as_dict()
    assert any("name" in one for one in whole.as_dict()["results"][0]["figures"])


def test_a_figure_of_each_kind_of_name_is_one_of_them() -> None:
    named = {
        name for name in MEANING if any(part in name for part in ("names_", "person", "location", "listed"))
    }
    assert named == set(NAMED)


def test_one_column_is_not_said_twice() -> None:
    one = replace(FOUND, figures=tuple(figure for figure in FOUND.figures if figure.column != "b"))
    assert "column" not in table_audit_text(one)


def test_a_dry_run_needs_no_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = tmp_path / "run.yaml"
    settings.write_text("mechanism: {epsilon: 3}\nconsistency: dataset\n")
    given = [
        "audit",
        "/none/out",
        "--against",
        "/none/in",
        "--columns",
        "body",
        "--row-key",
        "id",
        "--dry-run",
    ]
    assert main([*given, "--config", str(settings), "--require", "context_success <= 0.5"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "custext, ε = 3, consistency dataset" in said
    assert "rows joined by id" in said
    assert "required context_success <= 0.5 required dataset_broken_groups <= 0" in said
    assert "metrics to /none/out_audit/restricted/metrics (restricted) Nothing was read." in said
    assert main([*given, "--label", "mood", "--attribute", "city"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "label mood, learnt from and tried on about 10,000 rows; NULL is left out attribute city" in said
    assert "accuracy_private_private" in said
    assert "attribute_adaptive" in said
    assert main([*given, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert planned["mechanism"] is None
    assert planned["columns"] == ["body"]
    assert len(planned["left_out"]) == 1
