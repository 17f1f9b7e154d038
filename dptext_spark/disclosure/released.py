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
from dptext_spark.text.policy import (
    BEYOND_MASK,
    FAKE,
    FIELD,
    IN_LANGUAGES,
    KEEP,
    MASK,
    OOV_MASK,
    Policy,
    placeholder,
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


def names_warned(facts: RunFacts) -> Iterator[str]:
    """Warn if a column of the input lists words to keep: it is as private as the text."""
    if any(source.of_rows for source in facts.config.lists.keep):
        yield (
            "WORDS OF A COLUMN ARE RELEASED IN CLEAR (policy.keep): what it holds for a row stays wherever the row's texts hold "
            "it, without any protection."
        )


def names_excepted(facts: RunFacts) -> Iterator[str]:
    """Name the words that are not drawn because a list, the search for names or a provider finds them."""
    if facts.config.lists:
        yield "what a list of names holds"
    if facts.policy.names:
        search = facts.policy.names
        yield f"names that {search.finders} find{'' if search.model is None else 's'}"
    if facts.providers:
        yield "what a provider finds"


def listed(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals of entries of lists: masked, replaced by pseudonyms, or kept."""
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
    """State what pseudonyms reveal of the names of a list."""
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
        sources = _sources("policy.mask", [names for names in facts.config.lists.mask if names.kind == kind])
        yield (
            f"{told[kind].format(sources=sources)} A pseudonym of the same kind from the public lists takes its place, "
            f"{EQUAL[facts.consistency]}.{shared} Who knows the name learns that a list holds it. Less of it with replace: "
            f"{MASK}, none without policy.mask."
        )


def searched(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals of names that the search found."""
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
    """State that the search for names has no guarantee, and when its finds can differ."""
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
    """Define a pseudonym, and state when two names share one."""
    first_names, surnames, towns, regions, _ = POOL_SIZES
    return (
        "A pseudonym is a keyed choice among public names, not a draw with an ε. It may be somebody's name, or the name "
        f"itself, and two names may share one: two given names with a chance of 1 in {first_names:,}, surnames of 1 in "
        f"{surnames:,}, towns of 1 in {towns:,}, countries and states of 1 in {regions:,}. Names are the same where "
        "their letters are, without case, accents and apostrophes: a nickname or another spelling has another pseudonym."
    )


def _beside(facts: RunFacts) -> str:
    """State the effect of a differing find on the other words of a text, and on the audit of consistency."""
    if facts.budget is not None or facts.selection is not None:
        sentence = (
            "Which words of that record are drawn, or by which ε, may then differ, too: whoever sees both outputs has seen two "
            "releases of it."
        )
    elif facts.config.mechanism.reads_context:
        sentence = (
            "Words behind the name may then be drawn after another word, and anew: whoever sees both outputs has seen two "
            "releases of them."
        )
    else:
        sentence = "A word that is drawn both times draws the same, so that both outputs together show one draw of each word."
    if facts.consistency == "token":
        return sentence
    return (
        f"{sentence} An audit of consistency on such a processor may find that the text does not fit its source; the run is then "
        "marked failed."
    )


def names_not_protected(facts: RunFacts) -> Iterator[str]:
    """State the limits of lists and of the search for names."""
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
    """State how the words of a list's names are classified, and which names share a pseudonym."""
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


def _finders(facts: RunFacts) -> str:
    """Name the finders of names: the lists with their version, and the classifier by its digest."""
    search = facts.policy.names
    if search.model is None:
        return "public lists and rules"
    digest = "" if facts.classifier is None else f" {facts.classifier}"
    lists = f"public lists and rules (version {search.version}) and " if search.lists else ""
    return f"{lists}a classifier{digest} (threshold {search.threshold:g})"


def _sources(field: str, sources: Sequence[ListSource]) -> str:
    """Count the lists for all rows and the columns of the input that are lists."""
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


MANY_UNKNOWN = 0.05  # share of the rows from which the operator is warned
UNKNOWN_BECOME = {
    "mask": f"become {OOV_MASK}",
    "draw": "become uniform words of the lexicon",
    "keep": "are RELEASED IN CLEAR",
}


def released(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals to every holder."""
    policy, level = facts.policy, facts.consistency
    yield (
        "The number of rows, which texts are NULL or empty, and the number of words of each text. No setting hides that."
    )
    if facts.config.input.where:
        yield "That each record satisfies input.where, a condition of the settings. Nothing of the kind without input.where."
    if policy.gaps == "keep":
        yield (
            "Every space, line break, punctuation mark and symbol that is no part of a word (most emoji and invisible "
            "characters included), where it stands. Letter-like numbers, flags, control and unassigned characters count "
            "as unknown words. Less of it with policy.gaps: normalise."
        )
    else:
        yield (
            "Every punctuation mark and symbol (emoji and invisible characters included), and whether a space "
            "or line break stands before it or before a word; not how many or which. More of it with policy.gaps: keep."
        )
    if policy.case == "carry":
        yield (
            "Whether each drawn word was written in lower case, Capitalised or UPPER case (mixed case "
            "becomes lower). Nothing of it with policy.case: lower."
        )
    else:
        yield (
            "Nothing of upper and lower case: all words are released in lower case. With policy.case: carry, the case pattern."
        )
    yield from _clear_words(policy, facts.budget)
    yield from listed(facts)
    yield from searched(facts)
    yield from clear(facts)
    yield from replaced_whole(policy, level)
    yield from provided(facts)
    yield from _not_sensitive(facts)
    if level == "record":
        yield (
            "Which words of a record are equal, numbers included: equal words have equal replacements there. Nothing of it "
            "with consistency: token."
        )
    elif level == "dataset":
        yield (
            "Which words of the whole dataset are equal, numbers included, and so how often each occurs. Less of it with "
            "consistency: record, nothing with token."
        )
    else:
        yield (
            "No equality pattern: equal words are drawn independently of each other. With consistency: record or dataset, "
            "which words are equal."
        )
    yield from _ruled_out(facts)
    yield _others(facts)
    yield from bits(facts.config.require, bounded=facts.budget is not None)
    yield (
        "The order of the rows and how they lie in files, as far as the engine keeps them. No setting hides that; sort or "
        "shuffle the table where the order tells something."
    )


def _clear_words(policy: Policy, budget: Budget | None) -> Iterator[str]:
    if policy.stop_words == "keep":
        listed = policy.stop_word_list
        named = "the packaged English list" if listed is None else f"a list of {len(listed):,} words"
        yield (
            f"Every stop word ({named}, and endings such as 's and 't), as it stands, also where it is a name, such as Will "
            "or May. Fewer with a shorter policy.stop_word_list, none with policy.stop_words: draw."
        )
    else:
        yield (
            "No stop words: they are drawn like other words (those that the lexicon lacks count as unknown). With "
            "policy.stop_words: keep, every one."
        )
    yield {
        "mask": (
            "Which words the lexicon does not hold: each is replaced by [OOV]. With policy.oov: draw they are not marked."
        ),
        "draw": (
            "Unknown words are not marked, but they too are a place where a word stood. With policy.oov: mask they are."
        ),
        "keep": "EVERY WORD THAT THE LEXICON DOES NOT HOLD, as it stands. None with policy.oov: mask or draw.",
    }[policy.oov]
    yield (
        "Rows of which most words are unknown, such as text in another language, are counted in the restricted metrics; the "
        f"operator is warned where they are more than {percent_up(MANY_UNKNOWN)} of all. Of such a row hardly a word is drawn."
    )
    yield {
        "random": "Where a number stands, and how many digits it has. Not how many with policy.numbers: mask.",
        "mask": (
            "Where a number stands, as [NUM]; not how many digits it has. With policy.numbers: random, that too."
        ),
        "keep": "EVERY NUMBER, as it stands. None with policy.numbers: random or mask.",
    }[policy.numbers]
    marks = "spaces, punctuation, symbols and digits" if policy.tokenizer == "words" else "spaces"
    become = "is RELEASED IN CLEAR" if policy.oov == "keep" else "leaves no character in clear"
    scripts = "Of scripts that put no spaces between words (Chinese, Japanese, Thai, Khmer and the like)"
    stretches = f"how many stretches there are between {marks}, and where"
    yield (
        f"{scripts}: {stretches}. Each is one word, which a lexicon hardly ever holds: as an unknown word it {become}. "
        "Spaces put between words beforehand cut them into words."
    )
    if budget is not None:
        yield (
            "Which words of a long record are not drawn, because they are beyond those that its budget allows: each is replaced "
            f"by {BEYOND_MASK}, which tells nothing of the word. Fewer with a greater budget.record."
        )
    if policy.tokenizer == "whitespace":
        yield (
            "A word is what stands between spaces (tokenizer: whitespace); punctuation joined to a word is "
            "part of it. With tokenizer: words it stands for itself."
        )


def _not_sensitive(facts: RunFacts) -> Iterator[str]:
    """State how many words SanText+ may release unchanged, and how often."""
    mechanism, law = facts.config.mechanism, facts.mapping
    words, outputs = law.words or 0, law.sensitive or 0
    share = 1.0 - mechanism.p if isinstance(mechanism, SanText) else 0.0
    if outputs < words and share > 0:
        told = "An output that is not sensitive is the word itself."
        if law.remap is not None and law.remap.telling is not None:
            told = (
                f"An output that is not sensitive is the word itself for {law.remap.telling:,} of them; the others can come of "
                "other words, too, for a remap puts them in the place of draws."
            )
        yield (
            f"WORDS THAT ARE NOT SENSITIVE, {percent_up(share)} of the time, as they stand: {words - outputs:,} of the {words:,} "
            f"words of the lexicon. {told} Less with a greater mechanism.p, none "
            "with mechanism.sensitive: none."
        )


def _bits(law: Summary, most: float) -> str:
    """State how many bits of its word an output reveals, and how many of them come from ruled-out words."""
    ruled_out, equal = rounded_up(law.ruled_out_bits or 0.0), "Where all words are equally likely,"
    if law.told_bits is None:
        return f"{equal} an output tells {ruled_out} of {rounded_up(most)} bits of the word on average, at ε = 0 too."
    return (
        f"{equal} an output tells {rounded_up(law.told_bits)} of {rounded_up(most)} bits of the word on average: {ruled_out} of "
        "them by what it rules out, which no ε lessens."
    )


def _ruled_out(facts: RunFacts) -> Iterator[str]:
    law = facts.mapping
    behind, sizes, words = law.inputs_per_output, law.set_size, law.words
    if behind is None or sizes is None or words is None:
        return
    least, most = f"{sizes.min:,.0f}", f"{sizes.max:,.0f}"
    set_sizes = least if least == most else f"{least} to {most}"
    outside = "every word whose output set does not hold it"
    if law.remap is not None:
        outside = "every word of whose output set nothing is replaced by it (the remap is read from what is released)"
    yield (
        f"What an output rules out at any ε: {outside}. The sets hold "
        f"{set_sizes} words; behind half of the outputs stand at most {rounded_down(behind.p50, 0)} words "
        f"({behind.min:,.0f} to {behind.max:,.0f}) of {words:,}. {_bits(law, math.log2(words))} "
        "Larger sets (mechanism.k) rule out less."
    )
    if law.one_input_share:
        yield (
            f"The word itself, where the output is one of the {percent_up(law.one_input_share)} that only one word can "
            "become: such an output reveals its word at any ε. Fewer with larger sets (mechanism.k) or another "
            "mechanism.mapping."
        )


def columns_named(names: Sequence[str]) -> str:
    """Return `the column a`, or `the columns a, b`."""
    return f"the column{'' if len(names) == 1 else 's'} {', '.join(names)}"


def _others(facts: RunFacts) -> str:
    others = facts.config.other_columns if facts.other_columns is None else facts.other_columns
    if others is None:
        return (
            "Unchanged, text in them included: all other columns of the input (their values stand in the table's statistics, "
            "too). Fewer with output.other_columns: drop, or a list."
        )
    if not others:
        return "No other column. More with output.other_columns: keep, or a list."
    is_key_only = tuple(others) == (facts.config.row_key,)
    fewer = (
        "A row key is always written." if is_key_only else "Fewer with output.other_columns: drop, or a list."
    )
    return (
        f"Unchanged, text in them included: {columns_named(others)} (their least and greatest values stand in "
        f"the table's statistics, too). {fewer}"
    )


def replaced_whole(policy: Policy, level: str) -> Iterator[str]:
    """State what the output reveals of identifiers that rules found.

    Args:
        policy: of the run.
        level: token, record or dataset.
    """
    chosen = policy.identifiers
    masked, faked = chosen.wanted(MASK), chosen.wanted(FAKE)
    if masked:
        marks = ", ".join(placeholder(name) for name in masked)
        yield f"Where an identifier stands that a rule found, and its type: {marks}. Nothing of it with {FIELD}: none."
    if faked:
        equal = {"token": "", "record": " of a record", "dataset": ""}[level]
        same = "" if level == "token" else f", and that equal ones{equal} are equal"
        yield (
            f"The shape of each {_listed(faked)} that a rule found, replaced by a fake: how many letters and digits, capitals, "
            "and what stands between them; of URLs the scheme (without one, the last label of the host), of telephone "
            f"numbers the plus and leading zeros, of accounts the country{same}. Only the type with {FIELD}: mask."
        )


def provided(facts: RunFacts) -> Iterator[str]:
    """State what the output reveals of a provider's finds."""
    if facts.providers:
        marks = ", ".join(
            dict.fromkeys(placeholder(name) for provider in facts.providers for name in provider.types)
        )
        yield (
            f"Where something stands that a provider found, and its type: {marks}. Equal and different ones are not told apart. "
            "None of it without policy.providers."
        )


AGAIN = {
    "token": "its words are then drawn there instead of masked, or the other way round.",
    "record": "it may then be masked in one text of a record, and be drawn in another of the same record.",
    "dataset": "it may then be masked in one text, and be drawn in another.",
}


def provider_based(facts: RunFacts) -> Iterator[str]:
    """State that providers have no guarantee, and when their finds can differ."""
    if not facts.providers:
        return
    looked = "; ".join(f"{provider} for {_listed(provider.types)}" for provider in facts.providers)
    yield (
        f"What providers look for ({looked}): code of the settings (policy.providers), no guarantee. What they find is replaced "
        "whole and tells nothing but what is said above; what they miss is drawn or masked as the policy says of any word or "
        "number, or kept where it says so, and what they take for something else is replaced as that. No ε covers this."
    )
    yield (
        "Path, name, version and types of a provider are bound to the model, its code is not. One that finds something else in "
        f"the same text, or on another machine, makes a task that is run again differ: {AGAIN[facts.consistency]}"
    )


NO_NAMES = (
    " Names of persons and places are no identifiers here: the lexicon's words among them are treated like its other words, the "
    "others are unknown words."
)


def rule_based(policy: Policy) -> Iterator[str]:
    """State that the rules for identifiers have no guarantee.

    Args:
        policy: of the run.
    """
    chosen = policy.identifiers
    types, skipped = chosen.wanted(), chosen.wanted(KEEP)
    if not types:
        yield (
            f"Identifiers as wholes ({FIELD}: none): e-mail addresses, telephone and account numbers are cut, and their words "
            "and numbers are treated like any. What stands between them, such as @ and dots, shows that they were there."
        )
        return
    yield (
        f"Identifiers ({_listed(types)}): rule-based, no guarantee. What the rules find is replaced whole and tells nothing but "
        "what is said above; what they miss, such as one that is misspelt or broken apart, is cut into words and numbers like "
        f"other text. No ε covers this.{'' if policy.names or policy.providers else NO_NAMES}"
    )
    if chosen.languages:
        yield (
            f"Dates with the name of a month are looked for in English and in {_listed(chosen.languages)} "
            f"({FIELD}.{IN_LANGUAGES}), beside a day or a year. In other languages only those in figures are found."
        )
    if skipped:
        yield (
            f"Identifiers that are not looked for: {_listed(skipped)} ({FIELD}: keep). Their words and numbers are treated like "
            "any; less of it with mask."
        )
    if chosen.wanted(FAKE):
        yield (
            "A fake is keyed letters and digits, not a draw with an ε, and may by chance be an address or a number of somebody. "
            f"With {FIELD}: mask there is none."
        )


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
