"""Sentences of the disclosure statement where only the words that importance selects are drawn."""

from __future__ import annotations

from collections.abc import Iterator

from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.importance.levels import WHOLE, Importance, Level
from dptext_spark.rounding import exact

RANKED = {
    "top": "the most important words",
    "medium": "the words of middling importance",
    "bottom": "the least important words",
}
MEASURED = {
    "idf": "Importance is inverse document frequency, counted in {corpus}.",
    "column": "Importance is the numbers in the column {weights}.",
    "attention": "Importance is the attention that a word receives in the encoder {model}.",
    "random": "Importance is not measured.",
}


def warned(facts: RunFacts) -> Iterator[str]:
    """Warn that most of a text may be as it was."""
    selection = facts.selection
    if selection is None or not in_clear(selection):
        return
    yield (
        f"WORDS ARE RELEASED IN CLEAR (importance): of each record only {_drawn(selection)} are drawn. Other words of the "
        "lexicon have no protection."
    )


def chosen(facts: RunFacts) -> Iterator[str]:
    """Name the words that the guarantee is about."""
    selection = facts.selection
    if selection is None:
        return
    each = (
        "Each occurrence of a word is chosen by itself."
        if facts.consistency == "token"
        else "All occurrences of a word in the record are drawn alike, if one of them is chosen."
    )
    punctuation = " Punctuation takes places, too, and is never drawn." if selection.rank_punctuation else ""
    yield (
        f"Chosen words: {_drawn(selection)} of each record, rounded up, ties to the earlier word. {each} A record is a row "
        "here, and the words of all its texts are ranked together. Stop words, unknown words and numbers take places, too, and "
        f"the policy decides their treatment, chosen or not.{punctuation}"
    )
    measured = MEASURED[selection.provider].format(
        corpus=selection.corpus or "the private texts themselves",
        weights=", ".join(selection.weights),
        model=selection.model,
    )
    yield f"{measured} {facts.importance or ''}".rstrip()
    if len(selection.levels) > 1:
        for number, level in enumerate(selection.levels, start=1):
            yield f"Level {number} ({_share(level.share)}): {_drawn_by(level)}."


def clear(facts: RunFacts) -> Iterator[str]:
    """Name the words that everybody can read."""
    selection = facts.selection
    if selection is None or not in_clear(selection):
        return
    case = "in lower case" if facts.policy.case == "lower" else "its case included"
    setting = "a greater importance.percent" if selection.percent else "greater shares in importance.levels"
    yield (
        f"EVERY WORD THAT IS NOT CHOSEN stays as it is, {case}: all words of the lexicon except {_drawn(selection)} of each "
        f"record. With {setting} fewer stay, and without importance none."
    )


def choice(facts: RunFacts) -> Iterator[str]:
    """Warn that the choice itself reveals something."""
    selection = facts.selection
    if selection is None:
        return
    if selection.provider == "random":
        yield (
            "Drawn places of a record: they are the same for all records with the same number of words, and anyone can compute "
            "them. They reveal nothing about the words."
        )
        return
    case = " A word in mixed case was not drawn." if facts.policy.case == "carry" else ""
    yield (
        f"Choice of words: it depends on the whole record.{case} A reader who guesses the measure of importance can recognise "
        "drawn words. A chosen word was important in its record. Changing one word can change which others are drawn. The "
        "guarantee compares only records with the same choice."
    )
    if selection.provider == "idf" and selection.corpus is None:
        yield (
            "Word frequencies in the other texts: importance was counted in the private texts, so the choice in one record "
            "depends on all. The compiled model of the run holds these counts. Share it as little as the restricted metrics. "
            "importance.corpus, a public text, avoids both."
        )
    if selection.provider == "column":
        yield (
            "Source of the weights: their column decides which words are drawn. It is in the output only if "
            "output.other_columns names it."
        )


def in_clear(selection: Importance | None) -> bool:
    """Check that words that the policy draws stay unchanged because importance does not choose them."""
    return selection is not None and bool(selection.cumulative[-1] < WHOLE)


def levels_of(selection: Importance | None) -> int:
    """Count the levels of importance; 1 where all words are drawn alike."""
    return 1 if selection is None else max(1, len(selection.levels))


def _shares(selection: Importance) -> list[float | None]:
    """Return the shares of the levels, in percent; None for a last one that takes the rest."""
    return [selection.percent] if selection.percent else [level.share for level in selection.levels]


def _drawn(selection: Importance) -> str:
    return f"{RANKED[selection.direction]} ({', '.join(_share(share) for share in _shares(selection))})"


def _share(share: float | None) -> str:
    return "the rest" if share is None else f"{exact(share)} %"


def _drawn_by(level: Level) -> str:
    """Name the law of a level."""
    if level.mechanism is not None:
        mechanism = level.mechanism.as_dict()
        parameters = [f"{name} {value}" for name, value in mechanism.items() if name != "name"]
        return f"{mechanism['name']} ({', '.join(parameters)})"
    return (
        "the mechanism as set" if level.epsilon is None else f"the mechanism with ε = {exact(level.epsilon)}"
    )
