"""Attacks on the compiled model alone, and on a public text that it replaces anew: no private text, nothing of the run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from dptext_spark.audit.bayes import bayes_attack
from dptext_spark.audit.bigrams import Bigrams
from dptext_spark.audit.context import context_attack
from dptext_spark.audit.side_channels import linked_records
from dptext_spark.audit.simulated import simulate
from dptext_spark.errors import DataError
from dptext_spark.figures import percent_down, percent_up
from dptext_spark.mechanisms.kernels.alias import TableSampler
from dptext_spark.privatizer import Privatizer
from dptext_spark.text.reading import drawn_words, read

Progress = Callable[[str, float | None], None]
MOST_ENTRIES = 1_000_000_000  # probabilities of a lexicon's laws that are read for a report
MOST_LINES = 20_000  # of a public text that are looked at
NAMED = 10  # words that are found most often
_TOO_LONG = (
    "The Bayes-optimal and the contextual adversary were not computed: they take the law of every word of the lexicon, and "
    "for this mechanism that takes too long for a report."
)
_NO_TEXT = (
    "The contextual adversary needs a public text to learn from and to attack: --public-text names one."
)
_OTHERS = "Results of attacks on the text itself can be added by --figures."


def attacks_on(
    privatizer: Privatizer, lines: Sequence[str], say: Progress
) -> tuple[list[dict[str, Any]], str]:
    """Attack a model.

    Args:
        privatizer: the model.
        lines: of a public text, a record each; none for attacks that need no text.
        say: is told each step.

    Returns:
        (results, as dictionaries; what is said of attacks that are not among them).
    """
    total = len(privatizer.vocabulary)
    table = isinstance(privatizer.sampler, TableSampler)
    if privatizer.sampler.law(0) is None or (not table and total * total > MOST_ENTRIES):
        return [], f"{_TOO_LONG} {_OTHERS}"
    say("attacking word by word", None)
    found = [_alone(privatizer)]
    if not lines:
        return found, f"{_NO_TEXT} {_OTHERS}"
    say("attacking with context", None)
    return [*found, *_in_context(privatizer, lines)], _OTHERS


def _alone(privatizer: Privatizer) -> dict[str, Any]:
    """Return the attack on one word at a time."""
    total = len(privatizer.vocabulary)
    found = bayes_attack(privatizer.sampler, total, drawn=drawn_words(privatizer.engine)).as_dict()
    strings = privatizer.vocabulary.strings()
    return {
        **found,
        "most_frequent": found["baseline"],
        "random": 1.0 / found["candidates"],
        "worst": found["worst_mean"],
        "also": {
            "words that can be the input": f"{found['candidates']:,}",
            "median word": percent_up(found["by_word"]["0.5"]),
            "words that are never guessed": percent_down(found["never"]),
            "most often guessed": ", ".join(strings[word].as_py() for word in found["worst_words"][:NAMED]),
            "prior": found["settings"]["prior"],
        },
    }


def _in_context(privatizer: Privatizer, lines: Sequence[str]) -> list[dict[str, Any]]:
    """Learn from every second line, and attack the others as the model would release them."""
    total, engine = len(privatizer.vocabulary), privatizer.engine
    learnt = read(engine, pa.array(lines[::2], pa.string()))
    text = read(engine, pa.array(lines[1::2], pa.string()))
    if not text.drawn.any():
        raise DataError("public_text: no word of it would be drawn; valid: a text in the lexicon's language.")
    bigrams = Bigrams.of(learnt.words, learnt.bounds, total)
    tokens = simulate(privatizer.sampler, text.words, text.drawn, text.bounds, privatizer.consistency)
    attack = context_attack(
        privatizer.sampler, tokens, bigrams, drawn_words(engine), restricted=False
    ).as_dict()
    attack["measures"] = (
        f"{attack['measures']} Tried on a public text that this model replaced anew, not on the run's."
    )
    attack["also"] = {
        "replaced words attacked": f"{attack['tokens']:,}",
        "records": f"{attack['records']:,}",
        "words learnt from": f"{bigrams.tokens:,}",
        "context adds": f"{100 * attack['gain']:.1f} ({100 * attack['gain_lower']:.1f} to {100 * attack['gain_upper']:.1f}) "
        "points to each word alone",
    }
    linked = linked_records(tokens, text.case, restricted=False).as_dict()
    linked["read"] = (
        "A bar as long as the last one says that so much alone singles records out, whatever ε is."
    )
    return [attack, linked]


def read_lines(file: Path | None) -> list[str]:
    """Return the first lines of a public text that are not empty; none without a file.

    Raises:
        DataError: it cannot be read, or holds fewer than two lines.
    """
    if file is None:
        return []
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise DataError(
            f"public_text: {str(file)!r} cannot be read as UTF-8 text ({type(error).__name__})."
        ) from None
    lines = [line for line in text.splitlines() if line.strip()][:MOST_LINES]
    if len(lines) < 2:
        raise DataError(
            f"public_text: {str(file)!r} holds {len(lines)} lines; valid: two or more, a record each."
        )
    return lines
