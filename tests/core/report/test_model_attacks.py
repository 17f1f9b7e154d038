"""Attacks for a report: with a law and without, with a public text and without, and never a private word."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dptext_spark.audit.prior import of_drawn, zipf
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import Calibrated, CusText
from dptext_spark.privatizer import Privatizer
from dptext_spark.report import model_attacks
from dptext_spark.report.model_attacks import attacks_on, read_lines
from dptext_spark.report.model_figures import Model, deniability_of
from dptext_spark.text.policy import Policy

WORDS = 40
RUN = {"guarantee": {"epsilon": 2.0}}


def _say(step: str, share: float | None) -> None:
    """Tell nobody."""


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    whole = Lexicon.default()
    start = 400  # past the stop words
    names = whole.vocabulary.strings().slice(start, WORDS)
    return Lexicon(Vocabulary.of(names), whole.vectors[start : start + WORDS].copy())


@pytest.fixture(scope="module")
def table(lexicon: Lexicon) -> Privatizer:
    return Privatizer(lexicon, CusText(epsilon=2.0, k=5).compile(lexicon), Policy(stop_words="draw"))


@pytest.fixture(scope="module")
def noisy(lexicon: Lexicon) -> Privatizer:
    return Privatizer(lexicon, Calibrated(epsilon=5.0).compile(lexicon))


def test_the_bayes_adversary_is_exact_beside_its_baselines(table: Privatizer) -> None:
    (found,), said = attacks_on(table, [], _say)
    prior = of_drawn(zipf(WORDS), None)
    joint = np.zeros((WORDS, WORDS))
    for word in range(WORDS):
        law = table.sampler.law(word)
        joint[word, law.ids] = prior[word] * law.probability
    assert found["success"] == pytest.approx(joint.max(axis=0).sum(), rel=1e-9) and found["exact"]
    assert found["random"] == 1 / WORDS and found["most_frequent"] == pytest.approx(prior[0])
    assert found["unprotected"] == 1.0 and not found["restricted"]
    assert "--public-text" in said and "--figures" in said
    json.dumps(found)


def test_a_public_text_is_learnt_from_and_attacked(table: Privatizer, lexicon: Lexicon) -> None:
    words = lexicon.vocabulary.strings().to_pylist()
    runs = [[words[(i // 2 + step) % WORDS] for step in range(4)] for i in range(200)]
    lines = [f"{' '.join(run)}!" for run in runs]
    found, said = attacks_on(table, lines, _say)
    alone, chain, linked = found
    # A word is always followed by the next one: whoever knows that finds more than whoever does not.
    assert (
        chain["success"] > chain["bayes"] + 0.1
        and not chain["restricted"]
        and "public text" in chain["measures"]
    )
    assert alone["name"] != chain["name"] and linked["records"] == 100 and "--public-text" not in said
    json.dumps(found)


def test_without_a_law_it_says_that_it_takes_too_long(noisy: Privatizer) -> None:
    found, said = attacks_on(noisy, [], _say)
    assert found == [] and "takes too long for a report" in said


def test_laws_that_are_too_long_are_left_out(table: Privatizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_attacks, "MOST_ENTRIES", WORDS * WORDS - 1)
    assert len(attacks_on(table, [], _say)[0]) == 1  # a table is read at once, however long the lexicon
    monkeypatch.setattr(model_attacks, "TableSampler", type("Another", (), {}))
    assert attacks_on(table, [], _say)[0] == []


def test_deniability_has_curves_where_there_is_a_law(table: Privatizer, lexicon: Lexicon) -> None:
    model = Model(table, CusText(k=5).over_epsilons(lexicon))
    found = deniability_of(RUN, model, _say)
    assert found.basis == f"Exact, over all {WORDS} words of the lexicon."
    assert [one["epsilon"] for one in found.by_epsilon] == [0.5, 1.0, 2.0, 4.0, 8.0]
    here = next(one for one in found.by_epsilon if one["epsilon"] == 2.0)["figures"][0]
    assert here == next(one for one in found.figures if one["name"] == here["name"])
    assert set(found.words.values()) <= set(lexicon.vocabulary.strings().to_pylist())
    without = deniability_of(RUN, Model(table), _say)
    assert without.by_epsilon == [] and "cannot be read here" in without.why_missing


def test_deniability_of_noise_is_estimated_between_bounds(noisy: Privatizer) -> None:
    found = deniability_of(RUN, Model(noisy), _say)
    assert found.basis.startswith(f"Estimated from 1,000 draws of each of {WORDS} words of {WORDS}")
    assert found.by_epsilon == [] and "no law to read" in found.why_missing
    for one in found.figures:
        assert not one["exact"] and one["lower"]["max"] <= one["max"] <= one["upper"]["max"]


@pytest.mark.parametrize(
    ("text", "said"), [(b"one line\n\n", "holds 1 lines"), (b"\xff\xfe\n", "as UTF-8 text")]
)
def test_a_public_text_that_is_none_is_refused(text: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "public.txt").write_bytes(text)
    with pytest.raises(DataError, match=said):
        read_lines(tmp_path / "public.txt")


def test_a_public_text_in_another_language_is_refused(table: Privatizer) -> None:
    with pytest.raises(DataError, match="public_text: no word of it would be drawn"):
        attacks_on(table, ["xqz qzx", "zzxq xxzq"], _say)


def test_lines_are_read_without_the_empty_ones(tmp_path: Path) -> None:
    (tmp_path / "public.txt").write_text("one\n\n  \ntwo\n", encoding="utf-8")
    assert read_lines(tmp_path / "public.txt") == ["one", "two"] and read_lines(None) == []
