"""The disclosure statement's sentences on parts released in clear, and on names and identifiers.

Names are found by lists and by the policy's search, identifiers by rules. Nothing bounds it, as the sentences say.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.importance import clear
from dptext_spark.disclosure.statement import bits
from dptext_spark.importance.budget import Budget
from dptext_spark.mechanisms import SanText
from dptext_spark.mechanisms.base import Summary
from dptext_spark.rounding import percent_up, rounded_down, rounded_up
from dptext_spark.text.names.search import (
    LIST_TYPES,
    LOCATION,
    PERSON,
    POOL_SIZES,
    PSEUDONYM,
    SMALL,
    ListSource,
)
from dptext_spark.text.policy import BEYOND_MASK, FAKE, FIELD, IN_LANGUAGES, KEEP, MASK, Policy, placeholder

MARK = placeholder(LIST_TYPES[0])
KINDS = {PERSON: "persons", LOCATION: "places"}
MANY_UNKNOWN = 0.05  # share of the rows from which the operator is warned

# When pseudonyms of equal names are equal, by level.
EQUAL = {
    "token": "Each occurrence has its own pseudonym, so equal names cannot be recognised.",
    "record": "It is the same throughout a record, and in every run with this key, these lists and record level.",
    "dataset": "It is the same throughout the dataset, and in every run with this key, these lists and dataset level.",
}
# What follows if a name is found in one place and not in another, by level.
NAME_AGAIN = {
    "token": "Its words are then drawn instead of replaced, or replaced instead of drawn.",
    "record": "A name may then be replaced in one text of a record and drawn in another, so that both replacements show.",
    "dataset": "A name may then be replaced in one text and drawn in another, so that both replacements show.",
}
# The same of what a provider finds.
FINDING_AGAIN = {
    "token": "The words are then drawn instead of masked, or masked instead of drawn.",
    "record": "A finding may then be masked in one text of a record, and be drawn in another.",
    "dataset": "A finding may then be masked in one text, and be drawn in another.",
}


def names_warned(facts: RunFacts) -> Iterator[str]:
    """Warn if a column of the input lists words to keep: it is as private as the text."""
    if any(source.of_rows for source in facts.config.lists.keep):
        yield (
            "WORDS OF A COLUMN ARE RELEASED IN CLEAR (policy.keep): a row's value in the column stays wherever the row's texts "
            "contain it, without any protection."
        )


def names_excepted(facts: RunFacts) -> Iterator[str]:
    """Name the words that are not drawn because a list, the search for names or a provider finds them."""
    if facts.config.lists:
        yield "entries of a list of names"
    if facts.policy.names:
        yield f"names found by {facts.policy.names.finders}"
    if facts.providers:
        yield "findings of a provider"


def listed(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals of entries of lists: masked, replaced by pseudonyms, or kept."""
    lists = facts.config.lists
    masked = [source for source in lists.mask if not source.has_pseudonyms]
    if masked:
        yield (
            f"Masked entries of a list ({_sources('policy.mask', masked)}): {MARK} replaces each, even if the lexicon has the "
            "word. Anyone who knows the word learns that a list holds it. Equal and different entries look the same. Without "
            "policy.mask nothing of this shows."
        )
    yield from _listed_pseudonyms(facts)
    if lists.keep:
        yield (
            f"Kept entries of a list ({_sources('policy.keep', lists.keep)}): every word and phrase stays as it is, like a "
            "stop word, even if it is a name. A shorter list keeps fewer. Without policy.keep none stays."
        )


LISTED_PSEUDONYMS = {
    PERSON: (
        "Names of persons in a list ({sources}): a pseudonym of the same kind from the public lists replaces each word. It "
        "shows that the word is part of such a name, whether it is a given name, surname or initial, its capitals, and its "
        "link to the next word."
    ),
    LOCATION: (
        "Places in a list ({sources}): a pseudonym of the same kind from the public lists replaces each. It shows that there "
        "is a place, whether it is a town or a country or state, and its capitals."
    ),
}


def _listed_pseudonyms(facts: RunFacts) -> Iterator[str]:
    """State what pseudonyms reveal of the names of a list."""
    shared = ""
    if facts.consistency != "token":
        shared = " All text columns share it. policy.names uses the same pseudonym for the same name."
    for kind in facts.config.lists.kinds:
        sources = _sources("policy.mask", [names for names in facts.config.lists.mask if names.kind == kind])
        yield (
            f"{LISTED_PSEUDONYMS[kind].format(sources=sources)} {EQUAL[facts.consistency]}{shared} Anyone who knows the name "
            f"learns that a list holds it. With replace: {MASK} less shows. Without policy.mask nothing shows."
        )


