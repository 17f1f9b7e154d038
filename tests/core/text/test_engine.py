"""The compiled engine against the plain one, over arbitrary Unicode and every policy; its table of words, and its numbers."""

# Look-alikes of other scripts are what these texts are about.
# ruff: noqa: RUF001
from __future__ import annotations

import dataclasses
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError
from dptext_spark.lexicon.characters import producible
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text import chunks, engine
from dptext_spark.text.engine import COUNTERS, OF_IDENTIFIERS, OF_NAMES, OF_STAYED
from dptext_spark.text.policy import Policy as WholePolicy
from dptext_spark.text.word_table import WordTable
from tests.core.text.plain_engine import form, shape, upper, written
from tests.core.text.samples import KEPT, POLICIES, TEXTS, WORDS, Step, plain, privatizer, row, run
from tests.core.text.samples import WordsOnly as Policy

ROWS = st.lists(st.one_of(st.none(), TEXTS), max_size=4)


def check(policy: Policy, step: int, texts: list[str | None]) -> None:
    """Every row of a batch is what the plain engine says."""
    outputs, counters = run(privatizer(policy, step), texts)
    reference = plain(policy, step)
    for i, (text, output) in enumerate(zip(texts, outputs, strict=True)):
        if text is None:
            assert output is None
            assert not counters.rows[i].any()
        else:
            reference.check(text, output.decode(), row(counters, i))


def test_the_sample_lexicon_can_be_produced() -> None:
    assert producible(pa.array(WORDS)).all()
    assert len(set(WORDS)) == len(WORDS)


@pytest.mark.long
@settings(max_examples=400)
@given(policy=POLICIES, step=st.sampled_from([0, 7]), texts=ROWS)
def test_any_text_under_any_policy(policy: Policy, step: int, texts: list[str | None]) -> None:
    check(policy, step, texts)


@settings(max_examples=300)
@given(texts=ROWS, tokenizer=st.sampled_from(["words", "whitespace"]))
def test_the_identity_law_loses_no_byte(texts: list[str | None], tokenizer: str) -> None:
    """One exception, stated in the policy: a drawn word in mixed case (or with U+2019) is written anew."""
    policy = dataclasses.replace(KEPT, tokenizer=tokenizer)
    for text, output in zip(texts, run(privatizer(policy), texts)[0], strict=True):
        if text is None:
            assert output is None
            continue
        pieces, wanted = list(plain(policy).pieces(text)), ""
        for source, drawn in ((piece.source, piece.action == "drawn") for piece in pieces):
            wanted += written(form(source), shape(source)) if drawn else source
        assert output == wanted.encode()
        words = [piece.source for piece in pieces if piece.action == "drawn"]
        if not any(shape(word) == "mixed" or "\u2019" in word for word in words):
            assert output == text.encode()


NAMED = {
    "clitics": "The cat's, the dogs', don't I'd you're we've he'll I'm O'Brien's cat\u2019s",
    "tokenized clitics": "do n't it 's we 've they 'll a cat ' s",
    "compounds": "self-made a-dog mother-in-law dog-in-law x-ray -cat dog- --cat-- rock-'n'-roll rock'n'roll",
    "case": "cat Cat CAT cAT CaT I A a i STRASSE STRAßE Straße Été ÉTÉ éTÉ ǄEP ǅep ǆep ΗΜΈΡΑ 𐐀𐐩 𐐀𐐁",
    "single capitals": "I A CAT I A dog I A Dog A FROB A frob A É I'D A it A IT A I",
    "a single capital first": "A I the CAT",
    "single capitals alone": "A I A É I 1A A1",
    "a single capital far before": "A" + " " * 1022 + "CAT",
    "a single capital too far before": "A" + " " * 1023 + "CAT",
    "curly": "o\u2019clock O\u2019clock O\u2019CLOCK O'CLOCK o'clock o\u2019Clock",
    "spaces": "  cat \n\n dog\t\u00a0 the  ",
    "joiners": "c\u00adat 👩\u200d👩\u200d👧 cat\u200d \u200ecat\u200f می\u200cخواهم a\u200b b",
    "marks": "e\u0301te\u0301 E\u0301te\u0301 \u0301cat cat\u0301 1\u0301 '\u0301",
    "numbers": "7 007 1,000 3rd b2b 12345678901234567890 ９９ १२३ 𝟘𝟙 1️⃣ 1½ Ⅷ ② ²",
    "unknown": "frob Frob FROB fRob \ue000 \U0001f1e9\U0001f1ea ™ \x00 \x7f \u0378 Ⓐ㎏",
    "edges of words": " ".join("a" * n for n in (7, 8, 9, 14, 15, 16, 17, 23, 24, 25, 29, 30, 31, 32, 33)),
    "masks": "[OOV] [NUM] OOV",
    "empty": "",
    "a space": " ",
    "NUL": "\0cat\0 \0 cat\0 cat \0",
    "long numbers": "1" * 100 + " 2 " + "3" * 17,
    "clitics alone": "it 's we 've do n't i 'd",
    "gaps": "\t \U0001f469\u200d\U0001f680  \u2764\ufe0f\n\u00a0it\u00ad ,\u200b \u200b  \u200b ",
    "long": "d" * 90 + " " + "D" * 90 + " " + "q" * 5000 + " cat",
}


