"""How public values show themselves: one short line, and HTML that is escaped and tells nothing private."""

from __future__ import annotations

import copy
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dptext_spark as dp
from dptext_spark import audit
from dptext_spark.audit.comparison.corpus import CorpusSettings
from dptext_spark.audit.comparison.frontier import Frontier
from dptext_spark.audit.estimates import Metric
from dptext_spark.config.load import parse_config
from dptext_spark.disclosure.facts import Restricted, RunFacts
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.model.privatizer import SHOWN, Privatizer
from dptext_spark.report.sections.names import NOT_LOOKED_FOR
from dptext_spark.runtime.display import MOST
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.word_list import WordList

# Cut at spaces, so that a word may be markup.
POLICY = dp.Policy(oov="keep", tokenizer="whitespace", identifiers="none")
WORDS = ["<script>", "a&b", "parcel", "letter", "sister", "brother", "send", "give"]


class Cells(HTMLParser):
    """The rows of a table by their heads, its tags, and what stands in <mark>."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.rows: dict[str, str] = {}
        self.marked: list[str] = []
        self.head = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "th":
            self.head = ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "th" in self.open:
            self.head += data
            self.rows[self.head] = ""
        elif "td" in self.open:
            self.rows[self.head] += data
            if "mark" in self.open:
                self.marked.append(data)


@dataclass(frozen=True)
class Outcome:
    """The facts of a run, as far as its result reads them."""

    status: str = "succeeded"
    restricted: float = 0.123456

    def as_dict(self, *, internal: bool) -> dict[str, Any]:
        return {"run_id": "run-1", **({"restricted": self.restricted} if internal else {})}


@pytest.fixture(scope="module")
def lexicon() -> dp.Lexicon:
    vectors = np.random.default_rng(5).standard_normal((len(WORDS), 4)).astype(np.float32)
    return dp.Lexicon(Vocabulary.of(WORDS), vectors, "euclidean", "tiny <b>")


@pytest.fixture(scope="module")
def model(lexicon: dp.Lexicon) -> Privatizer:
    return dp.compile(dp.CusText(epsilon=1.0, k=8), lexicon, POLICY)


def shown(value: Any) -> Cells:
    cells = Cells(value._repr_html_())
    assert set(cells.tags) <= {"div", "strong", "table", "tbody", "tr", "th", "td", "p", "mark"}
    return cells


def test_a_lexicon_shows_its_first_words_escaped(lexicon: dp.Lexicon) -> None:
    assert repr(lexicon) == "Lexicon('tiny <b>', 8 words, 4 dimensions, euclidean)"
    html = lexicon._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;, a&amp;b, parcel" in html
    assert shown(lexicon).rows == {
        "name": "tiny <b>",
        "words": "8",
        "dimensions": "4",
        "metric": "euclidean",
        "first words": ", ".join(WORDS),
    }


@pytest.mark.parametrize("name", dp.MECHANISMS)
def test_a_mechanism_shows_its_parameters_with_their_meaning(name: str) -> None:
    needed: dict[str, Any] = {"m": 2} if name == "projection" else {}
    mechanism = dp.MECHANISMS[name](**needed)
    given = "".join(f", {one}={value}" for one, value in needed.items())
    assert repr(mechanism) == f"{type(mechanism).__name__}(epsilon={mechanism.epsilon!r}{given})"
    rows = shown(mechanism).rows
    assert rows["protects"] == mechanism.protects
    assert rows["paper"] == mechanism.paper
    assert [head.partition(" = ")[0] for head in rows][2:] == [*parameters_of(mechanism)]


def test_a_mechanism_keeps_its_words_for_itself() -> None:
    mechanism = dp.SanText(epsilon=2.0, sensitive=("ada", "grace"))
    assert repr(mechanism) == "SanText(epsilon=2.0, sensitive=<2 entries>)"
    assert "ada" not in mechanism._repr_html_()
    assert "sensitive = <2 entries>" in shown(mechanism).rows
    assert eval(repr(dp.CusText(epsilon=2.0, k=9)), {"CusText": dp.CusText}) == dp.CusText(epsilon=2.0, k=9)


def test_a_guarantee_and_a_certificate(model: Privatizer) -> None:
    claimed, found = model.guarantee(), dp.certify(model)
    assert repr(claimed) == ("Guarantee(epsilon_dp_within_group, ε = 1, one occurrence of a word, proved)")
    assert shown(claimed).rows == {
        "kind": "epsilon_dp_within_group",
        "ε": "1",
        "unit": "one occurrence of a word",
        "status": "proved",
    }
    assert f"<p>{claimed.sentence}</p>" in claimed._repr_html_()
    assert repr(found).startswith(
        "Certificate(confirmed, epsilon_dp_within_group, claimed ε = 1, loss at most 0."
    )
    assert shown(found).rows["verdict"] == "confirmed"
    assert shown(found).rows["finding"] == found.sentence
    approximate = dp.Certificate("not refuted", dp.Guarantee("approx_dp", 1.0, 1e-6), None, "x")
    assert repr(approximate) == "Certificate(not refuted, approx_dp, claimed ε = 1, δ = 1e-06)"
    assert repr(dp.Guarantee("approx_dp", 1.0, 1e-6, sentence="x")) == (
        "Guarantee(approx_dp, ε = 1, δ = 1e-06, word, proved)"
    )


def test_a_model_shows_a_draw_of_a_public_sentence(model: Privatizer) -> None:
    draws = [shown(model) for _ in range(12)]
    for cells in draws:
        assert cells.rows["before"] == SHOWN
        assert cells.rows["guarantee"] == str(model.guarantee())
        assert cells.rows["fingerprint"] == model.fingerprint
        words = [*zip(SHOWN.split(), cells.rows["after"].split(), strict=True)]
        assert all(after in WORDS if before in WORDS else after == before for before, after in words)
        changed = [(before, after) for before, after in words if before != after]
        assert cells.marked == [before for before, _ in changed] + [after for _, after in changed]
    assert len({cells.rows["after"] for cells in draws}) > 1  # a fresh key each: 8^3 draws


def test_a_drawn_word_that_is_markup_comes_out_escaped(model: Privatizer) -> None:
    # Each of 300 draws gives it with a probability above 7 %: none does with one below 1e-9.
    shown_all = "".join(model._repr_html_() for _ in range(100))
    assert "<script" not in shown_all
    assert "<mark>&lt;script&gt;</mark>" in shown_all


def test_a_model_keeps_nothing_of_what_it_shows(lexicon: dp.Lexicon) -> None:
    model = dp.compile(dp.CusText(epsilon=1.0, k=8), lexicon, POLICY, consistency="dataset")
    shown(model)
    assert model._draws == {}
    ids, key = pa.array([1]), dp.RunKey.insecure(7)
    drawn = [
        one.privatize(pa.array(["send the parcel"]), column="a", row_ids=ids, key=key)[0].to_pylist()
        for one in (model, copy.copy(model))
    ]
    assert drawn[0] == drawn[1]


def test_a_model_does_not_show_what_a_private_list_holds(model: Privatizer) -> None:
    key = dp.RunKey.insecure(5)
    listed = compile_names([WordList.of("names", [b"Please", b"London"])], name_key(key, "r"))
    knows = model.with_names(Names(listed, 1))
    (masked,) = knows.privatize(pa.array([SHOWN]), column="a", row_ids=pa.array([1]), key=key)[0].to_pylist()
    assert masked.count("[NAME]") == 2
    assert "[NAME]" not in shown(knows).rows["after"]
    assert knows.engine is not model.engine  # and what was shown has not taken its lists


def test_a_model_whose_words_hang_on_a_run_has_no_example(lexicon: dp.Lexicon) -> None:
    chosen = dp.Importance(provider="column", percent=50, weights=("w",))
    model = dp.compile(dp.CusText(epsilon=1.0, k=8), lexicon, POLICY, importance=chosen)
    assert "before" not in shown(model).rows
    assert "No example" in model._repr_html_()


def test_a_preview_shows_what_was_asked_in_html_only(model: Privatizer) -> None:
    found = dp.preview(model, "send <b>Secretive</b> parcel")
    assert "ecretive" not in repr(found)
    assert shown(found).rows["before"] == "send <b>Secretive</b> parcel"


def test_a_comparison_shows_no_figure() -> None:
    frontier = Frontier("word <alone>", "words kept", (), ())
    settings = CorpusSettings.__new__(CorpusSettings)
    found = audit.Comparison((frontier,), (), (("tem", 1.0, "why"),), {}, settings)
    assert repr(found) == "Comparison(0 points, 1 frontiers, 1 refused)"
    assert shown(found).rows["risks"] == "word <alone>"
    assert "word &lt;alone&gt;" in found._repr_html_()


def test_what_a_run_or_an_audit_returns_shows_no_figure(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    from dptext_spark import spark as dps

    figures = (Metric("original_share", 0.123456),)
    audited = dps.TableAudit("id", "/secret", "1", "/secret", "1", "m", figures, (), (), (), 1.0)
    assert repr(audited) == "TableAudit('id', 1 figures, not shown)"
    result = dps.RunResult(Outcome())  # type: ignore[arg-type]
    assert repr(result) == "RunResult('run-1', succeeded)"
    facts = RunFacts(
        config=parse_config(
            {
                "input": {"path": "/in"},
                "columns": ["body"],
                "output": {"path": "/out", "other_columns": ["id"]},
            }
        ),
        guarantee=dp.Guarantee("epsilon_dp", 1.0, sentence="A <bound> holds."),
        status="succeeded",
        run_id="<script>",
        rows=7,
        other_columns=("id",),
        restricted=Restricted({"words": 987_654.0, "drawn": 123_456.0, "changed_share": 0.123456}),
    )
    cells = shown(dps.RunResult(facts))
    assert cells.rows == {
        "rows": "7", "names": NOT_LOOKED_FOR, "guarantee": "A <bound> holds. [proved]", "in clear": "columns id",
    }  # fmt: skip
    html = dps.RunResult(facts)._repr_html_()
    assert html.startswith("<div><strong>run &lt;script&gt;: succeeded</strong>")
    assert not re.search(r"987|123|12\.3|0\.1", html)
    settings = tmp_path / "secret.yaml"
    settings.write_text(
        "input: {path: /secret, where: secret = 'secret', options: {nullValue: secret}, format: csv}\n"
        "columns: [secret]\nrow_key: secret_id\noutput: {path: /out}\n"
        "policy: {names: none, identifiers: {date: keep}}\n",
        encoding="utf-8",
    )
    config = dp.load_config(settings)
    assert "secret" not in repr(config.input).replace("/secret", "")
    assert str(config) == repr(config)
    assert repr(config) == f"RunConfig({config.mechanism!r}, Policy(), {config.consistency})"


def test_no_repr_is_long_or_private(lexicon: dp.Lexicon, model: Privatizer) -> None:
    names = tuple(f"secret{i}" for i in range(500))
    texts = pa.array(["secret one", "secret two"])
    _, counters = model.privatize(texts, column="a", row_ids=pa.array([1, 2]), key=dp.RunKey.generate())
    levels = (dp.Level(20, mechanism=dp.SanText(sensitive=names)), dp.Level(None, epsilon=6.0))
    values = [
        lexicon,
        model,
        counters,
        model.policy,
        model.guarantee(),
        dp.certify(model),
        dp.preview(model, "secret " * 300),
        dp.Policy(stop_word_list=names, identifiers="none", names={"lists": True, "model": "folder"}),
        dp.SanText(sensitive=names),
        dp.Importance(levels=levels),
        *levels,
        dp.Budget(50.0),
        dp.RunKey.generate(),
        audit.Records(texts, ("secret", "secret")),
        audit.ComparisonSpec({name: dp.TEM() for name in "abc"}, {name: [1.0, 2.0] for name in "abc"}),
        dp.Lexicon(lexicon.vocabulary, lexicon.vectors, name="n" * 500),
    ]
    for value in values:
        line = repr(value)
        assert len(line) <= MOST
        assert "\n" not in line
        assert "secret" not in line
        assert "array(" not in line
