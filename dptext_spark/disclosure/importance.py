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
    "idf": "inverse document frequency counted in {corpus}",
    "column": "the numbers in {weights}",
    "attention": "the attention that a word receives in the encoder {model}",
    "random": "nothing: places that depend on the number of words alone",
}
OWN_TEXTS = "the private texts themselves"


def warned(facts: RunFacts) -> Iterator[str]:
    """Warn that most of a text may be as it was."""
    selection = facts.selection
    if selection is None or not in_clear(selection):
        return
    yield (
        f"WORDS ARE RELEASED IN CLEAR (importance): of each record only {_drawn(selection)} are drawn. No other word that the "
        "lexicon holds has any protection."
    )


def chosen(facts: RunFacts) -> Iterator[str]:
    """Name the words that the guarantee is about."""
    selection = facts.selection
    if selection is None:
        return
    marks = (
        ", and its punctuation, which takes places and is never drawn" if selection.rank_punctuation else ""
    )
    each = (
        "each occurrence by itself"
        if facts.consistency == "token"
        else "and all occurrences of a word in the record, alike, if one of them comes first"
    )
    yield (
        f"Drawn are {_drawn(selection)} of each record, rounded up and ties to the earlier word, {each}. A record is a row here, "
        f"and the words of all its texts are ranked together{marks}: stop words, unknown words and numbers take places, too, and "
        "policy says what becomes of them, chosen or not."
    )
    named = {
        "corpus": selection.corpus or OWN_TEXTS,
        "weights": f"the column {', '.join(selection.weights)}",
        "model": selection.model,
    }
    measured = MEASURED[selection.provider].format(**named)
    yield f"Importance is {measured}. {facts.importance or ''}".rstrip()
    if len(selection.levels) > 1:
        yield from (
            f"Level {number}, {_share(level.share)}: {_drawn_by(level)}"
            for number, level in enumerate(selection.levels, start=1)
        )


def clear(facts: RunFacts) -> Iterator[str]:
    """Name the words that everybody can read."""
    selection = facts.selection
    if selection is None or not in_clear(selection):
        return
    case = ", in lower case" if facts.policy.case == "lower" else ", its case included"
    yield (
        f"EVERY WORD THAT IS NOT CHOSEN, as it stands{case}: all words of the lexicon but {_drawn(selection)} of each record. "
        f"Fewer with {'a greater importance.percent' if selection.percent else 'greater shares in importance.levels'}, none "
        "without importance."
    )


def choice(facts: RunFacts) -> Iterator[str]:
    """Warn that the choice itself reveals something."""
    selection = facts.selection
    if selection is None:
        return
    if selection.provider == "random":
        yield (
            "Which places of a record are drawn: they are the same for all records of the same number of words, and anybody can "
            "compute them. They tell nothing of the words."
        )
        return
    tells = "a word in mixed case was not drawn, and " if facts.policy.case == "carry" else ""
    yield (
        f"Which words are chosen, which depends on the whole record: {tells}a reader who guesses how importance is measured can "
        "tell drawn words from others, and that a word was chosen tells that it was important there. One word that is another "
        "can change which others are drawn; the guarantee compares only records with the same choice."
    )
    if selection.provider == "idf" and selection.corpus is None:
        yield (
            "How frequent words are in the other texts: importance was counted in the private texts, and the choice in one "
            "record depends on all. The compiled model of the run holds these counts, and is as little for sharing as the "
            "restricted metrics. With importance.corpus, a public text, neither holds."
        )
    if selection.provider == "column":
        yield (
            "What the column of weights was made from: it decides which words are drawn, and is no part of the output unless "
            "output.other_columns names it."
        )


def in_clear(selection: Importance | None) -> bool:
    """Check that words that the policy draws stay unchanged because importance does not choose them."""
    return selection is not None and not _whole(selection)


def levels_of(selection: Importance | None) -> int:
    """Count the levels of importance; 1 where all words are drawn alike."""
    return 1 if selection is None else max(1, len(selection.levels))


def _shares(selection: Importance) -> list[float | None]:
    """Return the shares of the levels, in percent; None for a last one that takes the rest."""
    return [selection.percent] if selection.percent else [level.share for level in selection.levels]


def _whole(selection: Importance) -> bool:
    """Check that all words come first, in one level or another."""
    return bool(selection.cumulative[-1] >= WHOLE)


def _drawn(selection: Importance) -> str:
    return f"{RANKED[selection.direction]} ({' and '.join(_share(share) for share in _shares(selection))})"


def _share(share: float | None) -> str:
    return "what is left" if share is None else f"{exact(share)} %"


def _drawn_by(level: Level) -> str:
    if level.mechanism is not None:
        mechanism = level.mechanism.as_dict()
        parameters = [f"{name} {value}" for name, value in mechanism.items() if name != "name"]
        return f"drawn by {mechanism['name']} ({', '.join(parameters)})."
    if level.epsilon is not None:
        return f"drawn by the mechanism with ε = {exact(level.epsilon)}."
    return "drawn by the mechanism as it is."
