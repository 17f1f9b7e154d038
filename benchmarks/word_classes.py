"""Kinds of English words by a closed list: function words can be listed, and what is in no list is a content word."""

from __future__ import annotations

import unicodedata

LISTS = {
    "pronoun": "i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself "
    "we us our ours ourselves they them their theirs themselves who whom whose which what this these those that one ones "
    "someone anyone everyone somebody anybody everybody nobody something anything everything nothing none each other others",
    "determiner": "a an the some any no every all both half either neither another such many much more most few fewer less "
    "least several enough own same",
    "preposition": "of in to for with on at by from into about like over after through between against during without "
    "before under around among across behind beyond near off up down out above below beneath beside besides despite except "
    "inside onto outside past since throughout till toward towards until upon via within per than as",
    "conjunction": "and or but nor so yet if because while although though whereas unless whether once when where why how",
    "auxiliary": "be am is are was were been being have has had having do does did doing can could will would shall should may "
    "might must ought 's 're 've 'd 'll 'm ca wo",
    "negation": "not n't never",
}
KIND_OF = {word: kind for kind, words in LISTS.items() for word in words.split()}
KINDS = (*LISTS, "number", "punctuation", "content word")


def kind_of(token: str) -> str:
    """Return the kind of a token in lower case."""
    if token in KIND_OF:
        return KIND_OF[token]
    if not any(unicodedata.category(char)[0] in "LN" for char in token):
        return "punctuation"
    return "number" if token[0].isdigit() else "content word"
