"""What the disclosure statement says of names: those that lists hold, and those that the policy's search finds.

Nothing bounds either, and both say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.text.identifiers.types import placeholder
from dptext_spark.text.names.search import (
    KEEP,
    LIST_TYPES,
    LOCATION,
    MASK,
    PERSON,
    POOL_SIZES,
    PSEUDONYM,
    SMALL,
    ListSource,
)

MARK = placeholder(LIST_TYPES[0])
KIND_WORDS = {PERSON: "a person", LOCATION: "a place"}
# When pseudonyms of equal names are equal, by level.
EQUAL = {
    "token": "each time it stands somewhere, so that equal names are not told apart",
    "record": "the same throughout a record and in every run with this key, these lists and the level of records",
    "dataset": "the same throughout the dataset and in every run with this key, these lists and the level of datasets",
}

# What a name that is found in one place and not in another means, by level.
OTHERWISE = {
    "token": "its words are then drawn there instead of replaced, or the other way round.",
    "record": "in one text of a record a name may then be replaced, and be drawn in another of the same record, so that both "
    "replacements are seen of it.",
    "dataset": "in one text a name may then be replaced, and be drawn in another, so that both replacements are seen of it.",
}


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
    if facts.policy.names:
        yield f"names that {facts.policy.names.finders} {_find(facts)}"
    if facts.providers:
        yield "what a provider finds"


def listed(facts: RunFacts) -> Iterator[str]:
    """Write what the place of an entry of a list tells, and which entries are in clear."""
    lists = facts.config.lists
    masked = [source for source in lists.mask if not source.has_pseudonyms]
    if masked:
        yield (
            f"Where a word or phrase of a list stands ({_sources('policy.mask', masked)}): it is replaced by {MARK}, "
            f"whatever the lexicon holds. Who knows the word that {MARK} stands for learns that a list holds it; equal and "
            "different ones are not told apart. None of it without policy.mask."
        )
    yield from _listed_pseudonyms(facts)
    if lists.keep:
        yield (
            f"Every word and phrase of a list ({_sources('policy.keep', lists.keep)}), as it stands, like a stop word, also "
            "where it is a name. Fewer with a shorter list, none without policy.keep."
        )


def _listed_pseudonyms(facts: RunFacts) -> Iterator[str]:
    """Write what the pseudonyms tell that take the place of the names of a list."""
    told = {
        PERSON: (
            "For each word of a name of a person that a list holds ({sources}): that it is such a word, whether it is a given "
            "name, surname or initial, its capitals, and what joins it to the next."
        ),
        LOCATION: (
            "For each place that a list holds ({sources}): that it is one, whether it is a town or a country or state, and its "
            "capitals."
        ),
    }
    shared = ""
    if facts.consistency != "token":
        shared = " All text columns share it, and so does that name where policy.names puts a pseudonym in its place."
    for kind in facts.config.lists.kinds:
        sources = _sources("policy.mask", [one for one in facts.config.lists.mask if one.kind == kind])
        yield (
            f"{told[kind].format(sources=sources)} A pseudonym of the same kind from the public lists takes its place, "
            f"{EQUAL[facts.consistency]}.{shared} Who knows the name learns that a list holds it. Less of it with replace: "
            f"{MASK}, none without policy.mask."
        )


def searched(facts: RunFacts) -> Iterator[str]:
    """Write what the place of a name tells that was found without a list of one's own."""
    search, level = facts.policy.names, facts.consistency
    masked, named = search.wanted(MASK), search.wanted(PSEUDONYM)
    if masked:
        marks = ", ".join(placeholder(name) for name in masked)
        yield (
            f"Where a name stands that {search.finders} found, and its kind: {marks}. Equal and different names are "
            "not told apart. None of it without policy.names."
        )
    if named:
        equal = EQUAL[level]
        kinds = " and ".join(KIND_WORDS[name] for name in named)
        yield (
            f"For each word of a name of {kinds} that {search.finders} found, that it is such a word, whether it is a "
            f"given name, surname, initial, town or country, and its capitals: a pseudonym of the same kind takes its place, "
            f"{equal}. Less of it with mask."
        )
        if search.model is not None and LOCATION in named:
            mark = placeholder(LOCATION)
            yield (
                f"Where a street or another place without a public list stands that the classifier found: {mark}. Equal and "
                "different ones are not told apart."
            )


