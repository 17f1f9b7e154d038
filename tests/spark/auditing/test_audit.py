"""Written tables audited against their source on real Delta: ours, foreign ones, and ones that must not be published."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from dptext_spark import spark as dps
from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.options import AuditOptions
from dptext_spark.audit.table_audit import (
    ATTRIBUTE,
    ENCODED,
    LABEL,
    MASKED,
    SIMILARITY,
    StayedWord,
    TableAudit,
)
from dptext_spark.cli.app import main
from dptext_spark.config.load import load_config
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.randomness import RunKey
from dptext_spark.report.console import LINES
from dptext_spark.report.summary import RISKS, USEFUL
from dptext_spark.spark import audit_job as auditing
from dptext_spark.spark import audited_tables, pair_tables
from dptext_spark.spark import run_report as reporting
from dptext_spark.spark.audit_job import audit_table
from dptext_spark.spark.audited_tables import value_of
from dptext_spark.spark.job import planned_run
from dptext_spark.spark.pair_tables import PairTables
from dptext_spark.spark.runner import run
from tests.core.encoder.tiny_bert import make_tiny_bert

ROWS, MARKER, MOODS = 60, "zanzibarsecret", ("sadsecret", "happysecret")
WORDS = ("dog", "house", "money", "bank", "letter", "phone", "river", "doctor", "garden", "music")
SETTINGS = """
input: {{path: {source}}}
columns: [body, note]
row_key: id
record_key: customer
consistency: record
mechanism: {{name: custext, epsilon: 1.0}}
policy: {{names: none, identifiers: {{date: keep}}}}
output: {{path: {target}, other_columns: keep}}
"""


def ours_given(ours: dict[str, str]) -> list[str]:
    return ["audit", ours["target"], "--against", ours["source"], "--config", ours["settings"], "--json"]


def whole(out: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return an audit that was printed as JSON, and its figures of all columns together."""
    audit = json.loads(out)
    return audit, {figure["name"]: figure for figure in audit["figures"] if figure["column"] is None}


def metrics_of(spark: Any, folder: str) -> dict[str, float | None]:
    rows = spark.read.format("delta").load(f"{folder}/metrics").collect()
    return {row["metric"]: row["value"] for row in rows if row["column"] is None}


def figures(found: TableAudit, column: str | None = None) -> dict[str, float | None]:
    return {figure.name: figure.value for figure in found.figures if figure.column == column}


