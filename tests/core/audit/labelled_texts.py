"""Made-up texts with labels, and a mechanism that replaces words."""

from __future__ import annotations

import numpy as np


def labelled(rows: int, seed: int, own_words: int = 30) -> tuple[list[str], list[str]]:
    """Texts of ten words, three of them of the label's own."""
    random = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(rows):
        label = int(random.random() < 0.4)
        own = [f"{'pn'[label]}x{random.integers(own_words)}" for _ in range(3)]
        shared = [f"common{random.integers(200)}" for _ in range(7)]
        texts.append(" ".join(str(word) for word in random.permutation(own + shared)))
        labels.append(["good", "bad"][label])
    return texts, labels


def replaced(texts: list[str], share: float, seed: int, swap: bool = False) -> list[str]:
    """Each word becomes another with this probability: any word, or (swap) that of the other label."""
    random = np.random.default_rng(seed)
    words = sorted({word for text in texts for word in text.split()})

    def other(word: str) -> str:
        if swap:
            return word.replace("px", "QX").replace("nx", "px").replace("QX", "nx")
        return words[int(random.integers(len(words)))]

    chosen = ((other(word) if random.random() < share else word for word in text.split()) for text in texts)
    return [" ".join(each) for each in chosen]
