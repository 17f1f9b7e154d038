"""Draws for an audit, made by every processor: what a mechanism would release of a text, with a public key of their own.

An audit of success needs the law, not the release: it draws anew, so that no key is needed and nothing of the run is used.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import numpy as np

from dptext_spark.arrays import I64, Bools, Ids
from dptext_spark.audit.attacks.tokens import Tokens
from dptext_spark.errors import require_choice
from dptext_spark.mechanisms.base import NO_WORD, PREVIOUS, Sampler, check_context
from dptext_spark.randomness.draws import Draws
from dptext_spark.runtime.threads import in_threads

LEVELS = ("token", "record", "dataset")
Level = Literal["token", "record", "dataset"]
SUBKEY = hashlib.sha256(b"attack").digest()  # public: these draws are released nowhere
DRAWN = 4_096  # draws of a part; whole tiles of the search for the word next to a noisy vector


def sampled(sampler: Sampler, ids: Ids, draws: Draws) -> Ids:
    """Return what `sampler.sample` does, int32[n]: a draw depends on its own number alone."""
    parts = in_threads(lambda part: sampler.sample(ids[part], draws.take(part)), np.arange(len(ids)), DRAWN)
    return np.concatenate([np.empty(0, np.int32), *parts])


def simulate(
    sampler: Sampler,
    words: Ids,
    drawn: Bools,
    bounds: I64,
    level: Level = "token",
    subkey: bytes = SUBKEY,
    numbers: Ids | None = None,
) -> Tokens:
    """Replace the words of a text.

    Args:
        sampler: of any mechanism.
        words: int32[n], ids, or `EDGE` and `UNKNOWN`.
        drawn: bool[n], which of them are drawn.
        bounds: int64[s + 1], of the records.
        level: `token` draws every occurrence anew; `record` one draw per record and word; `dataset` one per word.
        subkey: 32 bytes that the draws are made from.
        numbers: int32[n], the words by their numbers in the word table, on which draws may depend; None: `words`.

    Returns:
        The text with its outputs; what is not drawn stays as it is.

    Raises:
        SettingsError: another level than token, where draws depend on the word before them.
    """
    require_choice("level", level, LEVELS)
    if sampler.reads_context:
        check_context(level)
        return _in_context(sampler, words, drawn, bounds, subkey, words if numbers is None else numbers)
    at = np.flatnonzero(drawn)
    blocks = np.zeros((len(at), 2), np.uint64)
    if level == "token":
        blocks[:, 0] = at
    else:
        blocks[:, 1] = np.uint64(1) + words[at].astype(np.uint64)
    if level == "record":
        blocks[:, 0] = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))[at]
    # What shares a draw is drawn once.
    distinct, where = np.arange(len(at)), np.arange(len(at))
    if level != "token":
        _, distinct, where = np.unique(
            np.stack([blocks[:, 0], words[at].astype(np.uint64)], axis=1),
            axis=0, return_index=True, return_inverse=True,
        )  # fmt: skip
    drawn_words = np.ascontiguousarray(words[at[distinct]], np.int32)
    outputs = np.array(words, np.int32)
    outputs[at] = sampled(sampler, drawn_words, Draws(subkey, blocks[distinct]))[where.reshape(-1)]
    return Tokens(words, outputs, drawn, bounds)


def _in_context(
    sampler: Sampler, words: Ids, drawn: Bools, bounds: I64, subkey: bytes, numbers: Ids
) -> Tokens:  # fmt: skip
    """Replace the words of a text at token level, each after the word that is released before it."""
    at = np.flatnonzero(drawn)
    kept = Tokens(words, np.array(numbers, np.int32), drawn, bounds)
    left, _ = kept.neighbours(
        np.where(drawn, PREVIOUS, np.maximum(numbers, NO_WORD)).astype(np.int32), NO_WORD
    )
    blocks = np.zeros((len(at), 2), np.uint64)
    blocks[:, 0] = at
    outputs = np.array(numbers, np.int32)
    outputs[at] = sampler.sample_after(
        np.ascontiguousarray(words[at], np.int32), left[at], Draws(subkey, blocks)
    )
    return Tokens(words, outputs, drawn, bounds)
