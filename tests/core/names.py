"""Words for small lexicons."""

from __future__ import annotations


def names(count: int) -> list[str]:
    """Distinct words of four letters, which every tokenizer cuts whole; at most 456,976."""
    return ["".join(chr(97 + number // 26**place % 26) for place in (3, 2, 1, 0)) for number in range(count)]
