"""The search for settings on a public text: its figures are those of an audit, and what it finds holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from dptext_spark.audit import find_setting as module
from dptext_spark.audit.attacks.linkage import LOST, NOT_ASKED, RELEASED, Laws, Linker, Standings, read_pairs
from dptext_spark.audit.attacks.linkage_scores import Ranks
from dptext_spark.audit.comparison_input import Records
from dptext_spark.audit.find_setting import KEY, PublicText, find_setting, text_requirement
from dptext_spark.audit.text_classifier import Pair
from dptext_spark.config.load import parse_model_config
from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.model.compile import compile as compiled
from dptext_spark.report.mechanism_screens import settings_found
from tests.core.names import beginning

WORDS, ROWS = 200, 80


@pytest.fixture(scope="module")
def lexicon(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("words") / "lexicon"
    beginning(Lexicon.default(), WORDS).save(folder)
    return str(folder)


def config_of(lexicon: str, **mechanism: Any) -> ModelConfig:
    mechanism = {"name": "tem"} | mechanism
    policy = {"stop_words": "draw", "oov": "draw"}
    return parse_model_config({"lexicon": {"source": lexicon}, "mechanism": mechanism, "policy": policy})


def public(rows: int = ROWS, least: int = 3) -> Records:
    words = Lexicon.default().vocabulary.strings()[:WORDS].to_pylist()
    random = np.random.default_rng(2)
    texts = [" ".join(random.choice(words, random.integers(least, least + 4))) for _ in range(rows)]
    return Records(pa.array(texts), None)


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        ("attribute_gain <= 0.1", "'attribute_gain' is no figure of a public text"),
        ("linkage_author_top1(100) <= 0.1", "'linkage_author_top1' is no figure"),
        ("linkage_top2(100) <= 0.1", "'linkage_top2' is no figure"),
        ("linkage_top1(100) >= 0.1", "upper limit"),
        ("linkage_top1(81) <= 0.1", "at least 81 texts"),
        ("bayes token <= 0.3", "public: given"),
    ],
)
def test_what_a_text_cannot_tell_is_refused_before_anything_is_read(requirement: str, problem: str) -> None:
    with pytest.raises(SettingsError) as error:
        find_setting(config_of("no such folder"), [requirement], public())
    assert problem in str(error.value)


def test_few_texts_and_many_candidates_are_refused_before_anything_is_read() -> None:
    with pytest.raises(SettingsError, match=r"^public: 49 texts .* 50 or more"):
        find_setting(config_of("no such folder"), ["singled_out <= 0.1"], public(49))
    many = Records(pa.array(["a"] * 20_001), None)
    with pytest.raises(SettingsError, match="at most 20,000"):
        find_setting(config_of("no such folder"), ["linkage_top1(20001) <= 0.1"], many)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"mechanism": {"name": "mvc"}}, "a readable law"),
        ({"importance": {"percent": 50, "provider": "random"}}, "importance: "),
        ({"budget": {"record": 50, "delta": 1e-6}}, "budget: "),
    ],
)
def test_settings_without_one_law_are_refused(lexicon: str, changes: dict[str, Any], problem: str) -> None:
    config = parse_model_config({"lexicon": {"source": lexicon}} | changes)
    with pytest.raises(SettingsError, match=problem):
        find_setting(config, ["linkage_top1 <= 0.1"], public())


@pytest.mark.parametrize(
    "mechanism", [{}, {"name": "custext", "k": 9}, {"name": "custext", "remap": "bayes"}]
)
def test_figures_are_those_of_an_audit(lexicon: str, mechanism: dict[str, Any]) -> None:
    config = config_of(lexicon, **mechanism)
    words = Lexicon.open(lexicon)
    mechanism = replace(config.mechanism, epsilon=6.0)
    compiled_model = compiled(mechanism, words, config.policy, config.consistency)
    texts, rows = public(least=10).texts, np.arange(ROWS, dtype=np.uint64)
    names = ["linkage_top1(40)", "linkage_source_top10", "linkage_tfidf_top1", "linkage_10_words_top1(30)"]
    texts_of = (text_requirement(f"{name} <= 0.5") for name in (*names, "singled_out"))
    limits = [requirement for requirement in texts_of if requirement]
    public_text, lexicon_of_model = PublicText(config, words, texts, limits), compiled_model.lexicon
    assert isinstance(lexicon_of_model, Lexicon)
    model = public_text.model(lexicon_of_model, compiled_model.sampler)
    results, similarity = public_text.judged(lexicon_of_model, model.sampler)
    output, _ = model.privatize(texts, column="text", row_ids=pa.array(rows), key=KEY)
    pairs = read_pairs(model, model, Pair([texts], [output]), rows, KEY)
    linker = Linker(pairs, KEY, None, Laws(model), shared=False)
    linker.add(pairs)
    standings = {}
    for name, state, fit in linker.standings:
        asked = state != NOT_ASKED
        ranks = Ranks(*(count[asked] for count in fit))
        standings[name] = Standings(ranks, state[asked] == LOST, ROWS - 1)
    asked = ((RELEASED, 1, 40), ("source", 10), ("tfidf", 1), ("10_words", 1, 30))
    expected = [standings[name].rate(*of) for name, *of in asked]
    assert [result.value for result in results[:4]] == [estimate.value for estimate in expected]
    assert [result.judged for result in results[:4]] == [estimate.upper for estimate in expected]
    assert results[4].value == (standings[RELEASED].fit.possible + 1 < 10).mean()
    assert 0.0 < similarity < 1.0


def test_what_is_found_holds_and_more_does_not(lexicon: str) -> None:
    limit = "linkage_top1(60) <= 0.7"
    limits = [limit, "bayes token <= 0.9"]
    found = find_setting(config_of(lexicon), limits, public(), low=1.0, high=64.0, steps=6)
    assert {combination.chosen["remap"] for combination in (*found.met, *found.broken)} == {"none", "bayes"}
    best = found.met[0]
    assert best.epsilon is not None
    assert 1.0 < best.epsilon < 64.0
    assert best.seen[best.epsilon].findings[-1].judged <= 0.7
    assert min(epsilon for epsilon in best.seen if not best.seen[epsilon].holds) < 1.2 * best.epsilon
    left = [combination.left for combination in found.met]
    assert left == sorted(left, reverse=True)
    assert best.similarities[64.0] > best.left > best.similarities[1.0]
    assert not found.is_cut
    read = yaml.safe_load(found.settings)["mechanism"]
    assert (read["name"], read["epsilon"]) == ("tem", best.epsilon)
    assert read.get("remap", "none") == best.chosen["remap"]
    assert parse_model_config({"mechanism": read}).mechanism == replace(best.mechanism, epsilon=best.epsilon)
    assert found.as_dict()["met"][0]["epsilon"] == best.epsilon  # type: ignore[index,call-overload]
    assert f"{best.epsilon:g}" in settings_found(found).text()


def test_where_nothing_meets_it_the_nearest_is_named(lexicon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config, limit = config_of(lexicon, name="custext"), ["linkage_top1(60) <= 0.001"]
    nearest = r"none of 24 settings .* The nearest is custext, k (10|20|60|100), mapping"
    with pytest.raises(SettingsError, match=nearest):
        find_setting(config, limit, public(), low=1.0, high=64.0)
    monkeypatch.setattr(module, "FIRST_SECONDS", -1.0)
    with pytest.raises(SettingsError, match="none of the 1 of 24 settings tried in time"):
        find_setting(config, limit, public(), low=1.0, high=64.0)


def test_time_ends_the_search(lexicon: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SECONDS", -1.0)
    found = find_setting(config_of(lexicon), ["linkage_top1(60) <= 0.99"], public(), low=1.0, high=64.0)
    assert found.is_cut
    assert [len(combination.seen) for combination in found.met] == [1] * len(found.met)
    assert any("Time ended" in warning for warning in settings_found(found).warnings)


def test_a_text_too_short_for_the_words_that_are_known_is_refused(lexicon: str) -> None:
    with pytest.raises(SettingsError, match="no text has as many different drawn words"):
        find_setting(config_of(lexicon), ["linkage_10_words_top1 <= 0.1"], public())
