"""What length, punctuation, case and kept words tell: against signatures written out, and a case prior by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from dptext_spark.audit.attacks.side_channels import (
    CHANNELS,
    PATTERNS,
    case_channel,
    linked_records,
    patterns,
)
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.errors import DataError
from dptext_spark.text.tokens import EDGE, UNKNOWN
from tests.core.audit.plain_attacks import table_sampler

KEPT = 2  # words 0 and 1 are kept


def some_text(records: int, seed: int) -> tuple[Tokens, np.ndarray]:
    random = np.random.default_rng(seed)
    bounds = np.append(0, np.cumsum(random.integers(0, 5, records))).astype(np.int64)
    words = random.choice([EDGE, UNKNOWN, 0, 1, 2, 3, 4], int(bounds[-1])).astype(np.int32)
    drawn = words >= KEPT
    case = np.where(drawn, random.integers(0, 4, len(words)), 0).astype(np.uint8)
    return Tokens(words, words, drawn, bounds), case


def pattern(tokens: Tokens, case: np.ndarray, n: int) -> int:
    first = n in tokens.bounds[:-1] or tokens.words[n - 1] == EDGE
    return {0: 0, 1: 1 if first else 2, 2: 3, 3: 0}[int(case[n])]


def test_patterns() -> None:
    tokens, case = some_text(200, 1)
    found = patterns(tokens, case)
    assert found.tolist() == [pattern(tokens, case, n) for n in range(len(case))]
    assert set(found.tolist()) == set(range(len(PATTERNS)))


@pytest.mark.parametrize("with_case", [True, False])
def test_records_that_look_alike(with_case: bool) -> None:
    tokens, case = some_text(300, 2)
    found = linked_records(tokens, case if with_case else None)

    def shape(n: int) -> int:
        return pattern(tokens, case, n) if with_case else 0

    def mark(n: int, name: str) -> object:
        word, drawn = int(tokens.words[n]), bool(tokens.drawn[n])
        if word == EDGE:
            return "" if name == "length" else "|"
        steps: dict[str, Callable[[], object]] = {
            "length": lambda: "w",
            "and punctuation": lambda: "w",
            "and case": lambda: f"w{shape(n) if drawn else 0}",
            "and kept words": lambda: f"d{shape(n)}" if drawn else f"k{word}",
            "and every word": lambda: f"d{word}.{shape(n)}" if drawn else f"k{word}",
        }
        return steps[name]()

    for name in CHANNELS:
        signs = [
            " ".join(filter(None, (str(mark(n, name)) for n in range(a, b))))
            for a, b in zip(tokens.bounds[:-1], tokens.bounds[1:], strict=True)
        ]
        alike = Counter(signs)
        bits = math.log2(300) - sum(math.log2(alike[sign]) for sign in signs) / 300
        assert found.bits[name] == pytest.approx(bits)
        assert found.unique[name] == pytest.approx(sum(alike[sign] == 1 for sign in signs) / 300)
    assert found.exact
    assert found.records == 300
    assert found.most_bits == pytest.approx(math.log2(300))
    assert json.loads(json.dumps(found.as_dict()))["random"] == pytest.approx(1 / 300)


def test_order_matters() -> None:
    words = np.array([0, 2, 2, 0], np.int32)
    found = linked_records(Tokens(words, words, words >= KEPT, np.array([0, 2, 4])))
    assert found.bits["and case"] == 0.0
    assert found.bits["and kept words"] == 1.0


def test_case_tells_a_name_from_a_word() -> None:
    """Words 0 and 1 have one law; in public 0 is always lower, and 1 always Capitalised."""
    words = np.array([0, 0, 1] * 200, np.int32)
    bounds = np.arange(0, 601, 3)
    case = (words == 1).astype(np.uint8)
    everything = np.ones(600, np.bool_)
    tokens = Tokens(words, np.zeros(600, np.int32), everything, bounds)
    law = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    prior = np.array([0.6, 0.3, 0.1])
    found = case_channel(table_sampler(law), tokens, case, tokens, case, prior)
    assert (found.success, found.bayes) == (1.0, pytest.approx(2 / 3))
    assert found.shares == pytest.approx(
        {PATTERNS[0]: 2 / 3, PATTERNS[1]: 0, PATTERNS[2]: 1 / 3, PATTERNS[3]: 0}
    )
    assert found.word_bits == pytest.approx(-sum(p * math.log2(p) for p in prior))
    overall = (np.array([400, 0, 200, 0]) + 1) / 604
    given = np.array(
        [(np.array(n) + overall) / (sum(n) + 1) for n in ([400, 0, 0, 0], [0, 0, 200, 0], [0, 0, 0, 0])]
    )
    by_case = prior @ given
    expected = (2 * math.log2(given[0, 0] / by_case[0]) + math.log2(given[1, 2] / by_case[2])) / 3
    assert found.bits == pytest.approx(expected)
    assert found.bits > 0.5
    assert json.loads(json.dumps(found.as_dict()))["exact"] is False


def test_case_that_says_nothing() -> None:
    tokens, _ = some_text(100, 4)
    case = np.zeros(len(tokens.words), np.uint8)
    found = case_channel(table_sampler(np.eye(5)), tokens, case, tokens, case, np.full(5, 0.2))
    assert abs(found.bits) < 0.02
    assert found.success == found.bayes == 1.0


def test_what_does_not_fit() -> None:
    tokens, case = some_text(20, 5)
    with pytest.raises(DataError, match=r"^case: "):
        linked_records(tokens, case[:-1])
    with pytest.raises(DataError, match="no records"):
        linked_records(Tokens(tokens.words[:0], tokens.words[:0], tokens.drawn[:0], np.zeros(1, np.int64)))
    nothing = Tokens(tokens.words, tokens.words, tokens.drawn & False, tokens.bounds)
    with pytest.raises(DataError, match="none of them was drawn"):
        case_channel(table_sampler(np.eye(5)), nothing, case, tokens, case, np.full(5, 0.2))
