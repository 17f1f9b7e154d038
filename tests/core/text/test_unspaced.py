"""Stretches of scripts without spaces, cut by the lexicon: as a plain reading cuts them, at every place."""

# Look-alikes of other scripts are what these texts are about.
# ruff: noqa: RUF001
from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer, fingerprint_of
from dptext_spark.text.align_output import align
from dptext_spark.text.pair_tokens import pair, words_of
from dptext_spark.text.policy import Policy
from dptext_spark.text.unknown import count_unknown
from tests.core.text.plain_engine import Plain
from tests.core.text.samples import Step, WordsOnly, run

WORDS = (
    *("我", "你", "今天", "天气", "天", "气", "很", "好", "很好", "手机", "研究", "研究生", "生命", "起源", "目的", "t恤", "恤"),
    *("日本", "日本語", "語学", "ログイン", "東京都", "京都", "ไป", "โรงเรียน", "เรียน", "โรง", "ខ្ញុំ", "ចូល", "학교", "에서"),
    *("cat", "dog", "iphone", "big-time", "手-机", "葛\ufe00城", "大" * 24, "小" * 25, "é"),
)  # fmt: skip
STOP = ("的", "了", "は", "ได้", "the", "it's")
CORNERS = (
    "\u200b",
    "\u200d",
    "\ufe00",
    "-",
    "'",
    "\u2019",
    "่",
    "\u0301",
    " ",
    "。",
    "，",
    "3",
    "s",
    "x",
    "王小明",
    "ម",
    "大",
    "小",
    "葛",
)
KEYS = (np.uint64(1), np.uint64(2))
SEGMENTED = functools.partial(WordsOnly, segment="lexicon", stop_word_list=STOP)
PARTS = (*WORDS, *WORDS, *STOP, *CORNERS, *CORNERS, "CAT", "IPhone", "大" * 23)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)
POLICIES = st.builds(
    SEGMENTED,
    stop_words=st.sampled_from(["keep", "draw"]),
    oov=st.sampled_from(["mask", "draw", "keep"]),
    case=st.sampled_from(["carry", "lower"]),
    gaps=st.sampled_from(["keep", "normalise"]),
)


@functools.cache
def made(policy: Policy, step: int = 0) -> Privatizer:
    return Privatizer(Vocabulary.of(list(WORDS)), Step(step, len(WORDS)), policy, "token")


def plain(policy: Policy, step: int = 0) -> Plain:
    return Plain(WORDS, lambda i: (i + step) % len(WORDS), policy)


@settings(max_examples=400, deadline=None)
@given(policy=POLICIES, step=st.sampled_from([0, 7]), texts=st.lists(TEXTS, max_size=5))
def test_any_text_is_cut_as_the_plain_engine_cuts_it(policy: Policy, step: int, texts: list[str]) -> None:
    out, counters = run(made(policy, step), texts)
    for i, (text, written) in enumerate(zip(texts, out, strict=True)):
        pattern, counts, _ = plain(policy, step).expected(text)
        assert pattern.fullmatch(written.decode()), (text, written.decode())
        assert {name: int(counters.column(name)[i]) for name in counts} == counts


LONG = "今天天气很好，我的iPhone手机T恤。研究生命起源\u200b东京都は日本語学ログインโรงเรียนได้่ไป手-机x王小明cat的学校학교에서"


