"""A text and its replacement as an attack sees them: ids, records, and which words were replaced.

Draws for an audit, made by every processor: what a mechanism would release of a text, with a public key of their own.

An audit of success needs the law, not the release: it draws anew, so that no key is needed and nothing of the run is used.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dptext_spark.arrays import I64, Bools, Ids, offsets
from dptext_spark.errors import DataError, require_choice
from dptext_spark.mechanisms.base import NO_WORD, PREVIOUS, Sampler, check_context
from dptext_spark.mechanisms.numerics.matrices import in_threads
from dptext_spark.randomness import Draws


@dataclass(frozen=True, eq=False)
class Tokens:
    """A tokenized text beside its replacement, word for word.

    Attributes:
        words: int32[n], the input: word ids, or `EDGE` (punctuation) and `UNKNOWN` (numbers, unknown words) of
            :mod:`dptext_spark.text.tokens`.
        outputs: int32[n], what was released in its place. Where nothing was drawn it is a number of the word table, or below 0
            (anything else), and read only where draws depend on the word before them.
        drawn: bool[n], where the mechanism drew. All else is released as it is, or tells nothing (`UNKNOWN`).
        bounds: int64[s + 1], record i is the tokens bounds[i]:bounds[i + 1].
    """

    words: Ids
    outputs: Ids
    drawn: Bools
    bounds: I64

    def __post_init__(self) -> None:
        """Check that the arrays fit each other."""
        n = len(self.words)
        if not n == len(self.outputs) == len(self.drawn):
            raise DataError(
                f"tokens: {n} words, {len(self.outputs)} outputs and {len(self.drawn)} flags given; valid: equal numbers."
            )
        bounds = self.bounds
        if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != n or (np.diff(bounds) < 0).any():
            raise DataError("tokens: the bounds of the records must ascend from 0 to the number of tokens.")
        if n and (self.drawn & ((self.words < 0) | (self.outputs < 0))).any():
            raise DataError("tokens: a token is marked as drawn that is no word of the lexicon.")

    @property
    def records(self) -> int:
        """How many records there are."""
        return len(self.bounds) - 1

    def by_record(self, flags: Bools) -> I64:
        """Count the flagged tokens of each record: int64[s]."""
        ends = offsets(flags)
        return np.asarray(ends[self.bounds[1:]] - ends[self.bounds[:-1]], np.int64)

    @property
    def before(self) -> Ids:
        """What is released before each token: int32[n], a number of the word table, or `NO_WORD`."""
        left, _ = self.neighbours(self.outputs, NO_WORD)
        return np.where(left >= 0, left, NO_WORD).astype(np.int32)

    def neighbours(self, values: Ids, edge: int) -> tuple[Ids, Ids]:
        """Return what stands before and after each token: int32[n] each.

        Args:
            values: int32[n], what stands for each token.
            edge: what stands before and after a record.
        """
        left, right = np.append(edge, values[:-1]), np.append(values[1:], edge)
        filled = np.diff(self.bounds) > 0
        left[self.bounds[:-1][filled]] = edge
        right[self.bounds[1:][filled] - 1] = edge
        return left[: len(values)].astype(np.int32), right[: len(values)].astype(np.int32)


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
    numbers: Ids | None = None,
) -> Tokens:
    """Replace the words of a text.

    Args:
        sampler: of any mechanism.
        words: int32[n], ids, or `EDGE` and `UNKNOWN`.
        drawn: bool[n], which of them are drawn.
        bounds: int64[s + 1], of the records.
        level: `token` draws every occurrence anew; `record` one draw per record and word; `dataset` one per word.
        numbers: int32[n], the words by their numbers in the word table, on which draws may depend; None: `words`.

    Returns:
        The text with its outputs; what is not drawn stays as it is.

    Raises:
        SettingsError: another level than token, where draws depend on the word before them.
    """
    require_choice("level", level, LEVELS)
    if sampler.reads_context:
        check_context(level)
        return _in_context(sampler, words, drawn, bounds, words if numbers is None else numbers)
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
    outputs[at] = sampled(sampler, drawn_words, Draws(SUBKEY, blocks[distinct]))[where.reshape(-1)]
    return Tokens(words, outputs, drawn, bounds)


def _in_context(
    sampler: Sampler, words: Ids, drawn: Bools, bounds: I64, numbers: Ids
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
        np.ascontiguousarray(words[at], np.int32), left[at], Draws(SUBKEY, blocks)
    )
    return Tokens(words, outputs, drawn, bounds)
