"""What the disclosure statement says of private lists of names: what they mask, what they keep, and that nothing bounds it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.text.identifiers.types import placeholder
from dptext_spark.text.names.sources import LIST_TYPES, ListSource

MARK = placeholder(LIST_TYPES[0])


def warned(facts: RunFacts) -> Iterator[str]:
    """Warn where the lists of the rows themselves are kept: they are as private as the text."""
    if any(source.of_rows for source in facts.config.lists.keep):
        yield (
            "WORDS OF A COLUMN ARE RELEASED IN CLEAR (policy.keep): what it holds for a row stays wherever the row's texts hold "
            "it, without any protection."
        )


def excepted(facts: RunFacts) -> Iterator[str]:
    """Name what is not drawn because a list holds it."""
    if facts.config.lists:
        yield "what a list of names holds"


def listed(facts: RunFacts) -> Iterator[str]:
    """Write what the place of an entry of a list tells, and which entries are in clear."""
    lists = facts.config.lists
    if lists.mask:
        yield (
            f"Where a word or phrase of a list stands ({_sources('policy.mask', lists.mask)}): it is replaced by {MARK}, "
            f"whatever the lexicon holds. Who knows the word that {MARK} stands for learns that a list holds it; equal and "
            "different ones are not told apart. None of it without policy.mask."
        )
    if lists.keep:
        yield (
            f"Every word and phrase of a list ({_sources('policy.keep', lists.keep)}), as it stands, like a stop word, also "
            "where it is a name. Fewer with a shorter list, none without policy.keep."
        )


def not_protected(facts: RunFacts) -> Iterator[str]:
    """Write what lists do not do."""
    lists = facts.config.lists
    if not lists:
        return
    yield (
        "That a word or phrase is in a list of names, or in none: between what a list masks or keeps and a drawn word there is "
        "no bound. Gone without policy.mask and policy.keep."
    )
    if lists.mask:
        yield (
            "Names that no list holds, that are misspelt, broken over lines or shortened in another way than to initials: they "
            "are treated like other words. Lists are matched without case, accents, apostrophes, hyphens and a possessive 's; a "
            "phrase also with its last word first and a comma, with initials, and as a title and its last word. No ε covers this."
        )


def _sources(field: str, sources: Sequence[ListSource]) -> str:
    """Return how many lists there are, and of what kind."""
    rows = sum(source.of_rows for source in sources)
    others = len(sources) - rows
    parts = [
        *([f"{others} {'list' if others == 1 else 'lists'} for all rows"] if others else []),
        *(
            [f"{rows} {'column' if rows == 1 else 'columns'} of the input, each row's for its own texts"]
            if rows
            else []
        ),
    ]
    return f"{field}: {' and '.join(parts)}"
