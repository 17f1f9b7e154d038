"""The look-up table finds every word, nothing else, and writes every word as it is."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS
from dptext_spark.text.policy import Policy
from dptext_spark.text.word_table import WordTable
from tests.core.text.plain_engine import upper
from tests.core.text.samples import Step, run

ALL_DRAWN = Policy(stop_words="draw", oov="mask")


def test_every_word_of_the_packaged_lexicon_is_found() -> None:
    vocabulary = Lexicon.default().vocabulary
    words = vocabulary.strings().to_pylist()
    for step in (0, 1000):
        made = Privatizer(vocabulary, Step(step, len(words)), ALL_DRAWN)
        for text in (" ".join(words), " ".join(words).upper(), " ".join(words).title()):
            out, counters = run(made, [text])
            assert counters.totals()["drawn"] == counters.totals()["distinct"] == len(words)
            moved = " ".join(words[step:] + words[:step])
            if text.istitle():
                assert out[0].decode().lower() == moved
            else:
                assert out[0].decode() == (moved if text.islower() else upper(moved))


HEADS = st.sampled_from(["", "x" * 7, "x" * 8, "x" * 14, "x" * 15, "x" * 16, "é" * 8, "x" * 40])
ALIKE = st.builds(str.__add__, HEADS, st.text("ab", min_size=1, max_size=3))


@settings(max_examples=60)
@given(words=st.lists(ALIKE, min_size=2, max_size=40, unique=True))
def test_words_that_share_their_first_bytes(words: list[str]) -> None:
    known, unknown = words[: len(words) // 2 + 1], words[len(words) // 2 + 1 :]
    made = Privatizer(Vocabulary.of(known), Step(1, len(known)), Policy(stop_word_list=()))
    out, counters = run(made, [" ".join(words)])
    wanted = [*known[1:], known[0], *("[OOV]" for _ in unknown)]
    assert out[0].decode() == " ".join(wanted)
    assert counters.totals()["oov"] == len(unknown)


def test_a_lexicon_in_any_order_of_bytes() -> None:
    """Words of 1 to 60 bytes over few letters: hash chains, and both tables, get long."""
    rng = np.random.default_rng(0)
    words = sorted({"".join(rng.choice(list("abc"), size=n)) for n in range(1, 61) for _ in range(60)})
    vocabulary = Vocabulary.of(words)
    made = Privatizer(vocabulary, Step(0, len(words)), ALL_DRAWN)
    others = [w + "c" for w in words if w + "c" not in set(words)]
    out, counters = run(made, [" ".join(words), " ".join(others)])
    assert out[0].decode() == " ".join(words)
    assert counters.column("drawn").tolist() == [len(words), 0]
    assert counters.column("oov").tolist() == [0, len(others)]


def test_words_that_only_whitespace_can_cut() -> None:
    words = ["1980", "...", "a\u00a0b", "!", "user@example.org", "a\0", "a", "\0", "'s", "Ⅷ", "x" * 20 + "!"]
    made = Privatizer(
        Vocabulary.of(words),
        Step(0, len(words)),
        Policy(tokenizer="whitespace", stop_words="draw", identifiers=NO_IDENTIFIERS),
    )
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
