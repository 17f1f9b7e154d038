"""A record keeps to its budget, whatever its number of drawn words: by enumeration over a toy lexicon."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.budget import Budget, BudgetSelector, laws_below
from dptext_spark.importance.levels import Importance
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText, SanText
from dptext_spark.mechanisms.privacy_loss.accountant import RecordBound, record_bound
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.certificate import certify
from dptext_spark.model.compile import compile
from dptext_spark.model.preview import preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import loss_of, most_words, record_account
from dptext_spark.randomness import RunKey
from dptext_spark.text.policy import Policy
from dptext_spark.text.selection import BEYOND, Texts
from tests.core.names import beginning

KEY = RunKey.insecure(3)
DRAW = Policy(stop_words="draw")
BUDGET = Budget(record=3.0, delta=0.01)
SIZE = 6
PLAIN = {"input": {"path": "/nowhere"}, "columns": ["body"], "output": {"path": "/out"}}


@cache
def small() -> Lexicon:
    return beginning(Lexicon.default(), SIZE)


@cache
def model(consistency: Any = "token") -> Privatizer:
    return compile(CusText(epsilon=2.0, k=3), small(), DRAW, consistency, budget=BUDGET)


def words(count: int) -> list[str]:
    return [small().vocabulary.word(i % SIZE) for i in range(count)]


def capped(most: list[int], consistency: str = "token") -> Privatizer:
    """The model with other numbers of words for its first laws."""
    made = model(consistency)
    selector = BudgetSelector(BUDGET, np.array(most), made.selector.further[: len(most) - 1])
    return replace(made, selector=selector, fingerprint="")


def drawn(made: Privatizer, texts: list[str]) -> list[str]:
    found, _ = made.privatize(pa.array(texts), column="c", row_ids=pa.array(range(len(texts))), key=KEY)
    return found.to_pylist()


@pytest.mark.parametrize(
    ("field", "given"),
    [
        *(("record", value) for value in (0, -1, float("inf"), float("nan"), True, "5")),
        *(("delta", value) for value in (0, 1, -0.1, float("nan"), "5")),
    ],
)
def test_a_budget_is_finite_and_its_delta_lies_between_0_and_1(field: str, given: Any) -> None:
    with pytest.raises(SettingsError, match=rf"^budget\.{field}: .* Choose "):
        Budget(**{"record": 5, "delta": 1e-6, field: given})


def test_laws_are_quarter_powers_of_two_below_the_mechanisms() -> None:
    assert laws_below(2.0)[:6] == (2.0, 1.681, 1.414, 1.189, 1.0, 0.84)
    for epsilon in (0.03, 0.05, 0.5, 2.0, 3.0, 4.0, 5.0, 30.0):
        laws = laws_below(epsilon)
        assert laws[0] == epsilon
        assert len(laws) <= 17
        assert sorted(laws, reverse=True) == list(laws)
        assert all(law >= max(epsilon / 16, 0.05) for law in laws[1:])


@pytest.mark.long
@pytest.mark.parametrize("consistency", ["token", "record"])
def test_the_law_is_the_largest_that_fits(consistency: str) -> None:
    made = model(consistency)
    for sampler, most in zip(made.samplers, made.selector.most.tolist(), strict=True):
        loss = loss_of(Privatizer(small(), sampler, DRAW))
        for draws, fits in ((most, True), (most + 1, False)):
            found = record_bound(loss, draws, sampler.guarantee.epsilon, BUDGET.delta)
            assert (found.epsilon <= BUDGET.record) is fits


def hockey_stick(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.maximum(one - np.exp(BUDGET.record) * other, 0.0).sum())


@pytest.mark.long
@pytest.mark.parametrize("consistency", ["token", "record"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_two_records_of_one_skeleton_pass_the_budget(consistency: str, count: int) -> None:
    """Outputs of each record are enumerated by the exact laws of the law that is chosen for it in its columns and elements."""
    made, of_record = model(consistency), consistency == "record"
    names, groups = words(SIZE), made.sampler.groups()
    by_skeleton: dict[Any, list[np.ndarray]] = {}
    for record in product(range(SIZE), repeat=count):
        texts = pa.array([names[word] for word in record])
        # A column of one text, and one of lists.
        head = Texts(texts[:1], np.zeros(1, np.int64))
        found = made.choose([head, Texts(texts[1:], np.zeros(count - 1, np.int64))])
        (level,) = {level for column in found for level in column.levels.tolist()}
        pattern = tuple(record.index(word) for word in record) if of_record else ()
        joint = np.ones(1)
        for word in dict.fromkeys(record) if of_record else record:
            law, whole = made.samplers[level].law(word), np.zeros(SIZE)
            whole[law.ids] = law.probability
            joint = np.outer(joint, whole).reshape(-1)
        skeleton = (pattern, tuple(int(groups[word]) for word in record))
        by_skeleton.setdefault((skeleton, level), []).append(joint)
    assert len({skeleton for skeleton, _ in by_skeleton}) == len(by_skeleton)  # one skeleton, one law
    pairs = [pair for laws in by_skeleton.values() for pair in permutations(laws, 2)]
    assert pairs
    assert all(hockey_stick(*pair) <= BUDGET.delta for pair in pairs)


def test_words_beyond_the_cap_are_masked_by_place() -> None:
    six, four, none = drawn(capped([2, 4]), [" ".join(words(6)), " ".join(words(4)), ""])
    assert [word == "[BGT]" for word in six.split()] == [False] * 4 + [True] * 2
    assert "[BGT]" not in four
    assert none == ""


def test_at_record_level_they_are_masked_by_first_occurrence() -> None:
    a, b, c = words(3)
    made = capped([1, 2], "record")
    (found,) = drawn(made, [f"{a} {b} {a} {c} {b} {c}"])
    cut = [word == "[BGT]" for word in found.split()]
    assert cut == [False, False, False, True, False, True]
    (chosen,) = made.choose([Texts(pa.array([f"{a} {b} {a} {c}"]))]) or ()
    assert chosen.levels.tolist() == [1, 1, 1, BEYOND]
    assert chosen.units.tolist() == [2 * made.units.multiples[1]]


def test_what_is_masked_is_counted_as_a_word_that_changed_and_was_not_drawn() -> None:
    texts = pa.array([" ".join(words(5))])
    totals = capped([2]).privatize(texts, column="c", row_ids=pa.array([0]), key=KEY)[1].totals()
    assert (totals["words"], totals["drawn"], totals["oov"]) == (5, 2, 0)
    assert totals["changed"] + totals["same"] == 5


def test_all_columns_of_a_row_count_together_and_batches_do_not() -> None:
    made = capped([2, 4])
    texts, ids = pa.array([" ".join(words(n)) for n in (1, 3, 6, 2, 4)]), pa.array(range(5))
    whole, _ = made.privatize(texts, column="c", row_ids=ids, key=KEY)
    for at in range(5):
        alone, _ = made.privatize(texts[at : at + 1], column="c", row_ids=ids[at : at + 1], key=KEY)
        assert alone.to_pylist() == whole.to_pylist()[at : at + 1]
    one, two = made.choose([Texts(texts[:1]), Texts(texts[1:2])])
    assert Counter([*one.levels.tolist(), *two.levels.tolist()]) == {1: 4}


def test_a_record_has_the_lesser_of_its_sum_and_the_budget() -> None:
    account = record_account(model())
    short, long = account.of(model().units.multiples[0]), account.of(10**6)
    assert (short.epsilon, short.delta, short.by) == (2.0, 0.0, "sum")
    assert (long.epsilon, long.delta, long.by) == (3.0, 0.01, "budget")


def test_a_preview_shows_what_is_masked() -> None:
    assert model().guarantee().epsilon == 2.0
    found = preview(capped([1, 2]), " ".join(words(3)))
    assert [word.reason for word in found.words] == ["level 2", "level 2", "beyond the budget"]
    assert found.words[-1].became == "[BGT]"


def test_it_is_saved_and_opened_again(tmp_path: Path) -> None:
    for made in (model(), model("record"), capped([3])):
        folder = tmp_path / made.fingerprint[:8]
        save_model(made, folder)
        again = open_model(folder)
        assert again.fingerprint == made.fingerprint
        assert again.budget == BUDGET
        texts = [" ".join(words(n)) for n in range(12)]
        assert drawn(again, texts) == drawn(made, texts)


@pytest.mark.parametrize(
    ("mechanism", "more", "said"),
    [
        (CusText(2.0, 3), {"importance": Importance(percent=30, provider="random")}, "with importance"),
        (CusText(2.0, 3), {"consistency": "dataset"}, "all records share its draws"),
        (CusText(2.0, 3, fluent=True), {}, "with mechanism.fluent"),
        (CusText(2.0, 3, remap="bayes"), {"policy": Policy(oov="draw")}, "a remap of its own"),
        (SanText(2.0), {}, "without ε of a record"),
        (CusText(2.0, 3), {"budget": Budget(record=0.01, delta=1e-6)}, "by the weakest law"),
    ],
)
def test_what_does_not_go_with_it_is_refused(mechanism: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        compile(mechanism, small(), **({"budget": BUDGET} | more))


@pytest.mark.parametrize("consistency", ["token", "record"])
def test_its_laws_are_certified_in_one_sentence(consistency: str) -> None:
    made = model(consistency)
    found, number = certify(made), len(made.samplers)
    assert number > 2
    assert f": {number} confirmed. " in found.sentence
    assert found.guarantee.epsilon == made.sampler.guarantee.epsilon == 2.0
    refuted = replace(made.sampler, guarantee=replace(made.sampler.guarantee, epsilon=0.01))
    selector = replace(made.selector, further=(refuted, *made.selector.further[1:]))
    found = certify(replace(made, selector=selector, fingerprint=""))
    assert found.verdict == "refuted"
    assert f"{number - 1} confirmed, 1 refuted. " in found.sentence


@pytest.mark.parametrize("consistency", ["token", "record"])
def test_a_preview_says_what_the_sentence_costs_as_a_record(consistency: str) -> None:
    a, b = words(2)
    for made, text in ((capped([2, 6], consistency), f"{a} {b} {a} {b}"), (model(consistency), a)):
        draws = len(text.split()) if consistency == "token" else len(set(text.split()))
        record = preview(made, text).record
        law = made.samplers[int(np.searchsorted(made.selector.most, draws))]
        assert (record.draws, record.total) == (draws, pytest.approx(draws * law.guarantee.epsilon))


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"budget": 5}, "budget"),
        ({"budget": {}}, r"budget\.record: not set"),
        ({"budget": {"delta": 1e-6}}, r"budget\.record: not set"),
        ({"budget": {"record": 5, "delta": 1}}, r"budget\.delta: 1 is not valid"),
        ({"budget": {"record": 5, "epsilon": 1}}, r"budget\.epsilon"),
        ({"budget": {"record": 5}, "record_key": "person"}, "record_key: 'person' is not valid"),
    ],
)
def test_settings_of_a_budget_that_are_wrong_are_refused(section: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse_config(PLAIN | section)


def test_settings_take_a_budget_and_leave_no_trace_of_none() -> None:
    assert "budget" not in parse_config(PLAIN | {"budget": None}).as_dict()
    config = parse_config({**PLAIN, "row_key": "id", "record_key": "id", "budget": {"record": 5}})
    assert config.budget == Budget(record=5.0, delta=1e-6)
    assert config.as_dict()["budget"] == {"record": 5.0, "delta": 1e-6}
    assert parse_config(config.as_dict()) == config


def test_records_of_several_rows_are_refused() -> None:
    ids = {"row_ids": pa.array([0, 1]), "record_ids": pa.array([7, 7])}
    with pytest.raises(DataError, match="or a budget"):
        model().privatize(pa.array(["a", "b"]), column="c", **ids, key=KEY)


def test_each_law_has_its_own_remap() -> None:
    made = compile(CusText(epsilon=2.0, k=3, remap="bayes"), small(), DRAW, budget=BUDGET)
    assert len(made.samplers) > 1
    assert all(sampler.remap is not None for sampler in made.samplers)


@pytest.mark.parametrize("wanted", [0, 1, 2, 3, 7, 8, 100, 99_999, 100_000])
def test_the_largest_number_is_found_by_bisection(wanted: int) -> None:
    def bound(draws: int) -> RecordBound:
        epsilon = 2.0 if draws <= wanted else 9.0
        return RecordBound(draws, epsilon, 0.0, "sum", epsilon)

    assert most_words(bound, Budget(record=8.0, delta=0.5)) == wanted
