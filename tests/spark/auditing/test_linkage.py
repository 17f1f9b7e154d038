"""Linkage of a written table, counted in workers, against the same adversaries on the driver; and what leaves for the workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.audit.attacks.linkage import FIGURES, Laws, Linker, Pairs, read_pairs, success
from dptext_spark.audit.audit_plan import AuditPlan
from dptext_spark.audit.options import AuditOptions
from dptext_spark.audit.table_audit import TableAudit
from dptext_spark.audit.text_classifier import Pair
from dptext_spark.config.load import parse_config, parse_model_config
from dptext_spark.config.model import RunConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText, Mahalanobis
from dptext_spark.model.compile import prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.display import silent
from dptext_spark.spark import audit_job as auditing
from dptext_spark.spark import audited_tables
from dptext_spark.spark import run_lists as shipping
from dptext_spark.spark.audit_job import audit_table
from dptext_spark.spark.runner import run
from dptext_spark.text.policy import Policy
from tests.core.names import beginning

ROWS, MARKER, KEY = 120, "zanzibarsecret", RunKey.insecure(11)
WORDS = "dog house money bank letter phone river doctor garden music window train".split()  # noqa: SIM905


class Written:
    def __init__(self, session: Any, folder: Path) -> None:
        random = np.random.default_rng(2)
        rows = []
        for i in range(ROWS):
            some = [WORDS[j] for j in random.integers(0, len(WORDS), 8)]
            note = " ".join(some[5:]) if i % 5 else None
            rows.append((i, f"author{i // 2}", f"The {' '.join(some[:5])} {MARKER}", note, i))
        self.source, self.target = str(folder / "source"), str(folder / "target")
        frame = session.createDataFrame(rows, "id long, author string, body string, note string, alone long")
        frame.repartition(3, "id").write.format("delta").save(self.source)
        self.config: RunConfig = parse_config(
            {
                "input": {"path": self.source}, "columns": ["body", "note"], "row_key": "id",
                "mechanism": {"name": "custext", "epsilon": 2.0, "k": 8}, "consistency": "record",
                "output": {"path": self.target, "other_columns": "keep"},
            }
        )  # fmt: skip
        run(self.config, session, key=RunKey.insecure(5))
        self.rows = frame.orderBy("id").toArrow()
        self.out = session.read.format("delta").load(self.target).orderBy("id").toArrow()

    def plan(self, config: RunConfig | None, **more: Any) -> AuditPlan:
        named = {} if config else {"columns": ["body", "note"], "row_key": "id"}
        return AuditPlan.of(self.target, self.source, config, AuditOptions(**{**named, **more}))


@pytest.fixture(scope="module")
def written(session, tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(session, tmp_path_factory.mktemp("linkage"))


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Path, int, bytes]]:
    """The files that an audit shipped: where, with which mode, and what was in them."""
    files: list[tuple[Path, int, bytes]] = []
    first = shipping.PrivateFile.__init__

    def noted(self: Any, *arguments: Any) -> None:
        first(self, *arguments)
        files.append((self.path, self.path.stat().st_mode & 0o777, self.path.read_bytes()))

    monkeypatch.setattr(shipping.PrivateFile, "__init__", noted)
    return files


def values(found: TableAudit) -> dict[str, float | None]:
    return {figure.name: figure.value for figure in found.figures if figure.column is None}


class Fixed(RunKey):
    @classmethod
    def generate(cls, *_: Any) -> RunKey:
        return KEY


@pytest.mark.long
def test_workers_count_what_the_driver_counts(session, written: Written, monkeypatch, shipped) -> None:
    monkeypatch.setattr(auditing, "RunKey", Fixed)
    monkeypatch.setattr(audited_tables, "WORDS_AT_ONCE", 100)
    asked = ["linkage_top1(50) <= 1", "linkage_10_words_top1(10000) <= 1"]
    found = values(audit_table(written.plan(written.config, author="author", require=asked), session))

    model, _ = prepare(written.config, silent)
    place = {row: at for at, row in enumerate(written.rows.column("id").to_pylist())}

    def pairs() -> Pairs:
        tables = (written.rows, written.out)
        sides = ([table.column(name).combine_chunks() for name in ("body", "note")] for table in tables)
        return read_pairs(model, model, Pair(*sides), np.arange(ROWS, dtype=np.uint64), KEY)

    linker = Linker(pairs(), KEY, None, Laws(model), shared=True)
    linker.add(pairs())
    compared = 0
    for name, standing, fit in linker.standings:
        if name.endswith("_words"):
            continue  # which words are known depends on the order of the queries
        for top in (1, 10):
            mean = success(fit.better, fit.equal, standing == 1, ROWS - 1, ROWS, top).mean()
            assert found[f"{FIGURES[name]}_top{top}"] == pytest.approx(mean)
            compared += 1
    assert compared == 8
    assert len(place) == ROWS == found["linkage_candidates"]
    assert found["linkage_top1"] > found["linkage_tfidf_top1"] > found["linkage_guess"]
    assert 0 < found["linkage_3_words_top1"] <= 1
    assert found["linkage_top1"] <= found["linkage_top1(50)"] <= 1
    assert found["linkage_10_words_top1(10000)"] is None  # the table has fewer rows
    assert 0 <= found["linkage_author_top1"] <= 1

    ((path, mode, content),) = [one for one in shipped if "queries" in str(one[0])]
    assert mode == 0o600
    assert MARKER.encode() in content
    assert path.stat().st_size == 0  # emptied


@pytest.mark.long
def test_without_settings_only_texts_are_compared(session, written: Written) -> None:
    audit = audit_table(written.plan(None), session)
    found = values(audit)
    assert found["linkage_top1"] == found["linkage_tfidf_top1"]
    assert "linkage_3_words_top1" not in found
    assert "singled_out" not in found
    assert any(reason.startswith("linkage by an adversary who knows the law") for reason in audit.left_out)


@pytest.mark.long
def test_a_sample_of_the_rows_is_candidates(session, written: Written, monkeypatch) -> None:
    monkeypatch.setattr(audited_tables, "MOST_CANDIDATES", 60)
    found = values(audit_table(written.plan(None, queries=30), session))
    assert 25 < found["linkage_candidates"] < 95


@pytest.mark.long
def test_what_cannot_be_linked_is_refused_or_left_out(session, written: Written, monkeypatch) -> None:
    with pytest.raises(DataError, match="author"):
        audit_table(written.plan(written.config, author="alone"), session)
    with pytest.raises(SettingsError, match="linkage_top1"):
        written.plan(written.config, queries=0, require=["linkage_top1 <= 0.5"])
    with pytest.raises(SettingsError, match="author"):
        written.plan(written.config, author="body")
    monkeypatch.setattr(auditing, "FEWEST", ROWS + 1)
    with pytest.raises(DataError, match="linkage_top1"):
        audit_table(written.plan(written.config, require=["linkage_top1(10000) <= 0.5"]), session)
    found = audit_table(written.plan(None), session)
    assert any(reason.startswith("linkage") for reason in found.left_out)
    assert "linkage_top1" not in values(found)


@pytest.mark.parametrize("limit", ["singled_out <= 0.1", "linkage_3_words_top1(100) <= 0.1"])
def test_what_takes_a_law_is_not_required_of_a_mechanism_without_one(limit: str) -> None:
    config = parse_model_config({"mechanism": {"name": "mahalanobis"}})
    options = AuditOptions(columns=["body"], row_key="id", require=[limit])
    asked = AuditPlan.of("/data/out", "/data/in", config, options)
    words = beginning(Lexicon.default(), 60)
    auditing.require_law(asked, Privatizer(words, CusText().compile(words), Policy()))
    with pytest.raises(SettingsError, match=r"^require: '.* 'mahalanobis' has none"):
        auditing.require_law(asked, Privatizer(words, Mahalanobis().compile(words), Policy()))


AMONG_MANY = ["linkage_top1(10000) <= 0.5"]


@pytest.mark.parametrize(
    "change", [{"author": "who"}, {"label": "mood"}, {"attribute": "town"}, {"require": AMONG_MANY}]
)
def test_what_was_asked_for_takes_fifty_rows(change: dict[str, Any]) -> None:
    def asked(**more: Any) -> AuditPlan:
        options = AuditOptions(columns=["body"], row_key="id", **more)
        return AuditPlan.of("/data/out", "/data/in", None, options)

    auditing.require_rows(asked(**change), auditing.FEWEST)
    auditing.require_rows(asked(), 1)
    ((field, value),) = change.items()
    with pytest.raises(DataError, match=rf"^{field}: .* needs 50 rows or more .*, not 49") as caught:
        auditing.require_rows(asked(**change), 49)
    assert (value if field != "require" else value[0]) in str(caught.value)


@pytest.mark.long
def test_settings_require_a_figure_among_more_rows_than_there_are(session, written: Written) -> None:
    required = parse_config({**_plain(written), "require": ["linkage_top1(10000) <= 0.9"]}).require
    config = written.config.model_copy(update={"require": required})
    found = audit_table(written.plan(config), session)
    assert found.verdict.not_measured == ["linkage_top1(10000) <= 0.9"]
    assert found.broken == []


def _plain(written: Written) -> dict[str, Any]:
    output = {"path": written.target, "other_columns": "keep"}
    return {"input": {"path": written.source}, "columns": ["body"], "row_key": "id", "output": output}


@pytest.mark.long
def test_the_author_s_other_texts_are_no_candidates(session) -> None:
    both = session.createDataFrame(
        [(1, "x y", "x y", "a"), (2, "y", "x", "a"), (3, "z", "z", "b"), (4, "w", "w", None)],
        "row_key long, s0 string, o0 string, author string",
    )
    pairs = audited_tables._authors(both, ["s0", "o0"], 10, KEY).toArrow()
    assert pairs.num_rows == 1
    assert pairs.column("author").to_pylist() == ["a"]
    assert pa.types.is_string(pairs.schema.field("s0").type)
