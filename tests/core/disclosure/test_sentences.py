"""What is said of several draws together, for every mechanism, level and selection, and against laws that are multiplied out."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.config.load import parse_config
from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.guarantee import SENSITIVE, Guarantee
from dptext_spark.ledger.balance import after, spent_on
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS, TEM, CusText, Diffractor, Mechanism, SanText
from dptext_spark.model.certificate import certify
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import with_importance
from dptext_spark.text.selection import Texts
from tests.core.audit.plain_attacks import law_table
from tests.core.ledger.test_ledger import entry
from tests.core.mechanisms.test_contract import PARAMETERS
from tests.core.names import lexicon_at, names

SECOND = 1.75  # how much greater ε is at the second level
MECHANISM: dict[str, Mechanism] = {
    **{name: MECHANISMS[name](**parameters) for name, parameters in PARAMETERS.items()},
    "santext, all": SanText(),
    "santext, p = 1": SanText(sensitive=0.5, p=1.0),
    "diffractor, tem": Diffractor(form="tem"),
}
SELECTION: dict[str, dict[str, Any] | None] = {
    "all words": None,
    "a share": {"provider": "random", "percent": 50},
    "levels": {"provider": "random", "levels": [{"share": 40}, {"epsilon": 0.0}]},
    "levels of a share": {"provider": "random", "levels": [{"share": 40}, {"share": 30, "epsilon": 0.0}]},
}
KINDS = {"epsilon_dp", "epsilon_dp_within_group", "metric_dp", "approx_dp"}


class Case(NamedTuple):
    model: Privatizer
    config: RunConfig
    facts: RunFacts

    @property
    def promised(self) -> Guarantee:
        return self.facts.guarantee

    def said(self, heading: str | None = None) -> str:
        statement = disclosure(self.facts)
        return statement.markdown() if heading is None else " ".join(statement.under(heading))


def case(lexicon: Lexicon, mechanism: Mechanism, level: str, selection: dict[str, Any] | None) -> Case:
    settings: dict[str, Any] = {
        "input": {"path": "/in"}, "columns": ["body"], "output": {"path": "/out"}, "consistency": level,
        "mechanism": mechanism.as_dict(),
    }  # fmt: skip
    if selection is not None:
        second, chosen = mechanism.epsilon * SECOND, selection.get("levels", ())  # type: ignore[attr-defined]
        levels = [part | ({"epsilon": second} if "epsilon" in part else {}) for part in chosen]
        settings["importance"] = {**selection, **({"levels": levels} if levels else {})}
    config = parse_config(settings)
    model = Privatizer(lexicon, mechanism.compile(lexicon), consistency=config.consistency)
    if config.importance is not None:
        further = [one.drawn_by(mechanism).compile(lexicon) for one in config.importance.levels[1:]]
        model = with_importance(model, config.importance, tuple(further))
    return Case(model, config, RunFacts.planned(config, model))


CASES = [
    (name, level, chosen)
    for name, level, chosen in itertools.product(MECHANISM, ("token", "record", "dataset"), SELECTION)
    if level != "dataset" or SELECTION[chosen] is None  # importance with the dataset level is refused
]


@cache
def of(name: str, level: str, chosen: str) -> Case:
    vectors = np.random.default_rng(5).normal(size=(60, 4))
    return case(lexicon_at(vectors), MECHANISM[name], level, SELECTION[chosen])


def test_every_kind_is_there() -> None:
    assert {of(name, "token", "all words").promised.kind for name in MECHANISM} == KINDS
    assert {one.name for one in MECHANISM.values()} == set(MECHANISMS)


@pytest.mark.parametrize(("name", "level", "chosen"), CASES)
def test_what_is_composed_follows_from_the_kind(name: str, level: str, chosen: str) -> None:
    case = of(name, level, chosen)
    promised, statement = case.promised, case.said()
    by_distance, restricted = promised.kind == "metric_dp", (promised.metric or "").endswith(SENSITIVE)
    composes, every = level != "dataset", chosen == "all words"
    expected = {
        # A number of words times ε bounds no metric guarantee, and nothing at dataset level.
        "for each of its": composes and not by_distance,
        "sum of the distances between the": composes and by_distance,
        "A record has no single ε": composes and by_distance,
        "has no ε of its own at dataset level": not composes,
        "distinct drawn words": level == "record",
        "The same words must be chosen in both records": composes and not every,
        "differ only within the words' output sets": composes and promised.kind == "epsilon_dp_within_group",
        # A word that occurs several times: drawn each time, at its places' levels, or in clear at some of them.
        "n times ε": level == "token" and every,
        "n times ε for each unit of distance": level == "token" and every and by_distance,
        "spend the sum of ε": level == "token" and chosen == "levels",
        "an occurrence in clear reveals their word": level == "token" and "share" in chosen,
        # An output that is no stop word may be a word that was not chosen.
        "no stop word was drawn": False,
        "the source had no stop word there": True,
        # SanText+: nothing is said of words that are not sensitive, but that nothing is.
        "differ only where both have a sensitive word": composes and restricted,
        "30 sensitive words among the 60 words": restricted,
        "compares sensitive words with each other alone": restricted,
    }
    assert {phrase: phrase in statement for phrase in expected} == expected
    assert restricted == (name == "santext")
    if composes:
        assert ("of its level" in statement or "the level's ε" in statement) == ("levels" in chosen)
        assert ("δ" in composed(statement)) == (promised.kind == "approx_dp")


@pytest.mark.parametrize(("name", "level", "chosen"), CASES)
def test_the_ledger_names_the_words_that_it_is_about(name: str, level: str, chosen: str) -> None:
    promised = of(name, level, chosen).promised
    spent = entry(
        consistency=level, unit=promised.unit, kind=promised.kind, epsilon=promised.epsilon, delta=promised.delta,
        metric=promised.metric and f"{promised.metric}, space 0a1b",
    )  # fmt: skip
    for said in (str(spent_on([spent], "body")), after([], [spent], "/ledger").sentence):
        assert ("for each unit of distance" in said) == (promised.kind == "metric_dp")
        within = promised.kind == "epsilon_dp_within_group"
        assert ("between words that share an output set" in said) == within
        assert (", between sensitive words (spent once)" in said) == (name == "santext")
        assert ("δ" in said) == (promised.kind == "approx_dp")
    # SanText over all words promises something else, and the two are not added.
    both = spent_on([spent, replace(spent, entry="e", release="r", metric="euclidean, space 0a1b")], "body")
    assert len(both.figures) == (
        1 if name in ("santext, all", "santext, p = 1", "tem", "mvc", "truncated_gumbel") else 2
    ) or (promised.kind != "metric_dp")


def composed(said: str) -> str:
    (found,) = [line for line in said.splitlines() if line.startswith("- Over a record")]
    return found


# From here on a lexicon of five words, whose records of three words can all be compared.
FIVE = np.array([[0.0, 0.0], [0.4, 0.1], [1.5, 0.3], [2.0, 2.0], [5.0, 0.2]])
EXACT: dict[str, Mechanism] = {
    "custext": CusText(2.0, k=5),
    "custext, disjoint": CusText(2.0, k=2, mapping="conservative"),
    "santext": SanText(1.1),
    "santext+": SanText(1.1, sensitive=0.6, p=0.3),
    "santext+, p = 1": SanText(1.1, sensitive=0.6, p=1.0),
    "tem": TEM(1.1),
    "diffractor": Diffractor(0.8),
    "diffractor, lists": Diffractor(0.8, form="tem", lists=2),
}
RECORDS = list(itertools.product(range(5), repeat=3))
SLACK = 1e-9  # the rounding of three draws


def distances(mechanism: Mechanism) -> np.ndarray:
    if isinstance(mechanism, Diffractor):
        order = mechanism.walked(lexicon_at(FIVE)).order
        place = np.argsort(order, axis=1)
        return np.abs(place[:, :, None] - place[:, None]).max(axis=0).astype(float)
    wide = FIVE.astype(np.float32).astype(float)
    return np.linalg.norm(wide[:, None] - wide, axis=2)


def comparable(mechanism: Mechanism, tables: list[np.ndarray]) -> np.ndarray:
    """Which pairs of words the guarantee compares, bool[5, 5]."""
    if isinstance(mechanism, CusText):
        support = np.stack([table > 0 for table in tables])
        return (support[:, :, None] == support[:, None]).all(axis=(0, 3))
    listed = np.ones(5, bool)
    if isinstance(mechanism, SanText) and mechanism.sensitive != "none" and mechanism.p < 1:
        listed[:2] = False  # 0.6 of five words are the last three
    return (listed[:, None] & listed) | np.eye(5, dtype=bool)


def law_of(record: tuple[int, ...], drawn: list[int], tables: list[np.ndarray], once: bool) -> np.ndarray:
    """The law of the three outputs of a record together, float64[5, 5, 5]; a level past the last is no draw."""
    whole, first = np.ones((5, 5, 5)), {word: record.index(word) for word in record}
    axes = np.ogrid[:5, :5, :5]
    for at, word in enumerate(record):
        if drawn[at] == len(tables):
            whole = whole * (axes[at] == word)
        elif once and first[word] != at:
            whole = whole * (axes[at] == axes[first[word]])
        else:
            whole = whole * tables[drawn[at]][word][axes[at]]
    return whole


def read(found: Case) -> Callable[[tuple[int, ...], tuple[int, ...], list[int], np.ndarray], float]:
    """Read the bound of two records off the statement's sentence."""
    said = composed(found.said())
    epsilons = [one.guarantee.epsilon for one in found.model.samplers]
    added = re.search(r"ε adds up: (the ε of its level|[\d.]+) for each of its (distinct )?drawn words", said)
    summed = re.search(
        r"add up: (ε|the sum over the levels of importance of the level's ε) times the sum of the distances between the "
        r"(distinct )?drawn words of two records",
        said,
    )
    what, distinct = (added or summed).groups()  # type: ignore[union-attr]
    if what[0].isdigit():
        epsilons = [float(what)]

    def bound(one: tuple[int, ...], other: tuple[int, ...], drawn: list[int], away: np.ndarray) -> float:
        total = 0.0
        for at, level in enumerate(drawn):
            if level < len(found.model.samplers) and not (distinct and one[at] in one[:at]):
                total += epsilons[level] * (1.0 if added else away[one[at], other[at]])
        return total

    return bound