@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
@pytest.mark.parametrize("name", NAMED)
def test_named_texts(name: str, tokenizer: str) -> None:
    for policy in (
        KEPT,
        Policy(),
        Policy(stop_words="draw", oov="keep", numbers="mask", case="lower", gaps="normalise"),
        Policy(stop_words="draw", oov="draw", numbers="random", case="carry", gaps="normalise"),
    ):
        for step in (0, 5):
            cut = dataclasses.replace(policy, tokenizer=tokenizer)
            check(cut, step, [NAMED[name], NAMED["case"], NAMED[name]])


@pytest.mark.parametrize("length", range(1, 36))
def test_words_at_every_offset_and_length(length: int) -> None:
    """Reading 8 and 16 bytes at a time must not see the next word, the next row or the end of the batch."""
    for word in {w for w in WORDS if len(w.encode()) == length} | {"k" * length}:
        spelt = (word, word.upper(), word + "'", word + "-1")
        texts = [pad + how for pad in ("", "x", "é", " ", "abcdefg ") for how in spelt]
        check(Policy(oov="keep"), 3, texts)
        check(Policy(), 3, texts[::-1])


def test_by_hand() -> None:
    """Rules of the issue, spelt out without the plain engine."""
    texts = [
        "Cats can't herd the cat's Dog, 2 of 44!",
        "don\u2019t O\u2019CLOCK self-made CAT-DOG",
        " it 's n't ",
    ]
    step = WORDS.index("dog") - WORDS.index("cat")  # cat becomes dog
    out, counters = run(privatizer(Policy(numbers="mask"), step), texts)
    zebra = WORDS[WORDS.index("dog") + step]
    assert out[0].decode() == f"[OOV] can't [OOV] the dog's {zebra.capitalize()}, [NUM] of [NUM]!"
    clock, made = (WORDS[(WORDS.index(w) + step) % len(WORDS)] for w in ("o'clock", "self-made"))
    assert out[1].decode() == f"don\u2019t {clock.upper()} {made} DOG-{zebra.upper()}"
    assert out[2].decode() == " it 's n't "
    assert row(counters, 0) == {
        **{"words": 10, "drawn": 2, "stop_kept": 4, "oov": 2, "numbers": 2},
        **{"invalid": 0, "changed": 6, "same": 0, "distinct": 2},
        **dict.fromkeys((*OF_IDENTIFIERS, *OF_NAMES, *OF_STAYED), 0),
    }


