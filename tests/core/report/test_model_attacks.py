"""Attacks for a report: with a law and without, with a public text and without, and never a private word."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dptext_spark.audit.attacks.bayes import bayes_attack
from dptext_spark.audit.attacks.frequency import FrequencyAttack
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import Prior, of_drawn, zipf
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MVC, TEM, CusText, Diffractor, TruncatedGumbel
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.report import audits_section
from dptext_spark.report.audits_section import attacks_on, read_lines
from dptext_spark.report.deniability_section import Model, deniability_of
from dptext_spark.text.policy import Policy
from tests.core.audit.plain_attacks import law_table

WORDS = 40
EPSILON = 2.0


def _say(step: str, share: float | None) -> None:
    """Tell nobody."""


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    whole = Lexicon.default()
    start = 400  # past the stop words
    names = whole.vocabulary.strings().slice(start, WORDS)
    return Lexicon(Vocabulary.of(names), whole.vectors[start : start + WORDS].copy())


def _lines(lexicon: Lexicon) -> list[str]:
    """200 records of four words; a word is always followed by the next one of the lexicon."""
    words = lexicon.vocabulary.strings().to_pylist()
    runs = [[words[(i // 2 + step) % WORDS] for step in range(4)] for i in range(200)]
    return [f"{' '.join(run)}!" for run in runs]


@pytest.fixture(scope="module")
def table(lexicon: Lexicon) -> Privatizer:
    return Privatizer(lexicon, CusText(epsilon=2.0, k=5).compile(lexicon), Policy(stop_words="draw"))


@pytest.fixture(scope="module")
def noisy(lexicon: Lexicon) -> Privatizer:
    return Privatizer(lexicon, MVC(epsilon=5.0).compile(lexicon), Policy(stop_words="draw"))


def test_the_bayes_adversary_is_exact_beside_its_baselines(table: Privatizer) -> None:
    (found,), said = attacks_on(table, [], _say)
    prior = of_drawn(zipf(WORDS), None)
    joint = prior[:, None] * law_table(table.sampler, WORDS)
    assert found.success == pytest.approx(joint.max(axis=0).sum(), rel=1e-9)
    assert (found.exact, found.restricted) == (True, False)
    assert (found.random, found.unprotected) == (1 / WORDS, 1.0)
    assert found.most_frequent == pytest.approx(prior[0])
    assert found.also is not None
    assert "Zipf" in found.also["prior"]
    assert "--public-text" in said
    json.dumps(found.as_dict())


def test_a_public_text_is_learnt_from_and_attacked(table: Privatizer, lexicon: Lexicon) -> None:
    found, said = attacks_on(table, _lines(lexicon), _say)
    alone, chain = found
    # Whoever knows what follows finds more than whoever does not.
    assert chain.success > chain.bayes + 0.1
    assert not chain.restricted
    assert alone.name != chain.name
    assert "--public-text" not in said
    json.dumps([one.as_dict() for one in found])


def test_without_a_law_it_is_between_bounds(noisy: Privatizer) -> None:
    (found,), _ = attacks_on(noisy, [], _say)
    # The reference: draws of every word, with bounds of their own (a false alarm of either has a probability of 1e-6).
    truth = bayes_attack(noisy.sampler, WORDS, draws=4_000, confidence=1 - 1e-6)
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper
    assert not found.exact
    assert found.lower < found.success < found.upper < found.lower + 0.1
    assert found.worst > found.success
    assert found.worst_lower < found.worst <= found.worst_upper
    assert [part in found.how for part in ("4,096", "0.95")] == [True, True]
    json.dumps(found.as_dict())


def test_draws_that_are_quick_cover_the_whole_lexicon(lexicon: Lexicon) -> None:
    sampler = TruncatedGumbel(epsilon=200.0, unsafe="published").compile(lexicon)
    (found,), _ = attacks_on(Privatizer(lexicon, sampler, Policy(stop_words="draw")), [], _say)
    truth = bayes_attack(sampler, WORDS, draws=4_000, confidence=1 - 1e-6)
    assert [part in found.how for part in (f"{WORDS} likeliest", "100.0 %", "200 draws")] == [True] * 3
    (_, chain), _ = attacks_on(Privatizer(lexicon, sampler, Policy(stop_words="draw")), _lines(lexicon), _say)
    assert chain.open
    assert found.lower <= truth.upper
    assert truth.lower <= found.upper < 1.0


@pytest.mark.parametrize("mechanism", [TEM(epsilon=3.0), Diffractor(epsilon=0.5)])
def test_long_laws_are_read_backwards_and_longer_ones_tried(
    mechanism: TEM | Diffractor, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch
) -> None:
    privatizer = Privatizer(lexicon, mechanism.compile(lexicon), Policy(stop_words="draw"))
    (read,), _ = attacks_on(privatizer, [], _say)
    monkeypatch.setattr("dptext_spark.audit.attacks.adversary.SMALL", WORDS - 1)
    (backwards,), _ = attacks_on(privatizer, [], _say)
    monkeypatch.setattr(audits_section, "MOST_ENTRIES", WORDS * WORDS - 1)
    (tried,), _ = attacks_on(privatizer, [], _say)
    assert (read.exact, backwards.exact) == (True, False)
    assert backwards.success == pytest.approx(read.success, rel=1e-6)
    assert backwards.also == read.also
    # Its interval is one of 0.95: eight standard deviations of 4,096 tries stand for the false-alarm rate.
    assert tried.success == pytest.approx(read.success, abs=8 * 0.5 / 64)


@pytest.mark.parametrize("level", ["token", "record"])
def test_noise_is_attacked_with_context(noisy: Privatizer, lexicon: Lexicon, level: str) -> None:
    privatizer = Privatizer(lexicon, noisy.sampler, Policy(stop_words="draw"), consistency=level)  # type: ignore[arg-type]
    (_, chain), _ = attacks_on(privatizer, _lines(lexicon), _say)
    assert chain.success > chain.bigram_baseline
    assert chain.settings["level"] == level
    assert chain.open == (level == "record")
    assert chain.upper >= chain.success


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_frequencies_are_matched_at_dataset_level(table: Privatizer, lexicon: Lexicon, level: str) -> None:
    privatizer = Privatizer(lexicon, table.sampler, Policy(stop_words="draw"), consistency=level)  # type: ignore[arg-type]
    found, _ = attacks_on(privatizer, _lines(lexicon), _say)
    if level != "dataset":
        assert [one.name for one in found] == ["Bayes-optimal adversary", "contextual adversary"]
        return
    _, chain, matched = found
    assert isinstance(matched, FrequencyAttack)
    # Each word is followed by the next one of the lexicon: the cipher is solved.
    assert matched.success > matched.random
    assert matched.bayes == chain.bayes
    assert (matched.restricted, matched.open) == (False, True)
    json.dumps(matched.as_dict())


def test_long_texts_are_cut(noisy: Privatizer, lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audits_section, "MOST_SEARCHES", 41)
    (_, chain), _ = attacks_on(noisy, _lines(lexicon), _say)
    assert chain.tokens == 40
    assert chain.records == 10


def test_deniability_has_curves_where_there_is_a_law(table: Privatizer, lexicon: Lexicon) -> None:
    model = Model(table, CusText(k=5).over_epsilons(lexicon))
    found = deniability_of(EPSILON, model, _say)
    assert list(found.by_epsilon) == [0.5, 1.0, 2.0, 4.0, 8.0]
    here = found.by_epsilon[2.0][0]
    there = found.figure(here.figure.name)
    assert there is not None
    assert here.as_dict() == there.as_dict()
    json.dumps(found.as_dict())
    assert set(found.words.values()) <= set(lexicon.vocabulary.strings().to_pylist())
    without = deniability_of(EPSILON, Model(table), _say)
    assert without.by_epsilon == {}
    assert without.why_missing


def test_deniability_of_noise_is_estimated_between_bounds(noisy: Privatizer, lexicon: Lexicon) -> None:
    def compile_at(epsilon: float) -> object:
        if epsilon > 4.0:
            raise SettingsError("mechanism.epsilon: too large")
        return MVC(epsilon=epsilon).compile(lexicon)

    found = deniability_of(EPSILON, Model(noisy, compile_at), _say)
    for one in (*found.figures, *(figure for at in found.by_epsilon.values() for figure in at)):
        assert not one.exact
        low, middle, high = (one.distribution(*end).at("max") for end in (("lower",), (), ("upper",)))
        assert low <= middle <= high
    assert list(found.by_epsilon) == [0.5, 1.0, 2.0, 4.0]
    assert len(found.by_epsilon[0.5][0].words) == 10
    assert "ε = 8" in found.why_missing
    assert deniability_of(EPSILON, Model(noisy), _say).why_missing


def test_a_public_text_is_read_without_empty_lines_or_refused(table: Privatizer, tmp_path: Path) -> None:
    file = tmp_path / "public.txt"
    for text, problem in ((b"one line\n\n", "holds 1 lines"), (b"\xff\xfe\n", "UTF-8")):
        file.write_bytes(text)
        with pytest.raises(DataError, match=problem):
            read_lines(file)
    file.write_text("one\n\n  \ntwo\n", encoding="utf-8")
    assert read_lines(file) == ["one", "two"]
    assert read_lines(None) == []
    with pytest.raises(DataError, match=r"^public_text: "):  # in another language
        attacks_on(table, ["xqz qzx", "zzxq xxzq"], _say)


def test_the_models_own_prior_is_used_and_named(table: Privatizer, lexicon: Lexicon) -> None:
    words = zipf(WORDS)[::-1].copy()
    given = replace(table, public=Prior("counts of a test", words))
    (found, context, *_), _ = attacks_on(given, _lines(lexicon), _say)
    assert found.also is not None
    assert found.also["prior"] == "counts of a test"
    assert found.most_frequent == pytest.approx(words[-1])
    assert context.also is not None
    assert context.also["prior"].endswith("completed by counts of a test")
    assert given.fingerprint == table.fingerprint