@pytest.mark.long
@pytest.mark.parametrize("chosen", SELECTION)
@pytest.mark.parametrize("level", ["token", "record"])
@pytest.mark.parametrize("name", EXACT)
def test_the_bound_holds_for_all_records_of_three_words(name: str, level: str, chosen: str) -> None:
    mechanism = EXACT[name]
    found = case(lexicon_at(FIVE), mechanism, level, SELECTION[chosen])
    bound, once = read(found), level == "record"
    tables = [law_table(one, 5) for one in found.model.samplers]
    away, pairs = distances(mechanism), comparable(mechanism, tables)
    words = np.array(names(5))
    texts = pa.array([" ".join(words[list(record)]) for record in RECORDS])
    (picked,) = found.model.choose([Texts(texts)]) or (None,)
    drawn = [[0, 0, 0]] * len(RECORDS) if picked is None else picked.levels.reshape(-1, 3).tolist()
    compared, most = 0, 0.0
    whole = [law_of(record, at, tables, once).ravel() for record, at in zip(RECORDS, drawn, strict=True)]
    for i, j in itertools.combinations(range(len(RECORDS)), 2):
        one, other = RECORDS[i], RECORDS[j]
        clear = [a for a, at in zip(one, drawn[i], strict=True) if at == len(tables)]
        clear_there = [b for b, at in zip(other, drawn[j], strict=True) if at == len(tables)]
        same = drawn[i] == drawn[j] and clear == clear_there
        if once:
            same = same and [one.index(a) for a in one] == [other.index(b) for b in other]
        if not same or not pairs[one, other].all():
            continue
        compared += 1
        here = (whole[i] > 0) | (whole[j] > 0)
        with np.errstate(divide="ignore"):
            loss = float(np.abs(np.log(whole[i][here]) - np.log(whole[j][here])).max())
        assert loss <= bound(one, other, drawn[i], away) + SLACK, (one, other, drawn[i])
        most = max(most, loss)
    assert compared > 3
    # What must not be said is false here: three times the largest ε is less than some record loses.
    if found.promised.kind == "metric_dp" and chosen != "a share":
        assert most > 3 * found.promised.epsilon
    assert math.isfinite(most)