def search_not_protected(facts: RunFacts) -> Iterator[str]:
    """Write what finding names promises: nothing."""
    search = facts.policy.names
    if not search:
        return
    yield (
        f"Names of persons and places: {_finders(facts)}, no guarantee. What they find is replaced whole and tells "
        "nothing but what is said above; a name that they miss, such as a rare, foreign or misspelt one or one in lower "
        "case, is treated like other words, and a word that they take for a name is replaced as one. No ε covers this."
    )
    if search.model is not None:
        yield (
            "A word is a name where the classifier's score, rounded to 1/1024, reaches the threshold, of a word in small letters "
            f"{SMALL:g} at least. A score at that edge may "
            "fall otherwise on a processor of another make or with another onnxruntime, so that a task that is retried there, or "
            f"a run that is done again, may find another name: {OTHERWISE[facts.consistency]} {_beside(facts)}"
        )
    for name in search.wanted(KEEP):
        kind = {PERSON: "persons", LOCATION: "places"}[name]
        yield f"Names of {kind} are not looked for (policy.names.{name}: keep); their words are treated like any."
    if search.wanted(PSEUDONYM):
        yield _pseudonyms()


def _pseudonyms() -> str:
    """Write what a pseudonym is, and when two names share one."""
    given, surnames, towns, regions, _ = POOL_SIZES
    return (
        "A pseudonym is a keyed choice among public names, not a draw with an ε. It may be somebody's name, or the name "
        f"itself, and two names may share one: two given names with a chance of 1 in {given:,}, surnames of 1 in "
        f"{surnames:,}, towns of 1 in {towns:,}, countries and states of 1 in {regions:,}. Names are the same where "
        "their letters are, without case, accents and apostrophes: a nickname or another spelling has another pseudonym."
    )


def _beside(facts: RunFacts) -> str:
    """Write what another name means for the other words of a text, and for the audit of consistency."""
    if facts.budget is not None or facts.selection is not None:
        said = (
            "Which words of that record are drawn, or by which ε, may then differ, too: whoever sees both outputs has seen two "
            "releases of it."
        )
    elif facts.config.mechanism.reads_context:
        said = (
            "Words behind the name may then be drawn after another word, and anew: whoever sees both outputs has seen two "
            "releases of them."
        )
    else:
        said = "A word that is drawn both times draws the same, so that both outputs together show one draw of each word."
    if facts.consistency == "token":
        return said
    return (
        f"{said} An audit of consistency on such a processor may find that the text does not fit its source; the run is then "
        "marked failed."
    )


def not_protected(facts: RunFacts) -> Iterator[str]:
    """Write what lists do not do."""
    yield from search_not_protected(facts)
    lists = facts.config.lists
    if not lists:
        return
    done = "masks, replaces" if lists.kinds else "masks"
    yield (
        f"That a word or phrase is in a list of names, or in none: between what a list {done} or keeps and a drawn word there is "
        "no bound. Gone without policy.mask and policy.keep."
    )
    if lists.kinds:
        if not facts.policy.names.wanted(PSEUDONYM):
            yield _pseudonyms()
        yield from _told_apart(lists.kinds)
    if lists.mask:
        yield (
            "Names that no list holds, that are misspelt, broken over lines or shortened in another way than to initials: they "
            "are treated like other words. Lists are matched without case, accents, apostrophes, hyphens and a possessive 's; a "
            "phrase also with its last word first and a comma, with initials, and as a title and its last word. No ε covers this."
        )


def _told_apart(kinds: Sequence[str]) -> Iterator[str]:
    """Write how the parts of a list's names are told, and which names are linked by that."""
    if PERSON in kinds:
        yield (
            "Of a name of a person that a list holds, what stands before a comma or last is a surname, as is a single word "
            "behind a title, and a single letter an initial; of other words the public lists tell, and one that they do not hold "
            "counts as a surname. So a full name, a title with the surname and an initial with it share the surname's pseudonym; "
            "a given name and its initial do not, nor does a surname with and without a particle such as van, nor a word that is "
            "a given name in one place and a surname in another."
        )
    if LOCATION in kinds:
        yield (
            "A place that a list holds is one pseudonym, however many words it has; written in another order or with initials "
            "it has another."
        )


def _find(facts: RunFacts) -> str:
    search = facts.policy.names
    return "finds" if search.model is not None else "find"


def _finders(facts: RunFacts) -> str:
    """Return who looks for names: the lists with their version, and the classifier by its digest."""
    search = facts.policy.names
    if search.model is None:
        return "public lists and rules"
    said = "" if facts.classifier is None else f" {facts.classifier}"
    lists = f"public lists and rules (version {search.version}) and " if search.lists else ""
    return f"{lists}a classifier{said} (threshold {search.threshold:g})"


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