def searched(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals of names that the search found."""
    search = facts.policy.names
    masked, named = search.wanted(MASK), search.wanted(PSEUDONYM)
    if masked:
        yield (
            f"Names found by {search.finders}: a mask shows the place and kind of each ({_marks(masked)}). Equal and different "
            "names look the same. Without policy.names nothing of this shows."
        )
    if named:
        yield (
            f"Names of {' and '.join(KINDS[name] for name in named)} found by {search.finders}: a pseudonym of the same kind "
            "replaces each word. It shows that the word is part of a name, whether it is a given name, surname, initial, town "
            f"or country, and its capitals. {EQUAL[facts.consistency]} mask shows less."
        )
        if search.model is not None and LOCATION in named:
            yield (
                f"Streets and other places without a public list: {placeholder(LOCATION)} shows where the classifier found "
                "one. Equal and different ones look the same."
            )


def search_not_protected(facts: RunFacts) -> Iterator[str]:
    """State that the search for names has no guarantee, and when its finds can differ."""
    search = facts.policy.names
    if not search:
        return
    yield (
        f"Names of persons and places: {_finders(facts)}, no guarantee. A name that they find is replaced whole, and reveals "
        "only what is listed above. A name that they miss, such as a rare, foreign, misspelt or lower-case one, is treated "
        "like other words. A word that they mistake for a name is replaced as one. No ε covers this."
    )
    if search.model is not None:
        yield (
            "The classifier rounds the score of a word to 1/1024. The word is a name if the score reaches the threshold, and "
            f"at least {SMALL:g} for a word in small letters. Another processor or another onnxruntime may put a score on the "
            "other side of that edge. A task that is retried there, or a run that is repeated, may then find another name. "
            f"{NAME_AGAIN[facts.consistency]} {_beside(facts)}"
        )
    for name in search.wanted(KEEP):
        yield (
            f"Names of {KINDS[name]} are not looked for (policy.names.{name}: keep). Their words are treated like any other."
        )
    if search.wanted(PSEUDONYM):
        yield PSEUDONYMS


_FIRST, _LAST, _TOWNS, _REGIONS, _ = POOL_SIZES
PSEUDONYMS = (
    "A pseudonym is a keyed choice among public names, not a draw with an ε. It may be somebody's name, or the name itself. "
    f"Two names may share one. The chance is 1 in {_FIRST:,} for given names, 1 in {_LAST:,} for surnames, 1 in {_TOWNS:,} for "
    f"towns, and 1 in {_REGIONS:,} for countries and states. Names are the same if their letters are, without case, accents and "
    "apostrophes. A nickname or another spelling has another pseudonym."
)


def _beside(facts: RunFacts) -> str:
    """State the effect of a differing find on the other words of a text, and on the audit of consistency."""
    if facts.budget is not None or facts.selection is not None:
        sentence = (
            "The drawn words of that record, or their ε, may then differ, too. Anyone who sees both outputs has seen two "
            "releases of it."
        )
    elif facts.config.mechanism.reads_context:
        sentence = (
            "The words after the name may then be drawn anew, after another word. Anyone who sees both outputs has seen two "
            "releases of them."
        )
    else:
        sentence = "A word that is drawn both times draws the same, so both outputs together show one draw of each word."
    if facts.consistency == "token":
        return sentence
    return (
        f"{sentence} An audit of consistency on such a processor may find that the text does not fit its source. The run is "
        "then marked failed."
    )


def names_not_protected(facts: RunFacts) -> Iterator[str]:
    """State the limits of lists and of the search for names."""
    yield from search_not_protected(facts)
    lists = facts.config.lists
    if not lists:
        return
    yield (
        "Entries of a list of names: no bound covers an entry, which a list masks, replaces or keeps, against a drawn word. "
        "Without policy.mask and policy.keep there is no such pair."
    )
    if lists.kinds and not facts.policy.names.wanted(PSEUDONYM):
        yield PSEUDONYMS
    for kind in lists.kinds:
        yield PARTS_OF_NAMES[kind]
    if lists.mask:
        yield (
            "Names that the lists miss: a name is treated like other words if it is in no list, misspelt, broken over lines, "
            "or shortened other than to initials. Lists are matched without case, accents, apostrophes, hyphens and a "
            "possessive 's. A phrase also matches with its last word first and a comma, with initials, and as a title and its "
            "last word. No ε covers this."
        )


# How the parts of a list's names are identified, and the names that this links.
PARTS_OF_NAMES = {
    PERSON: (
        "Parts of a listed name of a person: the last word, the word before a comma, and a single word after a title are "
        "surnames. A single letter is an initial. The public lists decide for other words, and a word that they lack is a "
        "surname. So a full name, a title with the surname, and an initial with the surname share the surname's pseudonym. "
        "A given name and its initial do not share one. Nor do a surname with and without a particle such as van, or a word that "
        "is a given name in one place and a surname in another."
    ),
    LOCATION: (
        "Listed places: a place has one pseudonym, however many words it has. Written in another order or with initials, it "
        "has another one."
    ),
}


def _finders(facts: RunFacts) -> str:
    """Name the finders of names: the lists with their version, and the classifier by its digest."""
    search = facts.policy.names
    if search.model is None:
        return "public lists and rules"
    classifier = f"a classifier {facts.classifier or '(digest not known)'} (threshold {search.threshold:g})"
    return (
        f"public lists and rules (version {search.version}) and {classifier}" if search.lists else classifier
    )


def _sources(field: str, sources: Sequence[ListSource]) -> str:
    """Count the lists for all rows and the columns of the input that are lists."""
    rows = sum(source.of_rows for source in sources)
    return f"{field}: {len(sources) - rows} for all rows, {rows} from a column for each row's own texts"


def _marks(names: Sequence[str]) -> str:
    return ", ".join(placeholder(name) for name in dict.fromkeys(names))


SPACING = {
    "keep": (
        "Spacing and punctuation: every space, line break, punctuation mark and symbol outside words stays in its place, most "
        "emoji and invisible characters included. Letter-like numbers, flags, control and unassigned characters count as "
        "unknown words. policy.gaps: normalise shows less."
    ),
    "normalise": (
        "Spacing and punctuation: every punctuation mark and symbol stays, emoji and invisible characters included. The output "
        "shows if a space or line break comes before it or before a word, but not how many or which. policy.gaps: keep shows "
        "more."
    ),
}
CASE = {
    "carry": (
        "Case: the output shows if a drawn word was in lower case, Capitalised or UPPER case (mixed case becomes lower). "
        "policy.case: lower hides this."
    ),
    "lower": "No case: all words are released in lower case. policy.case: carry shows the case pattern.",
}
EQUALITY = {
    "token": (
        "No equality pattern: equal words are drawn independently. consistency: record or dataset shows equal words."
    ),
    "record": (
        "Equal words of a record, numbers included: they have equal replacements. consistency: token hides this."
    ),
    "dataset": (
        "Equal words of the whole dataset, numbers included, and so the frequency of each. consistency: record shows less, and "
        "token nothing."
    ),
}
UNKNOWN = {
    "mask": "Unknown words: [OOV] marks the place of each word that the lexicon lacks. policy.oov: draw does not mark them.",
    "draw": "Unknown words are not marked, but their places still hold a word. policy.oov: mask marks them.",
    "keep": "EVERY WORD THAT THE LEXICON LACKS stays as it is. policy.oov: mask or draw releases none.",
}
NUMBERS = {
    "random": (
        "Numbers: the output shows the place of each and its number of digits. policy.numbers: mask hides the number of digits."
    ),
    "mask": (
        "Numbers: [NUM] shows the place of each, but not its number of digits. policy.numbers: random shows that, too."
    ),
    "keep": "EVERY NUMBER stays as it is. policy.numbers: random or mask releases none.",
}


def released(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals to every holder."""
    policy, level = facts.policy, facts.consistency
    yield "Counts: the number of rows, the NULL and empty texts, and the number of words of each text. No setting hides them."
    if facts.config.input.where:
        yield "Condition: each record satisfies input.where, a condition of the settings. Without input.where there is none."
    yield SPACING[policy.gaps]
    yield CASE[policy.case]
    yield from _clear_words(policy, facts.budget)
    yield from listed(facts)
    yield from searched(facts)
    yield from clear(facts)
    yield from replaced_whole(policy, level)
    yield from provided(facts)
    yield from _not_sensitive(facts)
    yield EQUALITY[level]
    yield from _ruled_out(facts)
    yield _others(facts)
    yield from bits(facts.config.require, bounded=facts.budget is not None)
    yield (
        "Order: the order of the rows, and their distribution over files, as far as the engine keeps them. No setting hides "
        "them. Sort or shuffle the table if its order reveals something."
    )


def _clear_words(policy: Policy, budget: Budget | None) -> Iterator[str]:
    if policy.stop_words == "keep":
        words = policy.stop_word_list
        source = "the packaged English list" if words is None else f"a list of {len(words):,} words"
        yield (
            f"Stop words: every word of {source}, and endings such as 's and 't, stay as they are, even a name such as Will or "
            "May. A shorter policy.stop_word_list keeps fewer, and policy.stop_words: draw none."
        )
    else:
        yield (
            "No stop words: they are drawn like other words, and those that the lexicon lacks are unknown words. "
            "policy.stop_words: keep releases every one."
        )
    yield UNKNOWN[policy.oov]
    yield (
        "Rows with mostly unknown words, such as text in another language: hardly a word of them is drawn. The restricted "
        f"metrics count them, and the run warns you if they are more than {percent_up(MANY_UNKNOWN)} of all rows."
    )
    yield NUMBERS[policy.numbers]
    marks = "spaces, punctuation, symbols and digits" if policy.tokenizer == "words" else "spaces"
    become = (
        "It is RELEASED IN CLEAR as an unknown word."
        if policy.oov == "keep"
        else "As an unknown word it leaves no character in clear."
    )
    yield (
        "Scripts without spaces between words (Chinese, Japanese, Thai, Khmer and the like): the output shows the number and "
        f"places of the stretches between {marks}. Each stretch counts as one word, and a lexicon hardly ever has it. {become} "
        "Put spaces between the words beforehand to cut a stretch."
    )
    if budget is not None:
        yield (
            f"Words beyond the budget: {BEYOND_MASK} replaces the words of a long record that its budget does not cover, and "
            "reveals nothing about them. A greater budget.record covers more."
        )
    if policy.tokenizer == "whitespace":
        yield (
            "Words end at spaces (tokenizer: whitespace), so punctuation joined to a word is part of it. tokenizer: words "
            "separates punctuation."
        )


def not_sensitive(law: Summary) -> str:
    """Write when an output that is not sensitive reveals its word."""
    if law.remap is None or law.remap.telling is None:
        return "An output that is not sensitive is the original word."
    return (
        f"For {law.remap.telling:,} of them, an output that is not sensitive is the original word. The others can also come "
        "from other words, because the remap puts them in the place of draws."
    )


def _not_sensitive(facts: RunFacts) -> Iterator[str]:
    """State how many words SanText+ may release unchanged, and how often."""
    mechanism, law = facts.config.mechanism, facts.mapping
    words, outputs = law.words or 0, law.sensitive or 0
    share = 1.0 - mechanism.p if isinstance(mechanism, SanText) else 0.0
    if outputs < words and share > 0:
        yield (
            f"WORDS THAT ARE NOT SENSITIVE stay as they are, {percent_up(share)} of the time: {words - outputs:,} of the "
            f"{words:,} words of the lexicon. {not_sensitive(law)} A greater mechanism.p keeps fewer, and mechanism.sensitive: "
            "none none."
        )


def _bits(law: Summary, most: float) -> str:
    """State how many bits of its word an output reveals, and how many of them come from ruled-out words."""
    ruled_out, of = rounded_up(law.ruled_out_bits or 0.0), rounded_up(most)
    if law.told_bits is None:
        return f"If all words are equally likely, an output reveals {ruled_out} of {of} bits of its word on average, at any ε."
    return (
        f"If all words are equally likely, an output reveals {rounded_up(law.told_bits)} of {of} bits of its word on average. "
        f"{ruled_out} of these bits come from the excluded words, and no ε lessens them."
    )


def _ruled_out(facts: RunFacts) -> Iterator[str]:
    law = facts.mapping
    behind, sizes, words = law.inputs_per_output, law.set_size, law.words
    if behind is None or sizes is None or words is None:
        return
    size = f"{sizes.min:,.0f} to {sizes.max:,.0f}" if sizes.min < sizes.max else f"{sizes.max:,.0f}"
    excluded = "an output excludes every word that does not have it in its output set."
    if law.remap is not None:
        excluded = (
            "an output excludes every word whose whole output set the remap turns into other words. (The remap is read from "
            "the released words.)"
        )
    yield (
        f"Excluded words, at any ε: {excluded} An output set holds {size} words. For half "
        f"of the outputs, at most {rounded_down(behind.p50, 0)} words ({behind.min:,.0f} to {behind.max:,.0f}) of {words:,} are "
        "possible sources. "
        f"{_bits(law, math.log2(words))} Larger sets (mechanism.k) exclude fewer."
    )
    if law.one_input_share:
        yield (
            f"Revealing outputs: {percent_up(law.one_input_share)} of the outputs can come from one word only, and reveal it "
            "at any ε. Larger sets (mechanism.k) or another mechanism.mapping leave fewer."
        )


def columns_named(names: Sequence[str]) -> str:
    """Return `the column a`, or `the columns a, b`."""
    return f"the column{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _others(facts: RunFacts) -> str:
    others = facts.config.other_columns if facts.other_columns is None else facts.other_columns
    if others is None:
        return (
            "Other columns: all columns of the input stay unchanged, with any text in them. The table's statistics hold their "
            "values, too. output.other_columns: drop, or a list, releases fewer."
        )
    if not others:
        return "No other column. output.other_columns: keep, or a list, releases more."
    is_key_only = tuple(others) == (facts.config.row_key,)
    fewer = (
        "A row key is always written."
        if is_key_only
        else "output.other_columns: drop, or a list, releases fewer."
    )
    return (
        f"Other columns: {', '.join(others)}. They stay unchanged, with any text in them. The table's statistics hold their "
        f"least and greatest values, too. {fewer}"
    )


FAKES = {
    "token": "Equal ones have independent fakes.",
    "record": "Equal ones of a record have equal fakes.",
    "dataset": "Equal ones have equal fakes.",
}


def replaced_whole(policy: Policy, level: str) -> Iterator[str]:
    """State what the output reveals of identifiers that rules found."""
    masked, faked = policy.identifiers.wanted(MASK), policy.identifiers.wanted(FAKE)
    if masked:
        yield (
            f"Masked identifiers that a rule found: a mask shows the place and type of each ({_marks(masked)}). {FIELD}: none "
            "hides this."
        )
    if faked:
        yield (
            f"Faked identifiers that a rule found ({', '.join(faked)}): a fake shows the number of letters and digits, the "
            "capitals and the characters between them. Of a URL it shows the scheme, or else the last label of the host. Of a "
            "telephone number it shows the plus and leading zeros, and of an account the country. "
            f"{FAKES[level]} {FIELD}: mask shows the type alone."
        )


def provided(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals of a provider's finds."""
    if facts.providers:
        marks = _marks([name for provider in facts.providers for name in provider.types])
        yield (
            f"Findings of a provider: a mask shows the place and type of each ({marks}). Equal and different ones look the "
            "same. Without policy.providers nothing of this shows."
        )


def provider_based(facts: RunFacts) -> Iterator[str]:
    """State that providers have no guarantee, and when their finds can differ."""
    if not facts.providers:
        return
    looked = "; ".join(f"{provider} for {', '.join(provider.types)}" for provider in facts.providers)
    yield (
        f"Findings of providers ({looked}): code of the settings (policy.providers), no guarantee. A finding is replaced "
        "whole, and reveals only what is listed above. A word or number that they miss is drawn, masked or kept, as the policy "
        "says. A wrong finding is replaced as its type. No ε covers this."
    )
    yield (
        "The model is bound to a provider's path, name, version and types, but not to its code. The code may find something "
        "else in the same text later, or on another machine. A repeated task then differs. "
        f"{FINDING_AGAIN[facts.consistency]}"
    )


NAMES_APART = (
    " Names of persons and places are not identifiers. Names in the lexicon are treated like its other words, and other names "
    "are unknown words."
)


def rule_based(policy: Policy) -> Iterator[str]:
    """State that the rules for identifiers have no guarantee."""
    chosen = policy.identifiers
    types, skipped = chosen.wanted(), chosen.wanted(KEEP)
    if not types:
        yield (
            f"Whole identifiers ({FIELD}: none): e-mail addresses, telephone and account numbers are cut into words and "
            "numbers that are treated like any other. Characters between them, such as @ and dots, show that they were there."
        )
        return
    yield (
        f"Identifiers ({', '.join(types)}): rule-based, no guarantee. An identifier that the rules find is replaced whole, and "
        "reveals only what is listed above. One that they miss, such as a misspelt or broken one, is cut into words and "
        f"numbers like other text. No ε covers this.{'' if policy.names or policy.providers else NAMES_APART}"
    )
    if chosen.languages:
        yield (
            f"Dates with the name of a month are found in English and in {', '.join(chosen.languages)} "
            f"({FIELD}.{IN_LANGUAGES}), next to a day or a year. In other languages only dates in figures are found."
        )
    if skipped:
        yield (
            f"Identifiers that are not looked for: {', '.join(skipped)} ({FIELD}: keep). Their words and numbers are treated "
            "like any other. mask shows less."
        )
    if chosen.wanted(FAKE):
        yield (
            "A fake is keyed letters and digits, not a draw with an ε. By chance it may be somebody's address or number. With "
            f"{FIELD}: mask there is none."
        )