@pytest.mark.parametrize("chosen", SELECTION)
@pytest.mark.parametrize("level", ["token", "record"])
def test_a_word_that_comes_twice_counts_as_it_is_said_to(level: str, chosen: str) -> None:
    """At token level each occurrence is a draw of its own; what a run counts is what these draws lose at most."""
    mechanism = CusText(2.0, k=5)
    found = case(lexicon_at(FIVE), mechanism, level, SELECTION[chosen])
    tables = [law_table(one, 5) for one in found.model.samplers]
    epsilons = [one.guarantee.epsilon for one in found.model.samplers]
    words = names(5)
    (picked,) = found.model.choose([Texts(pa.array([" ".join([words[0]] * 3)]))]) or (None,)
    drawn = [0, 0, 0] if picked is None else picked.levels.tolist()
    one, other = (law_of((word,) * 3, drawn, tables, level == "record").ravel() for word in (0, 4))
    if len(tables) in drawn:
        assert level == "token"  # one of the three stands in clear: nothing is left to be protected
        assert not ((one > 0) & (other > 0)).any()
        return
    here = (one > 0) | (other > 0)
    loss = float(np.abs(np.log(one[here]) - np.log(other[here])).max())
    counts = drawn if level == "token" else drawn[:1]
    of_one = [float(np.abs(np.log(tables[at][0] / tables[at][4])).max()) for at in counts]
    assert max(of_one) - SLACK <= loss <= sum(epsilons[at] for at in counts)
    assert (loss > 1.5 * max(of_one)) == (level == "token")
    units = len(counts) if picked is None else int(picked.units[0])
    expected = pytest.approx(sum(epsilons[at] for at in counts), rel=1e-12)
    assert found.model.units.of_one.compose(units).epsilon == expected


