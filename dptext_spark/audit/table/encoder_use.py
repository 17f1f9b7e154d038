"""What encoders say of a written table: how alike its texts are to those of its source, and which words they give away."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial

from dptext_spark.audit.attacks.masked_inference import masked_inference
from dptext_spark.audit.table.metrics import Figure, Findings
from dptext_spark.audit.utility.accuracy import Both
from dptext_spark.audit.utility.encoder_similarity import encoder_likeness
from dptext_spark.encoder.encoder import Encoder
from dptext_spark.encoder.outputs import guesses
from dptext_spark.encoder.vectors import vectors
from dptext_spark.text.engine import Engine

Progress = Callable[[int, int], None]


def likeness_to(source: str, texts: Both[Sequence[str]]) -> Findings:
    """Compare texts by an encoder, on all cores.

    Args:
        source: a folder or a package of the encoder.
        texts: [n], each twice.

    Raises:
        SettingsError, DataError: the encoder cannot be opened; no text has a sub-word.
    """
    encoder = Encoder.open(source, threads=os.cpu_count() or 1)
    found = encoder_likeness(partial(vectors, encoder), texts.plain, texts.private)
    every = {"embedding_cosine": found.mean} | {
        f"bert_{name.lower()}": estimate for name, estimate in found.matched.items()
    }
    return Findings(
        [Figure(name, one.value, one.lower, one.upper) for name, one in every.items()], [found.as_dict()]
    )


def named_by(
    source: str, engine: Engine, texts: Both[Sequence[str]], progress: Progress | None = None
) -> Findings:
    """Let a masked language model name words of texts, on all cores.

    Args:
        source: a folder or a package of the model.
        engine: that cuts texts, and knows which words are drawn.
        texts: [n], each twice.
        progress: is told how many words were asked for, of how many.

    Raises:
        SettingsError, DataError: the model cannot be opened; no drawn word stands in both texts.
    """
    model = Encoder.open(source, head=True, threads=os.cpu_count() or 1, field="masked_model")
    tokenizer = model.tokenizer
    found = masked_inference(
        engine, partial(guesses, model), tokenizer.form, frozenset(tokenizer.words()), texts.plain, texts.private,
        progress=progress,
    )  # fmt: skip
    return Findings(
        [
            Figure("masked_success", found.success, found.lower, found.upper),
            Figure("masked_unprotected", found.unprotected),
            Figure("masked_words", found.words),
        ],
        [found.as_dict()],
    )
