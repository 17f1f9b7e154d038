"""The benchmark of the search for names: how it counts, on texts made for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks import name_search
from benchmarks.sizes import TOY
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.word_table import WordTable
from tests.core.names import beginning

TEXTS = """\
I\tO
met\tO
Ada\tB-person
Lovelace\tI-person
in\tO
paris\tB-location
.\tO
\t
the\tO
time\tB-person\tleft out
and\tO
Oslo\tB-location
"""


@pytest.fixture
def texts(tmp_path: Path) -> list[name_search.Labelled]:
    file = tmp_path / "some.conll"
    file.write_text(TEXTS)
    return name_search.labelled(file)


def test_labelled_texts_are_read(texts: list[name_search.Labelled]) -> None:
    assert [one.text for one in texts] == ["I met Ada Lovelace in paris .", "the time and Oslo"]
    assert [list(name_search.mentions(one)) for one in texts] == [
        [("person", [2, 3]), ("location", [5])], [("person", [1]), ("location", [3])],
    ]  # fmt: skip


def test_names_found_are_counted(monkeypatch: pytest.MonkeyPatch, texts: list[name_search.Labelled]) -> None:
    monkeypatch.setattr(name_search, "presidio", lambda: None)
    monkeypatch.setattr(name_search, "classifier", lambda: None)
    ways = name_search.ways_of(beginning(Lexicon.default(), 300))
    grid = name_search.found_grid(texts, ways)
    assert [row[0] for row in grid.rows[:2]] == [name_search.LISTS, name_search.RULES]
    assert grid.rows[1] == (name_search.RULES, 0.5, 0.5, 1.0, 1.0, 0.0)
    assert grid.rows[0][3] == 0.5  # in lower case a list alone does not find it
    nothing = (None,) * 5
    assert grid.rows[2:] == ((name_search.NO_MODEL, *nothing), (name_search.NO_PEER, *nothing))
    reviews = ["Ada Lovelace plays the part", "a film of two hours"]
    lists, rules, none, _ = name_search.taken_grid(reviews, ways).rows
    assert lists[0] == name_search.LISTS
    assert rules == (name_search.RULES, 10, 2, 0.2, 0.02, "missed")
    assert none == (name_search.NO_MODEL, 10, None, None, 0.02, None)


def test_a_classifier_is_counted_beside_the_lists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier

    monkeypatch.setenv("DPTEXT_CLASSIFIER", str(make_tiny_classifier(tmp_path)))
    model = name_search.classifier()
    assert model is not None
    table = WordTable.build(beginning(Lexicon.default(), 300).vocabulary, ())
    given = ["é Keller and Ada", "the time"]
    whole, none = name_search.covered_by_model(model, table, given)
    assert [given[0][i] for i in np.flatnonzero(whole)] == list("KellerAda")
    assert not none.any()
    by_rules = name_search.covered_by_rules(given)[0]
    assert (whole >= by_rules).all()


def test_a_peer_is_counted_by_what_its_spans_cover(
    monkeypatch: pytest.MonkeyPatch, texts: list[name_search.Labelled]
) -> None:
    class Peer:
        name = "peer"

        def find(self, given: pa.Array) -> TypedSpans:
            assert given.to_pylist() == [one.text for one in texts]
            return TypedSpans([0, 1], [2, 0], [5, 3], [0, 0])  # `met` and `the`

    monkeypatch.setattr(name_search, "presidio", Peer)
    ways = name_search.ways_of(beginning(Lexicon.default(), 300))
    assert name_search.found_grid(texts, ways).rows[3] == ("peer", 0.0, 0.0, 0.0, 0.0, 2 / 5)
    marks = name_search.covered_by(Peer(), [one.text for one in texts])  # type: ignore[arg-type]
    assert [np.flatnonzero(one).tolist() for one in marks] == [[2, 3, 4], [0, 1, 2]]


def test_what_stays_is_the_product_of_the_laws() -> None:
    lexicon = beginning(Lexicon.default(), 300)
    model = compile(CusText(epsilon=1.0, k=5), lexicon)
    stay = name_search.Stay.of(model, {"time", "people"})
    (number,) = lexicon.vocabulary.ids(pa.array(["time"]))
    law = model.sampler.law(int(number))
    assert law is not None
    own = float(law.probability[law.ids == number].sum())
    assert stay.share("Time") == pytest.approx(own)
    assert stay.share("the") == 1.0
    assert stay.share("Zorblax") == 0.0
    assert stay.share("time-people") == pytest.approx(own * stay.share("people"))


def test_the_section_measures_its_grids(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, texts: list[name_search.Labelled]
) -> None:
    del texts
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))
    section = name_search.measure(TOY, lambda step: None)
    assert len(section.grids) == 1
    assert len(section.skipped) == 2
    assert all(0.3 < float(row[3] or 0) <= 1.0 for row in section.grids[0].rows)
    assert np.array([row[2] for row in section.grids[0].rows]).min() > 0
