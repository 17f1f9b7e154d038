"""Masked-token inference (Yue et al. 2021; Fu 2024): a masked language model names each word from the rest of the released text.

One place at a time, one mask for the whole word, the likeliest answer only, and it must be the whole word of the source. The
adversary does not look at what stands in the word's place. Privacy, as the papers have it, is 1 minus the share of words found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, Bools, spaced
from dptext_spark.audit.estimates import CONFIDENCE, RESAMPLES, rate
from dptext_spark.audit.results import WordAttack
from dptext_spark.errors import DataError
from dptext_spark.text.chunks import Spans
from dptext_spark.text.engine import Engine
from dptext_spark.text.pair_tokens import pair
from dptext_spark.text.tokens import DRAWN_WORD, Words, words_of

MOST = 2_000  # words that are asked for, in the table's text and again in the source's
_KEYS = np.uint64(11), np.uint64(13)  # equal words have equal hashes, and nothing else is asked of them
# Yields (places among the words, what is guessed there), until every word was guessed once.
Guess = Callable[[Spans], Iterator[tuple[I64, list[str]]]]


@dataclass(frozen=True, kw_only=True)
class MaskedInference(WordAttack):
    """What a masked language model finds.

    Attributes:
        success: share of the attacked words that it names from the released text.
        lower: of the bootstrap interval over records; and `upper`.
        unprotected: the same from the source's text.
        unchanged: share of the attacked words that came out as themselves.
        words: attacked: words that the policy draws and that stand in both texts.
        drawn: of how many they were taken, evenly spaced.
        records: that hold an attacked word.
        guessable: share of the attacked words that the model could name at all: one sub-word of its own.
    """

    name: str = "masked-token inference"
    measures: str = "The share of replaced words that a masked language model names when the word is masked, at its first guess."
    knows: str | None = (
        "The adversary sees the released text around the word, not what replaced it, and knows neither mechanism nor key; it "
        "knows the language from the texts that the model was trained on."
    )

    lower: float = field()
    upper: float = field()
    words: int
    drawn: int
    records: int
    guessable: float
    open: bool | None = True  # a larger model may find more


def masked_inference(
    engine: Engine,
    guess: Guess,
    form: Callable[[str], str],
    known: frozenset[str],
    plain: Sequence[str | None],
    private: Sequence[str | None],
    *,
    most: int = MOST,
    progress: Callable[[int, int], None] | None = None,
) -> MaskedInference:
    """Let a masked language model name words of records from their replacements, and from themselves.

    It costs two runs of the model over its text for each word that is attacked.

    Args:
        engine: that cuts texts, and knows which words are drawn.
        guess: what the model takes for the likeliest at each word, such as :func:`dptext_spark.encoder.encoder.guesses`.
        form: spells a word as the model does.
        known: what it can answer.
        plain: [s], the records.
        private: [s], their replacements.
        most: words that are attacked, evenly spaced over the drawn ones.
        progress: is told how many words were asked for, of how many.

    Raises:
        DataError: different numbers of records, or no drawn word that stands in both texts.
    """
    if len(plain) != len(private):
        raise DataError(f"records: {len(plain)} and {len(private)} given; valid: equal numbers.")
    source, output = (words_of(engine, pa.array(list(side), pa.string()), _KEYS) for side in (plain, private))
    partner = pair(source, output).partner
    drawn = np.flatnonzero((source.kind == DRAWN_WORD) & (partner >= 0))
    if not len(drawn):
        raise DataError("masked-token inference: no drawn word stands in both texts.")
    at = drawn[spaced(len(drawn), most)]
    there = partner[at]
    truth = [form(word) for word in _spelt(source, at)]
    done = 0

    def found(words: Words, places: I64) -> Bools:
        nonlocal done
        hits = np.zeros(len(places), np.bool_)
        for some, said in guess(_chosen(words.spans, places)):
            for place, one in zip(some.tolist(), said, strict=True):
                hits[place] = one == truth[place]
            done += len(said)
            if progress is not None:
                progress(done, 2 * len(places))
        return hits

    private_hits, plain_hits = found(output, there), found(source, at)
    record = np.searchsorted(source.bounds, at, side="right") - 1
    rows = len(plain)
    named = rate(np.bincount(record, private_hits, rows), np.bincount(record, minlength=rows))
    guessable = sum(word in known for word in truth) / len(truth)
    return MaskedInference(
        success=named.value,
        lower=named.lower,
        upper=named.upper,
        unprotected=float(plain_hits.mean()),
        unchanged=float((source.form[at] == output.form[there]).all(axis=1).mean()),
        words=len(at),
        drawn=len(drawn),
        records=len(np.unique(record)),
        guessable=guessable,
        confidence=CONFIDENCE,
        resamples=RESAMPLES,
        also={
            "replaced words attacked": f"{len(at):,} of {len(drawn):,}, evenly spaced",
            "records": f"{len(np.unique(record)):,}",
            "replaced words that are one sub-word of the model": f"{100 * guessable:.3g} %",
            "privacy, as the papers have it": f"{1 - named.value:.4f}",
        },
    )


def _spelt(words: Words, places: I64) -> Iterator[str]:
    starts, ends = words.spans.starts[places].tolist(), words.spans.ends[places].tolist()
    for start, end in zip(starts, ends, strict=True):
        yield words.spans.data[start:end].tobytes().decode("utf-8", "replace")


def _chosen(spans: Spans, places: I64) -> Spans:
    """Return some words of the same texts; places ascend."""
    bounds = np.searchsorted(places, spans.bounds, side="left").astype(np.int64)
    return Spans(spans.data, spans.rows, spans.starts[places], spans.ends[places], bounds)
