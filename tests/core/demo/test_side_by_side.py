"""One text as strict and balanced settings release it, and what the comments of those files promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dptext_spark.audit.attacks.adversary import bayes_vulnerability
from dptext_spark.config.load import load_model_config
from dptext_spark.demo.tickets import SETTINGS, side_by_side
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.model.compile import prepare
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.names.public_lists import listed_names
from dptext_spark.text.names.search import NameSearch
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import drawn_words

CONF = Path(__file__).resolve().parents[3] / "conf"
TEXT = (
    "The Parcel  for Zqxvia came on 2024-05-17, and the parcel of 3 boxes is what we sent to ann@example.com"
)


@pytest.fixture(scope="module")
def released() -> dict[str, str]:
    return {one.settings: one.text for one in side_by_side(TEXT, RunKey.insecure(5))}


def test_the_order_is_that_of_what_protects_most(released: dict[str, str]) -> None:
    assert tuple(released) == SETTINGS == ("strict", "balanced")


def test_strict_leaves_no_word_in_clear(released: dict[str, str]) -> None:
    out = released["strict"]
    assert out == out.replace("  ", " ")
    assert not re.search(r"\d", out)
    words = re.sub(r"\[[A-Z]+\]", "", out)
    assert words == words.lower()
    assert re.findall(r"\[[A-Z]+\]", out) == ["[OOV]", "[DATE]", "[NUM]", "[EMAIL]"]
    stop_words = {"the", "for", "on", "and", "of", "is", "what", "we", "to"}  # 9 words, drawn anew
    placed = zip(TEXT.lower().split(), out.split(), strict=True)
    assert sum(before == after for before, after in placed if before in stop_words) <= 2


def test_balanced_keeps_the_form_and_replaces_a_word_alike(released: dict[str, str]) -> None:
    out = released["balanced"]
    before, after = TEXT.split(" "), out.split(" ")
    assert [one in before and one for one in after if one in ("The", "for", "on", "and", "the", "of", "is")]
    assert after[0] == "The"
    for part in ("  ", "[DATE]", "[EMAIL]", "[OOV]"):
        assert part in out
    first, second = (after[place] for place in (1, before.index("parcel")))
    assert first.lower() == second
    assert first[0].isupper()


@pytest.mark.long
@pytest.mark.parametrize(("settings", "most"), [("balanced", 0.3), ("strict", 0.08)])
def test_the_best_guess_finds_no_more_than_the_file_says(settings: str, most: float) -> None:
    """The bound of `bayes token`, of the law that is sampled, over the words that the file's policy draws."""
    model, _ = prepare(load_model_config(CONF / f"{settings}.yaml"))
    prior = of_drawn(model.prior.words, drawn_words(model.engine))
    groups = {"names": listed_names(model.vocabulary)}
    guessed = bayes_vulnerability(model.sampler, prior, 0.95, groups=groups)
    found, _ = guessed.statistic("upper", "token")
    assert 0.8 * most < found <= most  # not far below: the file changes no more of the text than it says
    assert settings == "balanced" or 0.03 < (guessed.of_names or 0) <= 0.05


def test_each_file_is_what_its_comment_says() -> None:
    strict = load_model_config(CONF / "strict.yaml")
    assert strict.policy == Policy(
        stop_words="draw", oov="mask", numbers="mask", case="lower", gaps="normalise",
        identifiers=strict.policy.identifiers, names=NameSearch(lists=True),
    )  # fmt: skip
    balanced = load_model_config(CONF / "balanced.yaml")
    assert balanced.consistency == "record"
    assert balanced.policy.names == NameSearch(lists=True, person="pseudonym", location="pseudonym")
