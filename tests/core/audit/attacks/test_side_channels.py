"""What length, punctuation, case and kept words tell: against signatures written out."""

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
    linked_records,
    patterns,
)
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.errors import DataError
from dptext_spark.text.tokens import EDGE, UNKNOWN

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


def test_what_does_not_fit() -> None:
    tokens, case = some_text(20, 5)
    with pytest.raises(DataError, match=r"^case: "):
        linked_records(tokens, case[:-1])
    with pytest.raises(DataError, match="no records"):
        linked_records(Tokens(tokens.words[:0], tokens.words[:0], tokens.drawn[:0], np.zeros(1, np.int64)))
