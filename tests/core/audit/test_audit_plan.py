"""What an audit of a written table compares, and what is refused before a byte is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from safetensors.numpy import save_file

from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.options import AuditOptions
from dptext_spark.config.load import parse_config, parse_model_config
from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.report.summary import audit_plan
from tests.core.encoder.tiny_bert import make_tiny_bert, tiny_weights

RUN = """
input: {path: /data/in}
columns: [subject, body]
row_key: id
record_key: customer
consistency: record
mechanism: {epsilon: 2}
output: {path: /data/out}
"""


ACCURACY = "accuracy_private_private >= 0.7"


def plan(
    table: str = "/data/out", source: str = "/data/in", config: ModelConfig | None = None, **options: Any
) -> AuditPlan:
    asked = AuditOptions(**{"columns": ["body"], "row_key": "id", **options})
    return AuditPlan.of(table, source, config, asked)


def test_the_settings_of_the_run_say_the_rest() -> None:
    settings = parse_config(yaml.safe_load(RUN))
    found = plan(config=settings, columns=(), row_key=None)
    assert (found.columns, found.row_key, found.record_key) == (("subject", "body"), "id", "customer")
    assert (found.metrics, found.level) == ("/data/out_audit/restricted/metrics", "record")
    assert (found.attacked, found.left_out) == (True, ())
    assert [str(limit) for limit in found.limits] == ["record_broken_groups <= 0"]
    other = plan(config=settings, row_key="key", out="/m/")
    assert (other.columns, other.row_key, other.metrics) == (("body",), "key", "/m/metrics")


def test_without_settings_the_text_figures_only() -> None:
    found = plan(require=["original_share <= 0.5"])
    assert not found.attacked
    assert "without --config" in found.left_out[0]
    assert [str(limit) for limit in found.limits] == ["original_share <= 0.5"]
    assert found.model.policy.stop_words == "draw"
    assert not {"bayes_success", "context_success"} & set(found.as_dict()["figures"])


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_frequencies_are_matched_at_dataset_level(level: str) -> None:
    figures = plan(config=parse_model_config({"consistency": level})).figures
    assert "context_success" in figures
    assert ("frequency_success" in figures) == (level == "dataset")


def test_labels_and_attributes_bring_figures_of_their_own() -> None:
    bare = set(plan().figures)
    assert not bare & {"cosine", "accuracy_majority", "attribute_success", "bayes_success"}
    similar = {"cosine", "rouge_1", "rouge_2", "rouge_l", "bleu", "distinct_words_share"}
    assert set(plan(similarity=True).figures) - bare == similar
    labelled = plan(label="mood", require=["accuracy_private_private >= 0.7"])
    assert labelled.similarity
    assert {"rouge_1", "membership_auc", "label_missing"} <= set(labelled.figures)
    assert [str(limit) for limit in labelled.limits] == ["accuracy_private_private >= 0.7"]
    found = plan(label="mood", attribute="city", label_rows=50)
    assert found.of_source == {"record_key": None, "author": None, "label": "mood", "attribute": "city"}
    assert set(found.figures) - set(labelled.figures) >= {"attribute_success", "attribute_adaptive"}
    shown = found.as_dict()
    assert (shown["label"], shown["attribute"], shown["label_rows"]) == ("mood", "city", 50)
    assert plan().as_dict()["label_rows"] is None
    assert plan(require=["cosine >= 0.5"]).similarity


def test_paths_and_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("/data/out", "s3a://bucket/out", "./out"):
        assert AuditPlan.target(path) == (path, "")
    for name in ("out", "main.support.tickets", "`a b`.c"):
        assert AuditPlan.target(name) == ("", name)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    assert AuditPlan.target("out") == ("out", "")  # a folder that is here


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"columns": []}, "columns: none given"),
        ({"row_key": "body"}, "row_key: 'body'"),
        ({"record_key": "body"}, "record_key: 'body'"),
        ({"source": "/data/../data/out/"}, "against: "),
        ({"table": "T", "source": "spark_catalog.default.t", "out": "/m"}, "against: "),
        ({"table": "tickets"}, "out: none given"),
        ({"out": "/data/in"}, "out: '/data/in/metrics'"),
        ({"source": "s3://user:pass@bucket/in"}, "against: "),
        ({"sample": 0}, "sample: 0 "),
        ({"label": "mood", "label_rows": 0}, "label_rows: 0 .*1 to 10,000"),
        ({"label": "mood", "label_rows": 10_001}, "label_rows: 10001 .*1 to 10,000"),
        ({"label": "body"}, "label: 'body' is a text column"),
        ({"author": "who", "queries": 0}, "author: 'who'"),
        ({"attribute": "id"}, "attribute: 'id' is the row_key"),
        ({"attribute": "who", "record_key": "who"}, "attribute: 'who' is the record_key"),
        ({"require": ["original_share"]}, "require: 'original_share' is not valid"),
        ({"require": ["bayes_success <= 0.5"]}, "require: 'bayes_success <= 0.5'"),
        ({"attribute": "city", "require": [ACCURACY]}, f"require: '{ACCURACY}'"),
        ({"against_format": "xml"}, "against_format: 'xml'"),
        ({"source": "a.table", "against_format": "csv", "out": "/m"}, "against_format: 'csv' .* 'a.table'"),
    ],
)
def test_what_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=f"^{said}") as caught:
        plan(**change)
    assert "user:pass" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "limit", "option"),
    [
        ({}, ACCURACY, "--label COLUMN"),
        ({}, "attribute_gain <= 0.1", "--attribute COLUMN"),
        ({}, "linkage_author_top1(10000) <= 0.1", "--author COLUMN"),
        ({}, "linkage_10_words_top1(10000) <= 0.1", "--config FILE"),
        ({}, "singled_out <= 0.1", "--config FILE"),
        ({"queries": 0}, "linkage_top1 <= 0.1", "queries of 1 or more"),
    ],
)
def test_requirements_of_another_audit_name_options(change: dict[str, Any], limit: str, option: str) -> None:
    with pytest.raises(SettingsError) as caught:
        plan(**change, require=[limit])
    assert str(caught.value).startswith(f"require: '{limit}' needs")
    assert option in str(caught.value)


def test_so_does_one_of_the_settings() -> None:
    limit = "linkage_author_top1 <= 0.1"
    config = parse_config({**yaml.safe_load(RUN), "require": [limit, ACCURACY, "linkage_top1(10000) <= 0.5"]})
    for more in ({"author": "who"}, {"label": "mood"}):
        with pytest.raises(SettingsError) as caught:
            AuditPlan.of_run(config, AuditOptions(**more))
        assert ("--label COLUMN" if "author" in more else "--author COLUMN") in str(caught.value)
    found = AuditPlan.of_run(config, AuditOptions(author="who", label="mood"))
    assert [str(each) for each in found.required] == [limit, ACCURACY, "linkage_top1(10000) <= 0.5"]


def test_words_that_importance_chose_are_not_attacked() -> None:
    chosen = parse_model_config({"consistency": "record", "importance": {"percent": 30}})
    found = plan(config=chosen)
    assert not found.attacked
    assert found.model.importance is None
    assert found.limits == ()
    assert "importance" in found.left_out[0]
    assert plan(config=parse_model_config({"consistency": "record"})).attacked


class TestEncoders:
    @pytest.fixture(autouse=True)
    def _with_the_extra(self) -> None:
        for name in ("onnx", "onnxruntime", "tokenizers", "safetensors"):
            pytest.importorskip(name, reason="the extra [encoder] is not installed")

    def test_they_bring_figures_of_their_own(self, tmp_path: Path) -> None:
        bert = str(make_tiny_bert(tmp_path))
        bare = plan()
        compared, attacked = plan(encoder=bert), plan(masked_model=bert, require=["masked_success <= 0.3"])
        assert [one.looks_at_texts for one in (bare, compared, attacked)] == [False, True, True]
        similar = {"embedding_cosine", "bert_precision", "bert_recall", "bert_f1"}
        assert {*compared.figures} - {*bare.figures} == similar
        masked = {"masked_success", "masked_unprotected", "masked_words"}
        assert {*attacked.figures} - {*bare.figures} == masked
        assert [str(limit) for limit in attacked.limits] == ["masked_success <= 0.3"]
        rows = audit_plan(plan(encoder=bert, masked_model=bert)).rows
        assert any("2,000 words" in text for _, text in rows)

    def test_what_cannot_be_opened_is_refused_before_anything_is_read(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="encoder: 'no-such-bert'"):
            plan(encoder="no-such-bert")
        bert = make_tiny_bert(tmp_path, config={"model_type": "gpt2", "architectures": ["GPT2Model"]})
        with pytest.raises(DataError, match=r"GPT2Model is not valid\. Choose BertModel or BertForMaskedLM"):
            plan(encoder=str(bert))
        make_tiny_bert(tmp_path)
        bare = {name: one for name, one in tiny_weights().items() if not name.startswith("cls.")}
        save_file(bare, str(tmp_path / "model.safetensors"))
        assert plan(encoder=str(tmp_path)).encoder == str(tmp_path)
        with pytest.raises(DataError, match=r"masked_model: .* no weights for masked words"):
            plan(masked_model=str(tmp_path))


def test_encoders_need_their_extra_and_rows_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"'dptext-spark\[encoder\]'"):
        plan(encoder="anything")
    unkeyed = plan(row_key=None)
    assert unkeyed.row_key is None
    assert len(unkeyed.left_out) == len(plan().left_out) + 1


def test_a_source_is_read_as_it_is_said_or_as_the_settings_read_their_input() -> None:
    text = (
        "input: {path: /data/in, format: csv, options: {header: true}}\ncolumns: [body]\nrow_key: id\noutput: {path: /data/out}\n"
        "require: [names_kept <= 0.5, ledger_epsilon <= 3, cosine >= 0.5]\n"
    )
    settings = parse_config(yaml.safe_load(text))
    assert plan().read_as is None
    by_settings = plan(config=settings)
    assert by_settings.read_as is not None
    assert (by_settings.read_as.format, by_settings.read_as.options) == ("csv", {"header": "true"})
    # The ledger's figure is none of an audit; that of the cosine is, and waits for its option.
    assert [str(one) for one in by_settings.required] == ["names_kept <= 0.5", "cosine >= 0.5"]
    assert plan(source="/data/other", config=settings).read_as is None
    other = plan(source="/data/other", config=settings, against_format="json").read_as
    assert other is not None
    assert (other.path, other.format, other.options) == ("/data/other", "json", {})
    assert plan(config=settings, against_format="csv").read_as == by_settings.read_as


def test_the_settings_of_a_run_name_both_tables_and_the_rows_that_it_read() -> None:
    given = yaml.safe_load(RUN)
    run = AuditPlan.of_run(parse_config(given), AuditOptions())
    assert (run.table, run.source, run.partial, run.read_as) == ("/data/out", "/data/in", False, None)
    given["input"]["where"] = {"customer": "c7"}
    given["output"]["mode"] = "append"
    some = AuditPlan.of_run(parse_config(given), AuditOptions(label="stars"))
    assert (some.partial, some.label) == (True, "stars")  # the target has rows of other runs, too
    assert some.read_as == parse_config(given).input
    given["row_key"] = {"none": "accept"}
    with pytest.raises(SettingsError, match="row_key"):
        AuditPlan.of_run(parse_config(given), AuditOptions())
    assert AuditPlan.of_run(parse_config(given), AuditOptions(row_key="id")).row_key == "id"
