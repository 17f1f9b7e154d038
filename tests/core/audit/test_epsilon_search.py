"""Requirements on a word and the search for ε: against closed forms, from below, and honest where no ε will do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dptext_spark.arrays import Ids
from dptext_spark.audit.deniability import WordValues
from dptext_spark.audit.epsilon_search import (
    Calibration,
    Search,
    figures_of,
    judge,
    short,
    word_requirement,
    worst_and_typical,
)
from dptext_spark.audit.find_epsilon import calibrate
from dptext_spark.audit.word_figures import DistinctOutputs, Intervals, SmallestSet, StayRate
from dptext_spark.config.load import parse_model_config
from dptext_spark.errors import SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import ZIPF, Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MVC, CusText
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from tests.core.names import scattered

WORDS = 60


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return scattered(WORDS, 5, 8)


def staying(unchanged: Callable[[float], float]) -> Callable[[float], TableSampler]:
    """Two words that stay as they are with a given probability at each ε."""

    def compile_at(epsilon: float) -> TableSampler:
        p = unchanged(epsilon)
        ids = np.array([[0, 1], [1, 0]], np.int32)
        share = np.array([[p, 1 - p]] * 2)
        promised = Guarantee("epsilon_dp_within_group", epsilon or 1.0)
        return TableSampler.of(ids, share, promised, TableSummary(words=2))

    return compile_at


def search(
    compile_at: Callable[[float], object], *texts: str, total: int = 2, **options: object
) -> Calibration:
    requirements = [word_requirement(text) for text in texts]
    ends = {name: options.pop(name) for name in ("low", "high", "steps") if name in options}
    options = {"sample": lambda: np.arange(total, dtype=np.int32)} | options
    made = Search(compile_at=compile_at, requirements=requirements, total=total, **options)  # type: ignore[arg-type]
    return made.largest(**ends)  # type: ignore[arg-type]


@pytest.mark.parametrize("limit", [0.55, 0.7, 0.9, 0.99])
def test_two_words_in_closed_form(limit: float) -> None:
    """CusText on a set of two: N_w = 1/(1 + e^(-ε/2)), so the limit is met up to ε = 2·ln(limit/(1 - limit))."""
    lexicon = Lexicon(Vocabulary.of(["a", "b"]), np.array([[1, 0], [0, 1]], np.float32))
    found = search(CusText(k=2).over_epsilons(lexicon), f"N_w max <= {limit}")
    true = 2 * math.log(limit / (1 - limit))
    assert found.epsilon is not None
    assert true * (1 - 2e-3) <= found.epsilon <= true
    assert found.epsilon == short(found.epsilon)
    assert found.at(found.epsilon).holds
    assert (found.monotone, found.open_end, found.holds_from) == ((True,), False, 0.01)
    assert len(found.points) <= 24
    assert (found.words, found.total, found.draws) == (2, 2, None)
    above = min(point.epsilon for point in found.points if point.epsilon > found.epsilon)
    assert not found.at(above).holds
    assert above <= found.epsilon * 1.005


def test_several_requirements_the_strictest_decides(lexicon: Lexicon) -> None:
    compile_at = CusText(k=7).over_epsilons(lexicon)
    texts = ("N_w max <= 0.6", "S_w[100] min >= 6.9")
    alone = [search(compile_at, text, total=WORDS).epsilon for text in texts]
    both = search(compile_at, *texts, total=WORDS)
    assert None not in alone
    assert both.epsilon == pytest.approx(min(alone), rel=2e-3)
    worst = both.at(both.epsilon).findings[0]  # type: ignore[arg-type]
    law = compile_at(both.epsilon).law(worst.word)  # type: ignore[arg-type]
    assert worst.value == law.probability[law.ids == worst.word][0]


def test_a_stretch_in_the_middle() -> None:
    """A floor and a ceiling: the largest ε of the stretch between them, and where it begins."""
    rising = staying(lambda epsilon: epsilon / (1 + epsilon))
    found = search(rising, "N_w max <= 0.8", "N_w min >= 0.3")
    assert found.epsilon == pytest.approx(4.0, rel=2e-3)
    assert found.epsilon <= 4.0
    assert found.holds_from is not None
    assert found.holds_from >= 3 / 7


def test_a_figure_that_wanders_is_told() -> None:
    """Up, down and up again: no search between the points of the grid, and the stretch from below ends before the first peak."""
    wandering = staying(lambda epsilon: 0.5 + 0.3 * math.sin(2 * math.log(epsilon)))
    found = search(wandering, "N_w max <= 0.7", low=0.5, high=50.0, steps=20)
    assert found.monotone == (False,)
    assert len(found.points) == 10  # the grid alone
    first_bad = next(point.epsilon for point in found.points if not point.holds)
    assert found.epsilon == max(point.epsilon for point in found.points if point.epsilon < first_bad)
    assert any(point.holds for point in found.points if point.epsilon > first_bad)
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["monotone"] == {"N_w max <= 0.7": False}


def test_it_holds_to_the_end_of_the_range() -> None:
    found = search(staying(lambda epsilon: 0.25), "N_w max <= 0.3", low=0.123456, high=7.654321)
    assert found.epsilon == 7.654321
    assert found.open_end
    assert found.monotone == (True,)
    assert found.points[0].epsilon == 0.123456
    assert len(found.points) == 12


def test_none_will_do() -> None:
    found = search(staying(lambda epsilon: 0.5 + epsilon / 1000), "N_w max <= 0.4")
    assert found.epsilon is None
    assert found.holds_from is None
    closest = found.closest()
    assert closest.epsilon == 0.01
    assert closest.findings[0].judged == pytest.approx(0.50001)


def test_an_epsilon_that_the_mechanism_refuses_is_passed_over() -> None:
    def compile_at(epsilon: float) -> TableSampler:
        if epsilon < 1:
            raise SettingsError("mechanism.epsilon: below the floor")
        return staying(lambda e: e / (1 + e))(epsilon)

    found = search(compile_at, "N_w max <= 0.8")
    assert found.epsilon == pytest.approx(4.0, rel=2e-3)
    assert found.points[0].refused == "mechanism.epsilon: below the floor"
    assert not found.points[0].holds
    with pytest.raises(SettingsError, match=r"refuses all ε from 0.01 to 0.5: mechanism\.epsilon: below"):
        search(compile_at, "N_w max <= 0.8", high=0.5)


def test_without_a_law_the_bound_decides(lexicon: Lexicon) -> None:
    """The same draws as a lax reading by the estimate would: the cautious one ends lower, and at its end the bound holds."""
    compile_at = MVC().over_epsilons(lexicon)
    chosen: list[Ids] = []

    def sample() -> Ids:
        chosen.append(worst_and_typical(lexicon.vectors, 10))
        return chosen[-1]

    found = search(compile_at, "N_w max <= 0.5", total=WORDS, steps=12, sample=sample)
    assert len(chosen) == 1
    counts = (found.words, found.total, found.draws, found.confidence)
    assert counts == (len(chosen[0]), WORDS, 1000, 0.99)
    assert found.epsilon is not None
    finding = found.at(found.epsilon).findings[0]
    assert not finding.exact
    assert finding.value < finding.judged <= 0.5
    assert finding.word in chosen[0]
    above = [point for point in found.points if point.epsilon > found.epsilon]
    assert all(point.findings[0].judged > 0.5 for point in above)
    assert any(p.findings[0].value < 0.5 for p in above)


def test_the_words_that_are_drawn_from(lexicon: Lexicon) -> None:
    away = np.linalg.norm(lexicon.vectors[:, None].astype(float) - lexicon.vectors[None], axis=2)
    np.fill_diagonal(away, np.inf)
    alone = set(np.argsort(-away.min(axis=1))[:6].tolist())
    words = worst_and_typical(lexicon.vectors, 12)
    assert set(words.tolist()) == alone | {0, 11, 23, 35, 47, 59}
    assert words.dtype == np.int32
    assert (np.diff(words) > 0).all()
    assert worst_and_typical(lexicon.vectors, 60).tolist() == list(range(60))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"low": 0.0}, "low, high: 0 and 100 "),
        ({"low": 2.0, "high": 2.0}, "low, high: 2 and 2 "),
        ({"high": math.inf}, "low, high"),
        ({"low": math.nan}, "low, high"),
        ({"steps": 3}, "steps: 3 "),
    ],
)
def test_a_range_that_is_none(options: dict[str, float], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        search(staying(lambda epsilon: 0.5), "N_w max <= 0.8", **options)
    with pytest.raises(SettingsError, match="require: none given"):
        search(staying(lambda epsilon: 0.5))


def test_four_digits() -> None:
    cases = {1.0: 1.0, 0.012349: 0.01234, 99999.0: 99990.0, 3.0004: 3.0, 6.008: 6.008, 0.7: 0.7, 1e-7: 1e-7}
    for epsilon, rounded in cases.items():
        assert short(epsilon) == rounded == short(rounded)


@pytest.mark.long
def test_the_lexicons_prior_is_used_and_named(tmp_path: Path) -> None:
    lexicon = scattered(30, 4, 3)
    skewed = np.append(np.full(29, 0.1 / 29), 0.9)  # one word is most of any text
    lexicon.save(tmp_path / "plain")
    lexicon.with_prior(Prior("a skewed prior", skewed)).save(tmp_path / "skewed")
    risks = {}
    for name in ("plain", "skewed"):
        config = parse_model_config({"lexicon": {"source": str(tmp_path / name)}, "mechanism": {"k": 5}})
        found = calibrate(config, ["bayes token <= 0.99"], low=0.5, high=1.0, steps=4).calibration
        assert found.guessing is not None
        risks[found.guessing.prior] = found.points[0].findings[0].judged
    assert risks["a skewed prior"] > 0.9 > risks[ZIPF]


@pytest.mark.parametrize(
    ("text", "figure", "statistic", "relation", "limit"),
    [
        ("N_w max <= 0.5", StayRate(), "max", "<=", 0.5),
        ("N_w p99 < 0.3", StayRate(), "p99", "<", 0.3),
        ("  S_w   min>=10 ", SmallestSet(), "min", ">=", 10.0),
        ("S_w(0.1) p99.9 > 2", SmallestSet(0.1), "p99.9", ">", 2.0),
        ("S_w[1000] p5 >= 2e1", DistinctOutputs(1000), "p5", ">=", 20.0),
        ("S_w[7] mean<=-1", DistinctOutputs(7), "mean", "<=", -1.0),
        ("N_w p100 <= 1", StayRate(), "p100", "<=", 1.0),
    ],
)
def test_forms(text: str, figure: object, statistic: str, relation: str, limit: float) -> None:
    found = word_requirement(text)
    subject = found.subject
    assert (subject.figure, subject.name, found.relation, found.limit) == (figure, statistic, relation, limit)
    assert word_requirement(str(found)) == found


@pytest.mark.parametrize("form", ["token <= 0.3", "worst < 0.9", "max <= 1", "p99.5 <= 0.5", "mean >= 0.01"])
def test_forms_of_bayes(form: str) -> None:
    found = word_requirement(f"bayes {form}")
    assert str(found) == f"bayes {form}"
    assert figures_of([found]) == []


@pytest.mark.parametrize(
    "text",
    [
        *("", "N_w", "N_w max", "N_w max <=", "N_w max 0.5", "max N_w <= 0.5", "N_w <= 0.5", "N_w max = 0.5"),
        *("N_w max == 0.5", "N_w max <= half", "N_w max <= nan", "N_w max <= inf", "N_w median <= 0.5"),
        *("N_w p101 <= 0.5", "N_w p <= 0.5", "N_w p-5 <= 0.5", "N max <= 0.5", "n_w max <= 0.5"),
        *("S_w[0] min >= 1", "S_w[1000001] min >= 1", "S_w[] min >= 1", "S_w[-1] min >= 1"),
        *("N_w[3] max <= 1", "S_w[1.5] min >= 1", "N_w token <= 0.3", "S_w worst >= 3", "bayes <= 0.3"),
        *("bayes median <= 0.3", "bayes(0.1) max <= 0.3"),
        *("S_w(0) min >= 1", "S_w(1) min >= 1", "S_w() min >= 1", "S_w(x) min >= 1", "S_w(1e) min >= 1"),
        "N_w max <= 0.5 and S_w min >= 10",
    ],
)
def test_what_has_another_form_is_told_the_valid_ones(text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        word_requirement(text)
    assert str(refused.value).startswith(f"require: {text!r} is not valid. Choose ")


def measured(values: list[float], lower: list[float], upper: list[float], draws: int | None) -> WordValues:
    of = Intervals(*(np.array(part) for part in (values, lower, upper)))
    words, confidence = np.array([7, 2, 9], np.int32), 0.99 if draws else None
    return WordValues(StayRate(), words, of, 10, draws, confidence, "three")


@pytest.mark.parametrize(
    ("text", "value", "judged", "holds", "word"),
    [
        ("N_w max <= 0.6", 0.5, 0.6, True, 2),
        ("N_w max < 0.6", 0.5, 0.6, False, 2),
        ("N_w max <= 0.59", 0.5, 0.6, False, 2),
        ("N_w min >= 0.05", 0.1, 0.05, True, 7),
        ("N_w min > 0.05", 0.1, 0.05, False, 7),
        ("N_w p50 <= 0.4", 0.3, 0.4, True, 9),
        ("N_w p50 >= 0.2", 0.3, 0.2, True, 9),
        ("N_w mean <= 0.3999", 0.3, 0.4, False, None),
    ],
)
def test_estimates_are_compared_by_their_cautious_bound(
    text: str, value: float, judged: float, holds: bool, word: int | None
) -> None:
    found = judge(word_requirement(text), measured([0.1, 0.5, 0.3], [0.05, 0.4, 0.2], [0.2, 0.6, 0.4], 1000))
    assert (found.value, found.judged) == pytest.approx((value, judged))
    assert (found.holds, found.word, found.exact) == (holds, word, False)


def test_exact_figures_are_compared_as_they_are() -> None:
    exact = measured([0.1, 0.5, 0.3], [0.1, 0.5, 0.3], [0.1, 0.5, 0.3], None)
    found = judge(word_requirement("N_w max <= 0.5"), exact)
    assert found.holds
    assert found.exact
    assert found.judged == 0.5
    requirement = word_requirement("N_w max <= 0.4")
    assert requirement.shortfall(judge(requirement, exact)) == pytest.approx(0.25)
    assert requirement.shortfall(found) == 0.0


def test_a_figure_is_measured_once() -> None:
    texts = ("N_w max <= 0.5", "S_w min >= 3", "N_w p99 <= 0.3", "S_w(0.05) p5 >= 4", "S_w[9] min >= 2")
    assert figures_of(map(word_requirement, texts)) == [StayRate(), SmallestSet(), DistinctOutputs(9)]
