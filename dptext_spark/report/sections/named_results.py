"""Results that audits of ours return, put as a reader looks at them: each measured figure beside what it is compared with.

A result of another kind, or of another shape, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Result = Mapping[str, Any]
_LEARNT = {
    "plain/plain": "learnt from original text, reads original",
    "plain/private": "learnt from original text, reads privatized",
    "private/plain": "learnt from privatized text, reads original",
    "private/private": "learnt from and reads privatized text",
}
_READERS = {
    "private": "reads privatized text, learnt from original",
    "adaptive": "reads privatized text, learnt from privatized",
    "majority": "always the commonest",
    "unprotected": "reads original text",
}


def arranged(one: Result) -> Result:
    """Return a result with its figures in groups that make charts, and `baselines` beside the first."""
    arrange, needed = _KNOWN.get(one["name"], (None, frozenset()))
    if arrange is None or not needed <= one.keys():
        return one
    return arrange({name: value for name, value in one.items() if name not in _INNER})


def _downstream(one: dict[str, Any]) -> Result:
    majority = one.pop("majority")
    for group in ("accuracy", "gain"):
        one[group] = {_LEARNT.get(name, name): figure for name, figure in one[group].items()}
    one["accuracy lost (below 0) or gained against original text"] = one.pop("gain")
    return {**one, "baselines": {"always the commonest label": majority}}


def _attribute(one: dict[str, Any]) -> Result:
    readers = {said: one.pop(name) for name, said in _READERS.items()}
    attacks = list(readers)[:2]
    (learnt, chosen_by, tried), random = one.pop("rows"), one.pop("random")
    compared = {said: found["accuracy"] for said, found in readers.items() if said not in attacks}
    return {
        **one,
        "accuracy": {said: readers[said]["accuracy"] for said in attacks},
        "baselines": {**compared, "one of the classes at random": random},
        "F1, mean of the classes": {said: found["f1"] for said, found in readers.items()},
        "says": {"F1, mean of the classes": "F1 counts rare classes as much as frequent ones."},
        "rows learnt from": learnt,
        "rows to choose a classifier by": chosen_by,
        "rows tried on": tried,
    }


def _membership(one: dict[str, Any]) -> Result:
    private, plain, random = one.pop("private"), one.pop("unprotected"), one.pop("random")
    shown = ("accuracy", "precision", "recall")
    return {
        **one,
        "AUC": {"a classifier that learnt from privatized text": private["auc"]},
        "baselines": {
            "guessing": random,
            "a classifier that learnt from original text": plain["auc"],
        },
        "says": {"who is called a member": "What the adversary's answers of yes and no are worth."},
        "who is called a member": {
            f"{name}, {said}": figures[name]
            for said, figures in (("privatized text", private), ("original text", plain))
            for name in shown
        },
    }


def _overlap(one: dict[str, Any]) -> Result:
    others = one.pop("other_rouge")
    one["ROUGE, F1"] = one.pop("rouge")
    one["BLEU, of 100"] = one.pop("bleu")
    one["BLEU with another record's replacement"] = one.pop("other_bleu")
    return {**one, "baselines": {f"{name}, with another record's": value for name, value in others.items()}}


def _similarity(one: dict[str, Any]) -> Result:
    percentiles, mean = one.pop("percentiles"), one.pop("mean")
    others, unprotected = one.pop("others"), one.pop("unprotected")
    return {
        **one,
        "cosine": {"a record and its replacement": mean},
        "baselines": {
            "a record and another's replacement": others,
            "a record and itself": unprotected,
        },
        "percentiles of the records": percentiles,
        "says": {
            "percentiles of the records": "So many percent of the records are no more like their replacement than this."
        },
    }


def _encoder_similarity(one: dict[str, Any]) -> Result:
    others = one.pop("other_matched")
    group = "sub-words matched by their vectors (BERTScore)"
    matched = one.pop("matched") | {f"{name}, with another record's": value for name, value in others.items()}
    found = _similarity(one)
    said = (
        "Each sub-word is matched with the most similar one of the other text: precision is the mean over the replacement, "
        "recall over the original. No weights for rare words, no rescaling."
    )
    return {**found, group: matched, "says": {**found["says"], group: said}}


_INNER = ("resamples", "bleu_signature")  # how figures were made, of no use to who reads them
_KNOWN: dict[str, tuple[Callable[[dict[str, Any]], Result], frozenset[str]]] = {
    "downstream accuracy": (_downstream, frozenset({"accuracy", "gain", "majority"})),
    "attribute attack": (_attribute, frozenset({*_READERS, "random", "rows"})),
    "membership attack": (_membership, frozenset({"private", "unprotected", "random"})),
    "text overlap": (_overlap, frozenset({"rouge", "other_rouge", "bleu", "other_bleu"})),
    "encoder similarity": (
        _encoder_similarity,
        frozenset({"mean", "percentiles", "others", "unprotected", "matched", "other_matched"}),
    ),
    "vector similarity": (_similarity, frozenset({"mean", "percentiles", "others", "unprotected"})),
}
