"""The benchmark of lists of names: its list, and that it measures its figures."""

from __future__ import annotations

from benchmarks import names
from benchmarks.sizes import TOY
from dptext_spark.lexicon.lexicon import Lexicon


def test_a_third_of_the_names_are_phrases_and_some_are_words_of_the_lexicon() -> None:
    lexicon = Lexicon.default()
    made = names.made_up(3_000, lexicon)
    assert made == names.made_up(3_000, lexicon)
    assert 900 < sum(b" " in one for one in made) < 1_100
    words = {one.encode() for one in lexicon.vocabulary.strings().to_pylist()}
    assert 5 <= sum(one in words for one in made) < 300


def test_the_section_measures_its_figures() -> None:
    section = names.measure(TOY, lambda step: None)
    assert [figure.unit for figure in section.figures] == ["s", "ns/word", "ns/word", "ns/word"]
    assert all(figure.value.median > 0 for figure in section.figures)
    assert section.facts["entries"] == 20 * TOY.rows