@pytest.mark.parametrize("name", EXACT)
def test_the_certificate_names_the_words_that_it_is_about(name: str) -> None:
    mechanism = EXACT[name]
    model = case(lexicon_at(FIVE), mechanism, "token", None).model
    table, away = law_table(model.sampler, 5), distances(mechanism)
    said = certify(model).sentence
    match = re.match(r"Confirmed: no pair of ([a-z ]+?) loses more than ([\d.]+)", said)
    assert match is not None
    about, most = match[1], float(match[2])
    restricted = {"custext": "words that share an output set", "santext+": "sensitive words"}
    assert about == restricted.get(name.split(",")[0] if "p = 1" not in name else name, "words")
    by_distance = model.guarantee().kind == "metric_dp"
    loss = np.zeros((5, 5))
    for w, v in itertools.permutations(range(5), 2):
        here = (table[w] > 0) | (table[v] > 0)
        with np.errstate(divide="ignore"):
            most_of_pair = float(np.abs(np.log(table[w][here]) - np.log(table[v][here])).max())
        loss[w, v] = most_of_pair / (away[w, v] if by_distance else 1.0)
    pairs = comparable(mechanism, [table])
    assert 0.4 * most < loss[pairs].max() <= most + SLACK
    # Said of all words it would be false; what holds of the others stands beside it, outside of what is confirmed.
    assert (loss.max() > most + SLACK) == (not pairs.all())
    assert "infinite" not in said
    assert ("It does not cover words that are not sensitive" in said) == (name == "santext+")
    if name == "santext+":
        per, more = (
            float(re.search(pattern, said)[1])  # type: ignore[index]
            for pattern in (r"such a word loses at most ([\d.]+) for each", r"ln\(1/p\) = ([\d.]+) more")
        )
        # An output that is not sensitive reveals its input.
        assert np.allclose(table[:2, :2], np.diag([0.7, 0.7]))
        logs = np.abs(np.log(table[:, None, 2:]) - np.log(table[:, 2:])).max(axis=2)
        mixed = (np.arange(5) >= 2)[:, None] != (np.arange(5) >= 2)
        assert (logs <= per * away + np.where(mixed, more, 0.0) + SLACK).all()