@pytest.mark.parametrize("oov", ["mask", "keep"])
def test_a_text_that_is_cut_at_every_place(oov: str) -> None:
    policy = SEGMENTED(oov=oov)
    texts = [LONG[a:b] for a in range(len(LONG)) for b in range(a + 1, len(LONG) + 1)]
    out, _ = run(made(policy, 5), texts)
    for text, written in zip(texts, out, strict=True):
        assert plain(policy, 5).expected(text)[0].fullmatch(written.decode()), text
    # One batch, or each text for itself: the same.
    some = texts[:: len(texts) // 40]
    assert [run(made(policy, 5), [text])[0][0] for text in some] == out[:: len(texts) // 40]


def test_by_hand() -> None:
    """What the page says, without the plain engine."""
    texts = {
        "今天天气很好": "[今天][天气][很好]",
        "我的手机": "[我]的[手机]",  # a stop word is a word, and kept
        "研究生命起源": "[研究生][OOV][起源]",  # the longest from the beginning, whatever comes then
        "王小明的手机": "[OOV]的[手机]",  # unknown letters beside each other are one unknown word
        "iPhone手机cat": "[Iphone][手机][cat]",
        "xyz手机": "[OOV][手机]",
        "T恤": "[T恤]",
        "手-机": "[手-机]",
        "手机-手机": "[手机]-[手机]",
        "手机\u200b天气": "[手机][天气]",
        "หโรงเรียนได้": "[OOV][โรงเรียน]ได้",
        "天่气": "[OOV][气]",  # never between a letter and its mark
        "大" * 24: f"[{'大' * 24}]",
        "王" + "大" * 24: f"[OOV][{'大' * 24}]",
        "小" * 25: f"[{'小' * 25}]",  # it stands alone: looked up as any word is
        "王" + "小" * 25: "[OOV]",  # beside others a word has 24 pieces at most
        "王 天气": "[OOV] [天气]",
    }
    out, counters = run(made(SEGMENTED()), list(texts))
    for text, wanted, written in zip(texts, texts.values(), out, strict=True):
        # The identity law: what is drawn comes back.
        assert written.decode().replace("[OOV]", "\0") == wanted.replace("[OOV]", "\0").replace(
            "[", ""
        ).replace("]", "").replace("Iphone", "iphone"), text
    drawn = [wanted.replace("[OOV]", "").count("[") for wanted in texts.values()]
    assert counters.column("drawn").tolist() == drawn


def test_without_it_stretches_are_one_word_and_nothing_is_bound() -> None:
    policy = WordsOnly(stop_word_list=STOP)
    out, _ = run(made(policy), ["今天天气很好", "今天", "我的手机"])
    assert [one.decode() for one in out] == ["[OOV]", "今天", "[OOV]"]
    assert "segment" not in policy.as_dict()
    assert policy.as_dict() == WordsOnly(stop_word_list=STOP, segment="none").as_dict()
    cut = SEGMENTED()
    assert Policy(**cut.as_dict()) == cut
    assert fingerprint_of({}, policy, "token") != fingerprint_of({}, cut, "token")


def test_texts_with_spaces_are_cut_as_before() -> None:
    texts = ["the cat's big-time dog, it's naïve", "привет cat", "x'y big-dog É"]
    policies = [WordsOnly(stop_word_list=STOP), SEGMENTED()]
    assert run(made(policies[0], 3), texts)[0] == run(made(policies[1], 3), texts)[0]


def test_words_of_stretches_are_counted_as_known() -> None:
    looked_up, unknown = count_unknown(made(SEGMENTED()).engine, pa.array(["今天天气很好", "王小明的手机"]))
    assert (looked_up.tolist(), unknown.tolist()) == ([3, 3], [0, 1])


@settings(max_examples=300, deadline=None)
@given(
    oov=st.sampled_from(["mask", "draw", "keep"]),
    stop_words=st.sampled_from(["keep", "draw"]),
    step=st.sampled_from([0, 7]),
    texts=st.lists(TEXTS, max_size=4),
)
def test_an_audit_with_the_settings_finds_that_rows_were_made_from_their_sources(
    oov: str, stop_words: str, step: int, texts: list[str]
) -> None:
    privatizer = made(SEGMENTED(oov=oov, stop_words=stop_words), step)
    out, _ = run(privatizer, texts)
    written = pa.array([one.decode() for one in out], pa.string())
    *_, rows, fits = align(privatizer.engine, pa.array(texts, pa.string()), written, KEYS)
    assert fits.all()
    assert set(rows.tolist()) <= set(range(len(texts)))


def test_words_of_a_stretch_are_paired_together_where_the_settings_are_known() -> None:
    privatizer = made(SEGMENTED(), 0)
    source = pa.array(["今天天气很好，王小明的手机", "我的手机的天气"])
    *_, rows, fits = align(privatizer.engine, source, pa.array(["我你很好，[OOV]的天", "气的天的目的"]), KEYS)
    assert (rows.tolist(), fits.tolist()) == ([0, 0, 0, 1], [True, True])
    # A kept word that is not there, or a clause too many: not made from this source.
    for other in ("我你很好，[OOV]天", "我你很好，王小明的天", "我你很好"):
        assert not align(privatizer.engine, source[:1], pa.array([other]), KEYS)[-1].any()


def test_clauses_with_as_many_words_are_aligned_in_an_audit_of_any_table() -> None:
    engine = made(SEGMENTED()).engine
    source = words_of(engine, pa.array(["今天天气很好，王小明的手机。研究生"]), KEYS)
    # Three words become two as they are cut anew; the masked name and what is behind it, and the last, are as many.
    output = words_of(engine, pa.array(["我你好，[OOV]的天气。起源"]), KEYS)
    again = words_of(engine, pa.array(["很好京都，[OOV]的天气。起源"]), KEYS)
    assert [np.diff(one.starts).tolist() for one in (source, output, again)] == [
        [3, 3, 1],
        [3, 3, 1],
        [2, 3, 1],
    ]
    assert pair(source, output).partner.tolist() == list(range(7))
    assert pair(source, again).partner.tolist() == [-1, -1, -1, 2, 3, 4, 5]
    assert pair(source, again).alone.tolist() == [False] * 6 + [True]


def test_the_tokenizer_whitespace_takes_none() -> None:
    with pytest.raises(SettingsError) as caught:
        Policy(segment="lexicon", tokenizer="whitespace")
    assert str(caught.value) == (
        "policy.segment: 'lexicon' given, but the tokenizer cuts at spaces only; valid: none, or policy.tokenizer: words."
    )
    with pytest.raises(SettingsError, match=r"policy.segment: 'jieba' is not known; valid: none, lexicon"):
        Policy(segment="jieba")  # type: ignore[arg-type]
