"""Every word of some texts, as the engine cuts them, kept words too: what a provider of importance weighs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.lexicon.characters import APOSTROPHE, HYPHEN, PASS, SPACE, cell, decode, tables
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.text.chunks import strips
from dptext_spark.text.engine import OF_WORDS, Engine, byte_blocks, padded
from dptext_spark.text.lookup import IDENTIFIER, look_up
from dptext_spark.text.spans import Spans
from dptext_spark.text.tokenizer import cut_whitespace, cut_words

PUNCTUATION = -7  # among the codes: punctuation, which is no word
NO_MARKS, EACH_CHARACTER, BETWEEN_SPACES = range(3)


class Listing(NamedTuple):
    """The words of some texts.

    Attributes:
        words: where they lie, in order.
        codes: int32[n], the lexicon id of each word that the policy draws; of all others a number below 0, `PUNCTUATION` for
            punctuation.
    """

    words: Spans
    codes: npt.NDArray[np.int32]


def list_words(engine: Engine, texts: pa.Array, *, marks: bool = False) -> Listing:
    """Cut texts and list every word.

    Args:
        engine: whose tokenizer, words and policy count.
        texts: string, large_string or binary [rows]; NULLs have no words. What stands behind invalid UTF-8 is not cut.
        marks: list punctuation and symbols, too: one by one, or with the tokenizer `whitespace` what stands between spaces.
    """
    # In this policy every word that is kept is listed, too, because its case would be released otherwise.
    listing = replace(engine, policy=replace(engine.policy, case="lower", numbers="mask", oov="mask"))
    spaced = engine.policy.tokenizer == "whitespace"
    kind = (BETWEEN_SPACES if spaced else EACH_CHARACTER) if marks else NO_MARKS
    cut = cut_whitespace if spaced else cut_words
    data, rows = padded(texts)
    identifiers = None if engine.finder is None else engine.finder.find(data, rows, texts).spans
    cuts, chars = strips(data, rows, engine.policy.tokenizer, identifiers), tables()
    bounds, options = cuts.bounds, listing.options((np.uint64(2), np.uint64(3)))
    letters = (chars.stage, chars.classes, chars.lower, chars.upper)
    counts = np.zeros((len(cuts.rows), len(OF_WORDS)), np.int32)
    ends = np.zeros(len(bounds), np.int64)
    parts: list[tuple[Any, Any]] = []
    room, forms, total = 0, np.zeros((2, 4096), np.uint8), 0
    last = np.full(2, -1, np.int64)
    for r0, r1 in byte_blocks(cuts):
        size = int(bounds[r1] - bounds[r0])
        if size + 1 > room:
            room = size + 1
            work = (np.empty((room, 4), np.int64), *(np.empty((room, 2), np.uint64) for _ in range(2)), forms)
            places, codes = np.empty((room, 2), np.int64), np.empty(room, np.int32)
        found = cut(data, bounds, cuts.spans, r0, r1, listing.lookup, letters, counts, options, work)
        found = look_up(data, bounds, cuts.rows, rows, last, found, listing.lookup, counts, options, work)
        n = _list(data, bounds, r0, r1, work[0], found, kind, letters[:2], places, codes, ends, total)
        total += n
        parts.append((places[:n].copy(), codes[:n].copy()))
    where = np.concatenate([part for part, _ in parts]) if parts else np.empty((0, 2), np.int64)
    held = np.concatenate([part for _, part in parts]) if parts else np.empty(0, np.int32)
    spans = Spans(
        data, rows, np.ascontiguousarray(where[:, 0]), np.ascontiguousarray(where[:, 1]), ends[cuts.first]
    )
    return Listing(spans, held)


@compiled
def _list(
    data: Any, bounds: Any, r0: Int, r1: Int, tokens: Any, n: Int, kind: Int, chars: Any, places: Any,
    codes: Any, ends: Any, before: Int,
) -> Int:  # fmt: skip
    """Fill places, codes and ends of strips r0..r1; return how many words and marks there are."""
    stage, classes = chars
    t, at = np.int64(0), np.int64(0)
    for strip in range(r0, r1):
        position = bounds[strip]
        while True:
            more = t < n and (tokens[t, 3] & 0xFFFFFFFF) == strip
            stop = tokens[t, 0] if more else bounds[strip + 1]
            while kind != NO_MARKS and position < stop:
                code, length = decode(data, position, stop)
                held = classes[cell(code, stage)] if code >= 0 else SPACE
                end = position + length
                if kind == BETWEEN_SPACES and held != SPACE:
                    while end < stop:
                        code, length = decode(data, end, stop)
                        if code < 0 or classes[cell(code, stage)] == SPACE:
                            break
                        end += length
                if (kind == BETWEEN_SPACES and held != SPACE) or (
                    held == PASS or held == APOSTROPHE or held == HYPHEN
                ):
                    places[at, 0], places[at, 1], codes[at] = position, end, PUNCTUATION
                    at += 1
                position = end
            if not more:
                break
            if tokens[t, 2] != IDENTIFIER:  # it is replaced whole, and no word
                places[at, 0], places[at, 1] = tokens[t, 0], tokens[t, 1]
                codes[at] = tokens[t, 2]
                at += 1
            position = tokens[t, 1]
            t += 1
        ends[strip + 1] = before + at
    return at
