"""How public values show themselves: one short line, and HTML that is escaped and tells nothing private."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dptext_spark as dp
from dptext_spark import audit
from dptext_spark.audit.comparison_input import CorpusSettings
from dptext_spark.audit.frontier import Frontier
from dptext_spark.config.load import parse_config
from dptext_spark.config.requirements import Metric
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms.parameters import parameters_of
from dptext_spark.model.privatizer import SHOWN, Privatizer
from dptext_spark.runtime.display import MOST
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable, WordList
from tests.core.runtime.test_display import Elements

# Cut at spaces, so that a word may be markup.
POLICY = dp.Policy(oov="keep", tokenizer="whitespace", identifiers="none")
WORDS = ["<script>", "a&b", "parcel", "letter", "sister", "brother", "send", "give"]


@pytest.fixture(scope="module")
def lexicon() -> dp.Lexicon:
    vectors = np.random.default_rng(5).standard_normal((len(WORDS), 4)).astype(np.float32)
    return dp.Lexicon(Vocabulary.of(WORDS), vectors, "euclidean", "tiny <b>")


@pytest.fixture(scope="module")
def model(lexicon: dp.Lexicon) -> Privatizer:
    return dp.compile(dp.CusText(epsilon=1.0, k=8), lexicon, POLICY)


def shown(value: Any) -> Elements:
    cells = Elements(value._repr_html_())
    allowed = {"div", "strong", "table", "tbody", "tr", "th", "td", "p", "mark"}
    assert {tag for tag, _ in cells.found} <= allowed
    return cells


def test_values_are_shown_escaped(lexicon: dp.Lexicon, model: Privatizer) -> None:
    assert "<script>" not in lexicon._repr_html_()
    assert shown(lexicon).rows["first words"] == ", ".join(WORDS)
    claimed, found = model.guarantee(), dp.certify(model)
    assert (shown(claimed).rows["ε"], shown(claimed).rows["status"]) == ("1", "proved")
    assert (shown(found).rows["verdict"], shown(found).rows["finding"]) == ("confirmed", found.sentence)
    assert "δ = 1e-06" in repr(dp.Guarantee("approx_dp", 1.0, 1e-6))
    frontier = Frontier("word <alone>", "words kept", (), ())
    asked = dp.preview(model, "send <b>Secretive</b> parcel")
    assert shown(asked).rows["before"] == "send <b>Secretive</b> parcel"
    assert "ecretive" not in repr(asked)
    chosen = dp.Importance(provider="column", percent=50, weights=("w",))  # which words hangs on a run
    assert "before" not in shown(dp.compile(dp.CusText(k=8), lexicon, POLICY, importance=chosen)).rows
    compared = audit.Comparison((frontier,), (), (), {}, CorpusSettings.__new__(CorpusSettings))
    assert shown(compared).rows["risks"] == "word <alone>"


def test_a_mechanism_shows_its_parameters_and_keeps_its_words_for_itself() -> None:
    mechanism = dp.SanText(epsilon=2.0, sensitive=("ada", "grace"))
    assert repr(mechanism) == "SanText(epsilon=2.0, sensitive=<2 entries>)"
    assert "ada" not in mechanism._repr_html_()
    rows = shown(mechanism).rows
    assert "sensitive = <2 entries>" in rows
    assert [head.partition(" = ")[0] for head in rows] == ["paper", "protects", *parameters_of(mechanism)]


def test_a_model_shows_a_draw_of_a_public_sentence(model: Privatizer) -> None:
    draws = [shown(model) for _ in range(100)]
    for cells in draws:
        assert cells.rows["before"] == SHOWN
        assert model._draws == {}  # a model keeps nothing of what it shows
        words = [*zip(SHOWN.split(), cells.rows["after"].split(), strict=True)]
        assert all(after in WORDS if before in WORDS else after == before for before, after in words)
        changed = [(before, after) for before, after in words if before != after]
        assert cells.marked == [before for before, _ in changed] + [after for _, after in changed]
    # Each of 300 draws gives this word with a probability above 7 %: none does with one below 1e-9.
    assert "<script>" in {word for cells in draws for word in cells.marked}
    assert len({cells.rows["after"] for cells in draws}) > 1  # a fresh key each: 8^3 draws


def test_a_model_does_not_show_what_a_private_list_holds(model: Privatizer) -> None:
    key = dp.RunKey.insecure(5)
    listed = NameTable.of([WordList.of("names", [b"Please", b"London"])])
    knows = model.with_names(NameMatcher(listed))
    (masked,) = knows.privatize(pa.array([SHOWN]), column="a", row_ids=pa.array([1]), key=key)[0].to_pylist()
    assert masked.count("[NAME]") == 2
    assert "[NAME]" not in shown(knows).rows["after"]
    assert knows.engine is not model.engine  # and what was shown has not taken its lists


@dataclass(frozen=True)
class Outcome:
    """The facts of a run, as far as its result reads them."""

    status: str = "succeeded"
    restricted: float = 0.123456

    def as_dict(self, *, internal: bool) -> dict[str, Any]:
        return {"run_id": "run-1", **({"restricted": self.restricted} if internal else {})}


def test_what_a_run_or_an_audit_returns_shows_no_figure() -> None:
    pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
    from dptext_spark import spark as dps

    figures = (Metric("original_share", 0.123456),)
    audited = dps.TableAudit("id", "/secret", "1", "/secret", "1", "m", figures, (), (), (), 1.0)
    assert repr(audited) == "TableAudit('id', 1 figures, not shown)"
    assert repr(dps.RunResult(Outcome())) == "RunResult('run-1', succeeded)"  # type: ignore[arg-type]
    options = {"options": {"nullValue": "secret"}, "format": "csv"}
    settings = {"input": {"path": "/secret", "where": {"secret": "secret"}} | options, "row_key": "secret_id"}
    settings |= {"columns": ["secret"], "output": {"path": "/out", "other_columns": ["id"]}}
    bound = dp.Guarantee("epsilon_dp", 1.0, sentence="A <bound> holds.")
    counted = {"words": 987_654.0, "drawn": 123_456.0, "changed_share": 0.123456, "unknown_rows": 7.0}
    of_run: dict[str, Any] = {"status": "succeeded", "run_id": "<script>", "rows": 7, "figures": counted}
    facts = RunFacts(config=parse_config(settings), guarantee=bound, other_columns=("id",), **of_run)
    assert shown(dps.RunResult(facts)).rows["rows"] == "7"
    html = dps.RunResult(facts)._repr_html_()
    assert html.startswith("<div><strong>run &lt;script&gt;: succeeded</strong>")
    assert not re.search(r"987|123|12\.3|0\.1|MOSTLY UNKNOWN", html)
    assert "secret" not in repr(facts.config.input).replace("/secret", "")
    assert "secret" not in str(facts.config) + repr(facts.config)


def test_no_repr_is_long_or_private(lexicon: dp.Lexicon, model: Privatizer) -> None:
    names = tuple(f"secret{i}" for i in range(500))
    texts = pa.array(["secret one", "secret two"])
    _, counters = model.privatize(texts, column="a", row_ids=pa.array([1, 2]), key=dp.RunKey.generate())
    levels = (dp.Level(20, mechanism=dp.SanText(sensitive=names)), dp.Level(None, epsilon=6.0))
    values = [lexicon, model, counters, model.policy, model.guarantee(), dp.certify(model), *levels]
    values += [
        dp.preview(model, "secret " * 300),
        dp.Policy(stop_word_list=names, identifiers="none", names={"lists": True, "model": "folder"}),
        dp.SanText(sensitive=names),
        dp.Importance(levels=levels),
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
