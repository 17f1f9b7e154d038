"""What the disclosure statement says of identifiers: they are found by rules, and no rule gives a guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dptext_spark.text.identifiers.types import FAKE, FIELD, KEEP, MASK, NONE, Identifiers, placeholder


def replaced_whole(policy: Mapping[str, Any], level: str) -> Iterator[str]:
    """Write what the place of an identifier tells.

    Args:
        policy: the fields of the policy.
        level: token, record or dataset.
    """
    chosen = _of(policy)
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


def rule_based(policy: Mapping[str, Any]) -> Iterator[str]:
    """Write what finding identifiers promises: nothing.

    Args:
        policy: the fields of the policy.
    """
    chosen = _of(policy)
    wanted, kept = chosen.wanted(), chosen.wanted(KEEP)
    if not wanted:
        yield (
            f"Identifiers as wholes ({FIELD}: none): e-mail addresses, telephone and account numbers are cut, and their words "
            "and numbers are treated like any. What stands between them, such as @ and dots, shows that they were there."
        )
        return
    yield (
        f"Identifiers ({_listed(wanted)}): rule-based, no guarantee. What the rules find is replaced whole and tells nothing but "
        "what is said above; what they miss, such as one that is misspelt or broken apart, is cut into words and numbers like "
        "other text. No ε covers this. Names of persons and places are no identifiers here: the lexicon's words among them are "
        "treated like its other words, the others are unknown words."
    )
    if kept:
        yield (
            f"Identifiers that are not looked for: {_listed(kept)} ({FIELD}: keep). Their words and numbers are treated like "
            "any; less of it with mask."
        )
    if chosen.wanted(FAKE):
        yield (
            "A fake is keyed letters and digits, not a draw with an ε, and may by chance be an address or a number of somebody. "
            f"With {FIELD}: mask there is none."
        )


def _of(policy: Mapping[str, Any]) -> Identifiers:
    return Identifiers.of(policy.get("identifiers", NONE))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names)