@pytest.fixture(scope="module")
def ours(session, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A table that a run wrote at record level, its source and its settings; tests write elsewhere."""
    folder = tmp_path_factory.mktemp("ours")
    rows: list[tuple] = []
    for i in range(ROWS):
        some = [WORDS[(i // 3 + j) % len(WORDS)] for j in range(5)]
        body = f"The {some[0]}, {some[1].title()} and {some[2]} {MARKER}-{some[0]} {i + 10}"
        note = None if i % 7 == 0 else f"{some[3]} {some[4]}\n{some[0]}!"
        # Words tell the mood of a record; one row in ten has none.
        mood = None if i % 10 == 0 else MOODS[i // 3 % len(WORDS) < 5]
        rows.append((i, f"customer{i // 3}", body, note, mood, i // 3 % 2 == 0, MOODS[0]))
    kinds = "id long, customer string, body string, note string, mood string, member boolean, same string"
    frame = session.createDataFrame(rows, kinds)
    places = {name: str(folder / name) for name in ("source", "target")}
    frame.repartition(2, "id").write.format("delta").save(places["source"])
    settings = folder / "settings.yaml"
    settings.write_text(SETTINGS.format(**places))
    report = run(load_config(settings), session, key=RunKey.insecure(5))
    return {**places, "settings": str(settings), "run": report.facts["run_id"]}


def ours_by(ours: dict[str, str], overrides: Sequence[str] = (), **more: Any) -> AuditPlan:
    config = load_config(ours["settings"], overrides)
    return AuditPlan.of(ours["target"], ours["source"], config, AuditOptions(**more))


CALLS: Counter[str] = Counter()  # of what looks at keys or texts, while `audited` was made
STEPS: list[str] = []


@pytest.fixture(scope="module")
def audited(session, ours: dict[str, str]) -> TableAudit:
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (PairTables, "over"), (auditing, "counted_keys"), (planned_run, "check_keys"), (audited_tables, "history"),
        ):  # fmt: skip
            patch.setattr(owner, name, counted(name, getattr(owner, name)))
        return audit_table(ours_by(ours), session, STEPS.append)


def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **more: CALLS.update([name]) or function(*args, **more)


@pytest.fixture
def tables(spark, tmp_path: Path) -> Callable[..., tuple[str, str]]:
    """Write a small table and its source: rows of (id, body)."""

    def write(table: list[tuple], source: list[tuple], form="delta", kind="id long") -> tuple[str, str]:
        places = str(tmp_path / "table"), str(tmp_path / "source")
        for place, rows in zip(places, (table, source), strict=True):
            spark.createDataFrame(rows, f"{kind}, body string").write.format(form).save(place)
        return places

    return write


def plan(table: str, source: str, **more: Any) -> AuditPlan:
    return AuditPlan.of(table, source, None, AuditOptions(**{"columns": ["body"], "row_key": "id", **more}))


@pytest.mark.long
class TestOurOwnTable:
    def test_its_figures_are_those_that_the_run_counted(self, session, ours, audited: TableAudit) -> None:
        rows = session.read.format("delta").load(f"{ours['target']}_audit/restricted/metrics").collect()
        mine = [row for row in rows if row["run_id"] == ours["run"] and row["column"] is None]
        counted = {row["metric"]: row["value"] for row in mine}
        found = figures(audited)
        for name in ("original_share", "changed_share", "oov_share", "original_share_all"):
            assert found[name] == pytest.approx(counted[name])
            assert 0 < found[name] < 1
        assert found["words"] == counted["words"]
        assert {name: found[name] for name in ("rows", "missing_in_table", "missing_in_source", "rows_not_aligned")} == {
            "rows": ROWS, "missing_in_table": 0, "missing_in_source": 0, "rows_not_aligned": 0,
        }  # fmt: skip
        assert found["aligned_share"] == 1.0
        assert found["oov_kept_share"] == 0.0
        parts = [figures(audited, name)["words"] for name in ("body", "note")]
        assert found["words"] == sum(parts)
        assert min(parts) > 0

    def test_texts_are_paired_and_keys_looked_at_once(self, audited: TableAudit) -> None:
        assert CALLS == {"over": 1, "counted_keys": 1, "history": 2}
        for step in (
            "reading both schemas",
            "checking and matching",
            "comparing the texts",
            "writing the metrics",
        ):
            assert any(line.startswith(step) for line in STEPS), step

    def test_is_consistent_within_records_and_not_across_them(self, audited: TableAudit) -> None:
        found = figures(audited)
        assert found["record_groups"] >= ROWS
        assert found["record_broken_groups"] == 0
        assert found["dataset_broken_groups"] > 0
        assert [str(limit) for limit in audited.limits] == ["record_broken_groups <= 0"]
        assert audited.broken == []

    def test_is_attacked(self, audited: TableAudit) -> None:
        found = {figure.name: figure for figure in audited.figures if figure.column is None}
        assert found["attacked_words"].value > ROWS
        for name in ("bayes_success", "context_success"):
            figure = found[name]
            assert 0.0 <= figure.lower <= figure.value <= figure.upper <= 1.0
        assert audited.left_out == ()
        assert "frequency_success" not in found
        names = [result.name for result in audited.results]
        assert names == ["kept words", "linkage", "each word alone", "contextual adversary"]
        assert not {*SIMILARITY, *LABEL, *ATTRIBUTE, *ENCODED, *MASKED} & set(found)

    def test_writes_its_metrics_beside_those_of_the_run(self, session, ours, audited: TableAudit) -> None:
        assert audited.audit_id == ours["run"]
        assert audited.version == "delta:0"
        before = session.read.format("delta").load(audited.metrics)
        assert before.where("metric = 'write_seconds'").count() == 1
        kept = {(row["column"], row["metric"]): row["value"] for row in before.collect()}
        assert kept[None, "audit_original_share"] == figures(audited)["original_share"]
        assert kept["note", "audit_words"] == figures(audited, "note")["words"]
        assert kept[None, "audit_bayes_success_lower"] <= kept[None, "audit_bayes_success"]
        # Again: the same figures, not twice as many; each answered question stands there for itself.
        asked = F.col("metric").startswith("asked: ")
        number, answers = before.where(~asked).count(), before.where(asked).count()
        question = "original_share <= 0.9"
        assert audit_table(ours_by(ours, sample=50, require=[question]), session).has_account
        after = session.read.format("delta").load(audited.metrics)
        assert after.where(~asked).count() == number
        assert after.where(asked).count() == answers + 2
        (answer,) = after.where(F.col("metric") == f"asked: {question}").collect()
        assert (answer["run_id"], answer["column"], answer["value"]) == (ours["run"], None, 1.0)

    def test_other_settings_are_not_its_own(self, session, ours) -> None:
        with pytest.raises(SettingsError, match=f"config: run {ours['run']} made the table with model"):
            audit_table(ours_by(ours, overrides=["mechanism.epsilon=2"]), session)

    def test_a_broken_replacement_is_seen(self, spark, ours, tmp_path: Path, capsys) -> None:
        other = F.regexp_replace("body", r"^The \w+", "The volcano")
        frame = spark.read.format("delta").load(ours["target"])
        frame = frame.withColumn("body", F.when(F.col("id") == 0, other).otherwise(F.col("body")))
        broken = str(tmp_path / "broken")
        frame.write.format("delta").save(broken)
        assert main(["audit", broken, *ours_given(ours)[2:]]) == 7
        out, err = capsys.readouterr()
        found, values = whole(out)
        assert values["record_broken_groups"]["value"] == 1
        assert found["requirements"] == [{"requirement": "record_broken_groups <= 0", "holds": False}]
        assert found["audit_id"].startswith("audit-")
        assert err.splitlines()[-1].startswith("dptext: requirement broken: record_broken_groups <= 0.")


@pytest.mark.cluster
class TestATableOfDatasetLevel:
    def test_is_attacked_by_frequency_and_of_token_level_not(self, session, ours, tmp_path, capsys) -> None:
        target, settings = str(tmp_path / "target"), tmp_path / "dataset.yaml"
        text = SETTINGS.format(source=ours["source"], target=target)
        settings.write_text(text.replace("consistency: record", "consistency: dataset"))
        run(load_config(settings), session, key=RunKey.insecure(5))
        given = ours_given({**ours, "target": target, "settings": str(settings)})
        assert main([*given, "--require", "frequency_success <= 1"]) == 0
        audit, found = whole(capsys.readouterr().out)
        assert found["dataset_broken_groups"]["value"] == 0
        figure = found["frequency_success"]
        bounds = [figure[name] for name in ("lower", "value", "upper")]
        assert [0.0, *bounds, 1.0] == sorted([0.0, *bounds, 1.0])
        (result,) = [one for one in audit["results"] if one["name"] == "frequency matching"]
        assert [result[name] for name in ("lower", "success", "upper")] == bounds
        assert result["random"] < result["unprotected"] == 1.0
        assert [one["holds"] for one in audit["requirements"]] == [True, True]
        kept = metrics_of(session, f"{target}_audit/restricted")
        assert [kept[f"audit_frequency_success{bound}"] for bound in ("_lower", "", "_upper")] == bounds
        assert MARKER not in json.dumps(audit)
        # Of a copy, which has no account: the settings say at which level it was drawn.
        given[1] = str(tmp_path / "copy")
        session.read.format("delta").load(target).write.format("delta").save(given[1])
        for level, by_frequency in (("dataset", True), ("token", False)):
            assert main([*given, "--set", f"consistency={level}"]) == 0
            names = whole(capsys.readouterr().out)[1].keys()
            assert ("frequency_success" in names) == by_frequency
            assert "context_success" in names


@pytest.mark.long
class TestWhatTheTextIsStillGoodFor:
    @pytest.fixture(autouse=True)
    def with_the_extra(self) -> None:
        for name in ("sklearn", "jinja2", "onnxruntime"):
            pytest.importorskip(name, reason="the extras [audit] and [encoder] are not installed")

    def test_from_the_audit_to_the_report(self, session, ours, tmp_path: Path, capsys, monkeypatch) -> None:
        bert = str(make_tiny_bert(tmp_path / "bert"))
        asked = ["--label", "mood", "--attribute", "member", "--encoder", bert, "--masked-model", bert]
        required = ["accuracy_private_private >= 0.05", "accuracy_plain_plain > 1", "masked_success <= 0.9"]
        asked += [part for requirement in required for part in ("--require", requirement)]
        assert main([*ours_given(ours), *asked]) == 7
        out, err = capsys.readouterr()
        audit, found = whole(out)
        assert [one["holds"] for one in audit["requirements"]] == [True, False, True, True]
        assert audit["left_out"] == []
        assert {*SIMILARITY, *LABEL, *ATTRIBUTE, *ENCODED, *MASKED} <= set(found)
        assert (found["label_missing"]["value"], found["attribute_missing"]["value"]) == (6, 0)
        for name in ("accuracy_private_private", "attribute_adaptive", "membership_auc", "cosine", "rouge_l"):
            assert 0.0 <= found[name]["lower"] <= found[name]["value"] <= found[name]["upper"] <= 1.0
        for name in ENCODED:
            assert -1.0 <= found[name]["lower"] <= found[name]["value"] <= found[name]["upper"] < 1.0
        assert found["masked_words"]["value"] > 100
        assert found["rouge_1"]["value"] < 1.0
        assert 0.0 < found["bleu"]["value"] < 100.0
        kept = metrics_of(session, f"{ours['target']}_audit/restricted")
        for name in ("accuracy_private_private", "attribute_adaptive", "bleu", "embedding_cosine"):
            assert kept[f"audit_{name}"] == found[name]["value"]
        for step in ("learning the labels", "attacking the attribute", "by an encoder", "asking a masked"):
            assert step in err

        file, page = tmp_path / "audit.json", tmp_path / "page.html"
        file.write_text(out)
        monkeypatch.setattr(reporting, "_model", lambda *given: "not examined here.")
        files = ["--figures", str(file), "--out", str(page)]
        report = ["report", ours["settings"], "--run", ours["run"], *files]
        assert main([*report, "--public"]) == 0
        assert "were left out (they are on the restricted page): " in page.read_text(encoding="utf-8")
        assert main(report) == 0
        text = page.read_text(encoding="utf-8")
        for title in (
            "Kept words", "Each word alone", "Contextual adversary", "Vector similarity", "Text overlap", "Downstream accuracy",
            "Membership attack", "Attribute attack", "Encoder similarity", "Masked-token inference", "Usefulness beside risk",
        ):  # fmt: skip
            assert title in text, title
        everything = out + err + text + str(capsys.readouterr()) + str(kept)
        for secret in (MARKER, *MOODS):
            assert secret not in everything
        file.write_text(json.dumps({**audit, "audit_id": "another"}))
        assert main(report) == 3
        assert ours["run"] in capsys.readouterr().err

    def test_usefulness_stands_beside_risk_on_one_screen(self, ours, capsys) -> None:
        assert main([*ours_given(ours)[:-1], "--label", "mood"]) == 0
        out = capsys.readouterr().out
        lines = [line.split() for line in out.splitlines()]
        assert len(lines) <= LINES
        (first,) = [place for place, line in enumerate(lines) if line[:1] == ["usefulness"]]
        useful = [line[0] for line in lines[first + 1 : first + 1 + len(USEFUL)]]
        assert useful == list(USEFUL)
        missing = {name for name in RISKS if f" {name} " not in out}
        assert missing == {"attribute_gain", "linkage_10_words_top1"}  # no row has ten words
        for secret in (MARKER, *MOODS):
            assert secret not in out

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"label": "same"}, f"label: column 'same' has one class in {ROWS} rows"),
            ({"label": "humour"}, "label: 'humour' is not in .*; columns there: id, customer, body, note"),
            ({"attribute": "town"}, "attribute: 'town' is not in "),
        ],
    )
    def test_columns_that_teach_nothing(self, session, ours, change: dict, said: str) -> None:
        with pytest.raises(DataError, match=said) as caught:
            audit_table(plan(ours["target"], ours["source"], **change), session)
        assert MOODS[0] not in str(caught.value)

    def test_values_that_are_classes(self, spark) -> None:
        rows = "(1.5D, true, array('a')), (double('NaN'), NULL, NULL)"
        frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(score, flag, tags)")
        rows = frame.select(value_of(frame, "score", "label"), value_of(frame, "flag", "attribute")).collect()
        assert [tuple(row) for row in rows] == [("1.5", "true"), (None, None)]
        with pytest.raises(DataError, match="label: column 'tags' of type array<string> is not valid"):
            value_of(frame, "tags", "label")


class TestAForeignTable:
    SOURCE = (
        (1, "My dog likes the river"), (2, "the bank wrote a letter"), (3, "call me, doctor 42"), (4, "house music"),
        (5, None), (6, f"{MARKER} in the house"),
    )  # fmt: skip
    TABLE = (
        (1, "My cat likes the ocean"), (2, "the bank wrote a letter"), (3, "call me, nurse 42"), (4, "house of music"),
        (5, None), (6, f"{MARKER} in the tent"),
    )  # fmt: skip

    @pytest.mark.long
    def test_figures_counted_by_hand_and_no_private_word(self, spark, tables, capsys) -> None:
        table, source = tables(self.TABLE, self.SOURCE)
        required = ["--require", "oov_kept_share <= 0.5", "--require", "original_share <= 0.9"]
        given = ["audit", table, "--against", source, "--columns", "body", "--row-key", "id", *required]
        assert main(given) == 7
        out, err = capsys.readouterr()
        rows = spark.read.format("delta").load(f"{table}_audit/restricted/metrics").collect()
        found = {(row["column"], row["metric"].removeprefix("audit_")): row["value"] for row in rows}
        # Row 4 has another number of words. Of the other 18 words 16 are known, one is a number and one unknown.
        assert {name: value for (column, name), value in found.items() if column is None} == {
            "rows": 6, "missing_in_table": 0, "missing_in_source": 0, "unchanged_rows": 1, "unchanged_rows_share": 1 / 5,
            "rows_not_aligned": 1, "words": 18, "aligned_share": 18 / 20, "original_share": 12 / 16,
            "original_share_all": 14 / 18, "changed_share": 4 / 18, "oov_share": 1 / 18, "oov_kept_share": 1.0,
            "numbers_kept_share": 1.0, "names_found": 0, "names_kept": None,
            "asked: oov_kept_share <= 0.5": 0.0, "asked: original_share <= 0.9": 1.0,
            "persons_kept": None, "persons_kept_whole": None, "locations_kept": None, "locations_kept_whole": None,
            "record_groups": 0, "record_broken_groups": 0,
            # the (three times, in rows 1, 2 and 6) is always the.
            "dataset_groups": 1, "dataset_broken_groups": 0,
        }  # fmt: skip
        assert found["body", "original_share"] == 12 / 16
        assert {row["run_id"].split("-")[0] for row in rows} == {"audit"}
        said = out + err + "\n".join(map(str, rows))
        for word in (MARKER, "river", "ocean", "doctor", "nurse"):
            assert word not in said

    def test_a_name_against_a_parquet_folder(self, spark, tables, tmp_path: Path) -> None:
        table, source = tables(self.TABLE, self.SOURCE, form="parquet")
        spark.read.parquet(table).write.format("delta").saveAsTable("sanitized_tickets")
        found = audit_table(plan("sanitized_tickets", source, out=str(tmp_path / "restricted")), spark)
        assert found.version == "delta:0"
        assert found.source_version.startswith("files:")
        assert found.metrics == str(tmp_path / "restricted" / "metrics")
        assert figures(found)["original_share"] == 12 / 16


class TestTablesThatDoNotBelongTogether:
    @pytest.mark.long
    def test_rows_that_do_not_match(self, spark, tables) -> None:
        rows = [(1, "a cat"), (2, "b"), (7456, "d"), (8, "e")]
        table, source = tables([(1, "a dog"), (2, "b"), (9123, "c")], rows)
        said = r"row_key: 2 rows are in both tables.* 1 of the table's 3 rows.* 2 of the source's 4"
        with pytest.raises(DataError, match=said):
            audit_table(plan(table, source), spark)
        found = figures(audit_table(plan(table, source, partial=True), spark))
        assert (found["rows"], found["missing_in_table"], found["missing_in_source"]) == (2, 2, 1)
        assert found["words"] == 3
        assert not Path(f"{source}_audit").exists()

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("rows", "change", "said"),
        [
            ([(2, "a")], {"partial": True}, "row_key: 0 rows are in both"),
            ([(1, MARKER), (1, "b")], {}, "table: row_key: column 'id' has 1 distinct values in 2 rows"),
            ([(1, "a")], {"columns": ["text"]}, "table: columns: 'text' is not in .* of the input: body."),
            ([(1, "a")], {"row_key": "key"}, "row_key: 'key' is not in .*; columns there: id, body."),
            ([(1, "a")], {"record_key": "who"}, "record_key: 'who' is not in .*; columns there: id, body."),
        ],
    )
    def test_rows_and_columns_that_are_refused(self, spark, tables, rows: list, change, said: str) -> None:
        table, source = tables(rows, [(1, "a")])
        with pytest.raises(DataError, match=said) as caught:
            audit_table(plan(table, source, **change), spark)
        assert MARKER not in str(caught.value)

    def test_a_source_that_is_not_there_or_has_keys_of_another_type(self, spark, tables) -> None:
        table, source = tables([(1, "a")], [(1, "a")])
        with pytest.raises(DataError, match=r"against: .*nowhere' .*\(PATH_NOT_FOUND\)"):
            audit_table(plan(table, f"{source}_nowhere"), spark)
        spark.createDataFrame([("1", "a")], "id string, body string").write.format("delta").save(f"{source}2")
        with pytest.raises(DataError, match="row_key: column 'id' is bigint in the table, but string in its"):
            audit_table(plan(table, f"{source}2"), spark)

    @pytest.mark.long
    def test_without_text_nothing_is_linked(self, spark, tables) -> None:
        rows = [(i, None if i % 2 else " ") for i in range(60)]
        table, source = tables(rows, rows)
        with pytest.raises(DataError, match=r"^require: 'linkage_top1 <= 0\.5' .* 0 rows with a word"):
            audit_table(plan(table, source, require=["linkage_top1 <= 0.5"]), spark)
        found = audit_table(plan(table, source), spark)
        assert "linkage_top1" not in figures(found)
        assert any(reason.startswith("linkage: ") for reason in found.left_out)

    @pytest.mark.long
    def test_a_source_of_csv_whose_records_do_not_fit(self, spark, tables, tmp_path: Path) -> None:
        table, _ = tables([("1", "a dog"), ("2", "the day")], [("1", "a")], kind="id string")
        place = tmp_path / "in"
        place.mkdir()
        (place / "a.csv").write_text("id,body\n1,a dog\n")
        (place / "b.csv").write_text('id,body\n2,"the day\n')
        with pytest.raises(DataError, match=r"^against: 1 record of 1 file \(b\.csv\) have another number"):
            audit_table(plan(table, str(place), against_format="csv"), spark)
        (place / "b.csv").write_text(f"body,id\n{MARKER},2\n")
        with pytest.raises(DataError, match=r"^against: the first line of 1 file \(b\.csv\)") as caught:
            audit_table(plan(table, str(place), against_format="csv"), spark)
        assert MARKER not in str(caught.value)
        (place / "b.csv").write_text("id,body\n2,the day\n")
        found = audit_table(plan(table, str(place), against_format="csv"), spark)
        assert figures(found)["rows"] == 2

    @pytest.mark.long
    def test_invalid_utf8_is_an_error_without_the_text(self, spark, tables) -> None:
        table, source = tables([(1, "a")], [(1, "a")])
        body = f"CAST(concat(CAST('{MARKER} ' AS BINARY), X'FFFE') AS STRING)"
        spark.sql(f"SELECT 1L AS id, {body} AS body").write.format("delta").mode("overwrite").save(source)
        with pytest.raises(DataError, match="1 rows hold invalid UTF-8") as caught:
            audit_table(plan(table, source), spark)
        assert MARKER not in str(caught.value)


SECRETS = ("lovelace", "zorblax", "oslo", "ada")
NAMED_SOURCE = (
    (1, "We met Ada Lovelace in Oslo"), (2, "Then Zorblax spoke of Ada"), (3, "no name at all"), (4, None),
    (5, "Hello Ada Ada Zorblax there"),
)  # fmt: skip
NAMED_TABLE = (
    (1, "We met Ada cat in Oslo"), (2, "Then Zorblax spoke of Ada"), (3, "no dog at all"), (4, None),
    (5, "Hello Ada Ada Zorblax"),
)  # fmt: skip


@pytest.fixture
def places(spark, tmp_path: Path) -> list[str]:
    for name, rows in (("table", NAMED_TABLE), ("source", NAMED_SOURCE)):
        frame = spark.createDataFrame(rows, "id long, body string").repartition(3)
        frame.write.format("delta").save(str(tmp_path / name))
    table, source = (str(tmp_path / name) for name in ("table", "source"))
    return [table, "--against", source, "--columns", "body", "--row-key", "id"]


@pytest.mark.long
def test_figures_are_those_counted_by_hand(spark, places, capsys) -> None:
    required = ["--require", "persons_kept <= 0.4", "--require", "names_kept >= 0.7"]
    assert main(["audit", *places, *required, "--json"]) == 7
    out, err = capsys.readouterr()
    found = json.loads(out)
    written = spark.read.format("delta").load(found["metrics"]).collect()
    named = [row for row in written if row["column"] is None and row["metric"].startswith("audit_")]
    figures = {row["metric"].removeprefix("audit_"): row["value"] for row in named}
    # Ada, Lovelace, Oslo and Ada are found, of which Lovelace was replaced; row 5 could not be compared.
    assert (figures["names_found"], figures["names_kept"]) == (4, 0.75)
    assert [one["holds"] for one in found["requirements"]] == [False, True]
    # Without --internal nothing is shown of names but whether what was required holds.
    shown = {one["name"] for one in found["figures"]}
    assert "original_share" in shown
    assert set(found["withheld"]) == shown ^ set(figures) >= {"names_kept", "persons_kept"}
    assert [one["name"] for one in found["results"]] == ["kept words"]
    assert not any("name" in one for one in found["results"][0]["figures"])
    assert found["released"] == ["persons_kept <= 0.4", "names_kept >= 0.7"]
    assert "stayed" not in found
    said = (out + err + str(written)).lower()
    assert not any(word in said for word in SECRETS)


@pytest.mark.cluster
def test_the_words_that_stayed_most_are_shown_to_who_asks(places, monkeypatch, capsys) -> None:
    place, source = places[0], places[2]
    found = dps.audit(place, against=source, columns=["body"], row_key="id", internal=True)
    assert found.stayed == (StayedWord("ada", 2), StayedWord("oslo", 1))
    assert found.withheld == found.released == []
    monkeypatch.setattr(pair_tables, "MOST_STAYED", 1)
    assert main(["audit", *places, "--internal", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["stayed"] == [{"word": "ada", "times": 2}]
    assert not any(word in json.dumps({**found, "stayed": None}).lower() for word in SECRETS)


BODY = AuditOptions(columns=["body"])
BEFORE = {
    "a.parquet": ["call the office today", "call the office today", "send money"],
    "b.parquet": ["send money", "the office is open today"],
}
# By place; equal texts of the source became different ones.
AFTER = {
    "a.parquet": ["call the house today", "visit the office today", "send money"],
    "b.parquet": ["take money", "the office is closed today"],
}


def written(folder: Path, texts: dict[str, list[str]]) -> str:
    folder.mkdir()
    for name, rows in texts.items():
        pq.write_table(pa.table({"body": rows}), folder / name)
    return str(folder)


def by_hand() -> tuple[int, int]:
    pairs = [
        (first, second)
        for name in BEFORE
        for before, after in zip(BEFORE[name], AFTER[name], strict=True)
        for first, second in zip(before.split(), after.split(), strict=True)
    ]
    return len(pairs), sum(first == second for first, second in pairs)


@pytest.mark.cluster
def test_rows_are_joined_by_file_and_place(spark, tmp_path: Path) -> None:
    table, source = written(tmp_path / "out", AFTER), written(tmp_path / "in", BEFORE)
    found = audit_table(AuditPlan.of(table, source, None, BODY), spark)
    figures = {one.name: one.value for one in found.figures if one.column is None}
    words, same = by_hand()
    assert figures["rows"] == 5
    assert figures["words"] == words
    assert figures["original_share_all"] == pytest.approx(same / words)
    assert figures["unchanged_rows"] == 1
    assert any("rows are paired by file" in reason for reason in found.left_out)


@pytest.mark.long
def test_files_that_were_written_anew_are_refused(spark, tmp_path: Path) -> None:
    renamed = {f"new-{name}": rows for name, rows in AFTER.items()}
    table, source = written(tmp_path / "out", renamed), written(tmp_path / "in", BEFORE)
    with pytest.raises(DataError, match="row_key: none given, and no file and place is in both"):
        audit_table(AuditPlan.of(table, source, None, BODY), spark)


@pytest.mark.long
def test_a_source_without_places_is_refused(spark, tmp_path: Path) -> None:
    table = written(tmp_path / "out", AFTER)
    (tmp_path / "in.json").write_text('{"body": "call the office"}\n', encoding="utf-8")
    plan = AuditPlan.of(table, str(tmp_path / "in.json"), None, replace(BODY, against_format="json"))
    with pytest.raises(SettingsError, match=r"\(against\) does not record the file and place of a row"):
        audit_table(plan, spark)