@pytest.mark.parametrize(
    "text",
    ["A " * 400 + "CAT", "A " * 600 + "CAT A", "[x] A " * 100 + "CAT", "A\n" * 9_000 + "CAT A I dog A"],
)
def test_what_is_before_the_first_longer_word_does_not_depend_on_blocks(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = Policy(stop_words="draw", identifiers={"email": "mask"})  # type: ignore[arg-type]
    texts = [f"{text} A", text.replace("x", "a@b.com"), text]
    wanted = run(privatizer(policy, 3), texts)[0]
    assert wanted[2].decode() == "".join(piece.text for piece in plain(policy, 3).pieces(text))
    for block, strip in ((1, 1), (7, 100), (1, 2_000), (500, 1 << 40)):
        monkeypatch.setattr(engine, "BLOCK_BYTES", block)
        monkeypatch.setattr(chunks, "STRIP_BYTES", strip)
        assert run(privatizer(policy, 3), texts)[0] == wanted


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
@pytest.mark.parametrize("tokenizer", ["words", "whitespace"])
def test_types_and_slices(kind: pa.DataType, tokenizer: str) -> None:
    policy = Policy(tokenizer=tokenizer)
    texts = [*NAMED.values(), None, "", None]
    whole = pa.array(texts).cast(kind)
    made = privatizer(policy, 3)
    for start, stop in ((0, len(texts)), (3, len(texts)), (5, 9), (len(texts) - 3, len(texts)), (4, 4)):
        out, _ = made.privatize(
            whole.slice(start, stop - start),
            column="body", row_ids=pa.array(range(start, stop), pa.int64()), key=RunKey.insecure(1),
        )  # fmt: skip
        assert out.type == (pa.large_string() if "large" in str(kind) else pa.string())
        assert out.null_count == sum(t is None for t in texts[start:stop])
        out.validate(full=True)
        for text, output in zip(texts[start:stop], out.to_pylist(), strict=True):
            if text is None:
                assert output is None
            else:
                assert plain(policy, 3).expected(text)[0].fullmatch(output)


WITHOUT_BUFFERS = pa.Array.from_buffers(pa.string(), 0, [None, pa.py_buffer(b""), pa.py_buffer(b"")])


@pytest.mark.parametrize(
    "array",
    [
        pa.array([], pa.string()),
        pa.nulls(3, pa.string()),
        pa.array(["", ""]),
        pa.array([None, ""]),
        WITHOUT_BUFFERS,
    ],
)
def test_no_text_at_all(array: pa.Array) -> None:
    out, counters = run(privatizer(), array)
    assert out == [None if x is None else x.encode() for x in array.to_pylist()]
    assert not counters.rows.any()
    assert counters.rows.shape == (len(array), len(COUNTERS))


@pytest.mark.parametrize("content", [b"secretcatdog", b"\xff\xfe-1-2catdog"])
def test_bytes_under_a_null_are_not_read(content: bytes) -> None:
    offsets = pa.py_buffer(np.array([0, 6, 9, 12], np.int32))
    array = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x06"), offsets, pa.py_buffer(content)])
    ids = pa.array([1, 2, 3])
    out, counters = privatizer(KEPT).privatize(array, column="x", row_ids=ids, key=RunKey.insecure(1))
    assert out.to_pylist() == [None, "cat", "dog"]
    assert out.buffers()[2].to_pybytes() == b"catdog"
    assert (counters.totals()["words"], counters.totals()["invalid"]) == (2, 0)


def test_blocks_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine works on blocks of rows; where they end must not matter."""
    texts = list(NAMED.values()) * 3
    policy = Policy(oov="draw", stop_words="draw")
    whole, counted = run(privatizer(policy, 3), texts)
    for size in (1, 7, 100, 4096):
        monkeypatch.setattr(engine, "BLOCK_BYTES", size)
        parts, counters = run(privatizer(policy, 3), texts)
        assert parts == whole
        assert (counters.rows == counted.rows).all()


def test_outputs_that_are_much_longer_than_inputs() -> None:
    """Every word becomes the longest of the lexicon."""
    step = WORDS.index("d" * 90)
    words = " ".join(["cat"] * 50_000)
    out, _ = run(privatizer(Policy(), step), [words, words.upper(), words])
    assert out[0].decode() == " ".join(["d" * 90] * 50_000)
    assert out[1].decode() == " ".join(["D" * 90] * 50_000)


def test_a_type_that_is_no_text_is_refused() -> None:
    for array in (pa.array([1]), pa.array([None]), pa.array(["a"]).dictionary_encode(), pa.array([["a"]])):
        with pytest.raises(DataError, match="body"):
            run(privatizer(), array)


ALL_DRAWN = WholePolicy(stop_words="draw", oov="mask")


@pytest.mark.parametrize("step", [0, 1000])
def test_every_word_of_the_packaged_lexicon_is_found(step: int) -> None:
    vocabulary = Lexicon.default().vocabulary
    words = vocabulary.strings().to_pylist()
    made, moved = Privatizer(vocabulary, Step(step, len(words)), ALL_DRAWN), words[step:] + words[:step]
    for spelt in (str, str.upper, str.title):
        out, counters = run(made, [spelt(" ".join(words))])
        assert counters.totals()["drawn"] == counters.totals()["distinct"] == len(words)
        text = out[0].decode().lower() if spelt is str.title else out[0].decode()
        assert text == (upper if spelt is str.upper else str)(" ".join(moved))


HEADS = st.sampled_from(["", "x" * 7, "x" * 8, "x" * 14, "x" * 15, "x" * 16, "é" * 8, "x" * 40])
ALIKE = st.builds(str.__add__, HEADS, st.text("ab", min_size=1, max_size=3))


@settings(max_examples=60)
@given(words=st.lists(ALIKE, min_size=2, max_size=40, unique=True))
def test_words_that_share_their_first_bytes(words: list[str]) -> None:
    known, unknown = words[: len(words) // 2 + 1], words[len(words) // 2 + 1 :]
    made = Privatizer(Vocabulary.of(known), Step(1, len(known)), WholePolicy(stop_word_list=()))
    out, counters = run(made, [" ".join(words)])
    wanted = [*known[1:], known[0], *("[OOV]" for _ in unknown)]
    assert out[0].decode() == " ".join(wanted)
    assert counters.totals()["oov"] == len(unknown)


def test_words_that_only_whitespace_can_cut() -> None:
    words = ["1980", "...", "a\u00a0b", "!", "user@example.org", "a\0", "a", "\0", "'s", "Ⅷ", "x" * 20 + "!"]
    policy = Policy(tokenizer="whitespace", stop_words="draw")
    made = Privatizer(Vocabulary.of(words), Step(0, len(words)), policy)
    out, counters = run(made, ["1980 ... ! user@example.org a a\0 \0 's " + "x" * 20 + "! ?"])
    assert out[0].decode() == "1980 ... ! user@example.org a [OOV] [OOV] 's " + "x" * 20 + "! ?"
    assert counters.totals()["drawn"] == 7


def test_arrays_round_trip() -> None:
    table = WordTable.build(Vocabulary.of(["cat", "the", "x" * 30]), ["the", "it", "don't"])
    again = WordTable.restore(table.arrays())
    for name, array in table.arrays().items():
        assert array is again.arrays()[name]
    assert int(table.size[0]) == 3
    assert len(table.offsets) - 1 > 3  # stop words that the lexicon lacks follow its own


def test_sliced_vocabularies() -> None:
    array = pa.array(["zero", "cat", "dog", "x" * 40, "last"]).slice(1, 3)
    made = Privatizer(Vocabulary.of(array), Step(1, 3), ALL_DRAWN)
    texts = pa.array(["zero", "cat dog " + "x" * 40, None]).slice(1, 2)
    out, _ = made.privatize(texts, column="b", row_ids=pa.array([1, 2]), key=RunKey.insecure(1))
    assert out.to_pylist() == ["dog " + "x" * 40 + " cat", None]


SCRIPTS = [*"0\u0660\u0966\uff10\U0001d7ce\U0001d7d8\U0001d7f6\U0001e950"]
LIMIT = 51.1


def values(text: str) -> list[int]:
    return [unicodedata.digit(c) for c in text]


def uniform(digits: np.ndarray) -> bool:
    counts = np.bincount(digits, minlength=10)
    return bool(((counts - len(digits) / 10) ** 2 / (len(digits) / 10)).sum() < LIMIT)


@pytest.mark.parametrize("zero", SCRIPTS)
def test_each_script_stays_and_each_digit_is_uniform(zero: str) -> None:
    """At every position, and whatever the digit was: all zeros and all nines give the same law."""
    for digit in (0, 9):
        number = chr(ord(zero) + digit) * 37
        out, counters = run(privatizer(), [f"{number}, {number}"] * 1500)
        drawn = []
        for text in out:
            first, second = text.decode().split(", ")
            assert len(first) == len(second) == 37
            assert {ord(c) - unicodedata.digit(c) for c in first + second} == {ord(zero)}
            drawn += [values(first), values(second)]
        table = np.array(drawn)
        assert all(uniform(table[:, j]) for j in range(37))
        # Neighbours are independent, across the borders of the halves (8) and of the blocks (16) too.
        for j in (0, 6, 7, 8, 14, 15, 16, 31):
            assert abs(np.corrcoef(table[:, j], table[:, j + 1])[0, 1]) < 6 / np.sqrt(len(table))
        assert counters.totals()["numbers"] == counters.totals()["words"] == 3000


@pytest.mark.parametrize("length", [*range(1, 20), 31, 32, 33, 47, 48, 49, 100, 101, 1000])
def test_every_length(length: int) -> None:
    out, counters = run(privatizer(), ["0" * length, "9" * length, "a0" * length])
    assert len(out[0]) == len(out[1]) == length
    assert out[0].isdigit()
    assert out[1].isdigit()
    assert out[0] != out[1] or length < 16
    assert counters.column("numbers").tolist() == [1, 1, length]
    assert [c == ord("a") for c in out[2]] == [True, False] * length


def test_digits_of_several_scripts_in_one_number() -> None:
    text = "1\u0661\u096a\uff19" * 9
    out, counters = run(privatizer(), [text])
    zeros = [ord(c) - unicodedata.digit(c) for c in text]
    assert [ord(c) - unicodedata.digit(c) for c in out[0].decode()] == zeros
    assert counters.totals()["numbers"] == 1


def test_a_number_may_come_out_as_itself() -> None:
    """One digit in ten stays: else the output would say what the input was not."""
    out, counters = run(privatizer(), ["7"] * 4000)
    same = sum(text == b"7" for text in out)
    assert abs(same - 400) < 6 * np.sqrt(4000 * 0.09)
    assert counters.totals()["changed"] == 4000 - same


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
def test_parts_of_a_long_number_are_drawn_apart(level: str) -> None:
    """A block gives 16 digits; where every part of the number is the same, no two parts come out alike."""
    out, _ = run(privatizer(consistency=level), ["4" * 96, "4" * 96])
    for text in out:
        assert len({text[i : i + 16] for i in range(0, 96, 16)}) == 6
        assert len({text[i : i + 8] for i in range(0, 96, 8)}) == 12
    assert (out[0] == out[1]) == (level == "dataset")
