"""The peer of the engine: what anybody would write in plain Python, one token at a time, over the same texts and laws."""

from __future__ import annotations

import random
from collections.abc import Container
from itertools import accumulate
from typing import Any

from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.policy import OOV_MASK

Candidates = tuple[list[str], list[float]]


def laws_of(privatizer: Privatizer) -> dict[str, Candidates]:
    """Return each word's candidates and their cumulative probabilities, as `random.choices` takes them fastest."""
    words = privatizer.vocabulary.strings().to_pylist()
    laws: dict[str, Candidates] = {}
    for index, word in enumerate(words):
        law: Any = privatizer.sampler.law(index)
        candidates = [words[u] for u in law.ids]
        laws[word] = (candidates, list(accumulate(law.probability.tolist())))
    return laws


def plain_loop(rows: list[str], laws: dict[str, Candidates], kept: Container[str]) -> list[str]:
    """Sanitize rows: split at spaces, look up, draw, join. Case, digits and inner marks are not looked after."""
    choices = random.choices
    sanitized = []
    for text in rows:
        tokens = []
        for token in text.split(" "):
            word = token.strip(".,").lower()
            if word in kept:
                tokens.append(token)
                continue
            law = laws.get(word)
            tokens.append(OOV_MASK if law is None else choices(law[0], cum_weights=law[1])[0])
        sanitized.append(" ".join(tokens))
    return sanitized
