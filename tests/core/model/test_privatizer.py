"""The heart as a whole: what each draw is for, the three levels, the counters, and sameness on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import pickle
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import CONSISTENCY, Privatizer, fingerprint_of
from dptext_spark.randomness import Draws, RunKey
from dptext_spark.text.engine import COUNTERS, Counters
from dptext_spark.text.policy import NO_IDENTIFIERS, Policy
from tests.core.names import beginning
from tests.core.text.plain_engine import form
from tests.core.text.samples import TEXTS, WORDS, FirstLane, Step, privatizer, row, run

KEY = RunKey.insecure(1)
DRAW_ALL = Policy(stop_words="draw", oov="draw", identifiers=NO_IDENTIFIERS)


@dataclasses.dataclass(frozen=True, eq=False)
class Spy(Step):
    """The identity law that writes down what it was given: (word, lane 0, lane 1) of every draw."""

    seen: list[tuple[int, int, int]] = dataclasses.field(default_factory=list)

    def sample(self, ids: np.ndarray, draws: Draws) -> np.ndarray:
        self.seen.extend(zip(ids.tolist(), draws.u64(0).tolist(), draws.u64(1).tolist(), strict=True))
        return ids.copy()


def first_lane(level: str = "token") -> Privatizer:
    """A model whose words show their draws."""
    return Privatizer(Vocabulary.of(list(WORDS)), FirstLane(0, len(WORDS)), DRAW_ALL, level)  # type: ignore[arg-type]


def drawn(
    texts: list[str], consistency: str = "token", step: int = 0, policy: Policy = DRAW_ALL, **kwargs
) -> list:  # type: ignore[no-untyped-def]
    """The 64-bit numbers that a batch draws, in order: (word, number, number)."""
    spy = Spy(step, len(WORDS))
    run(Privatizer(Vocabulary.of(list(WORDS)), spy, policy, consistency), texts, **kwargs)  # type: ignore[arg-type]
    return spy.seen


def all_differ(*batches: list) -> bool:
    """No number of either lane occurs twice; by chance that would be one in 10^13 for a thousand of them."""
    found = [number for batch in batches for _, *pair in batch for number in pair]
    return len(found) > 0 and len(set(found)) == len(found)


def tokens(output: bytes | None) -> list[str]:
    return [] if output is None else output.decode().split()


OTHERS: dict[str, dict[str, Any]] = {
    "key": {"key": RunKey.insecure(2)},
    "run_id": {"run_id": "next"},
    "column": {"column": "subject"},
    "number_ids": {"row_ids": pa.array([10, 11])},
    "string_ids": {"row_ids": pa.array(["0", "1"])},
    "step": {"step": 1},  # another mechanism, or another ε: other arrays
    "policy": {"policy": dataclasses.replace(DRAW_ALL, case="lower")},
    "stop_words": {"policy": dataclasses.replace(DRAW_ALL, stop_word_list=("zzz",))},
    "record": {"consistency": "record"},
    "dataset": {"consistency": "dataset"},
}


class TestTokenLevel:
    """concepts/mechanisms, Draws: one uniform never serves two different inputs, and a retry draws the same ones."""

    def test_a_retry_draws_the_same(self) -> None:
        texts = ["cat dog cat", "cat dog cat"]
        assert drawn(texts) == drawn(texts)

    def test_every_occurrence_draws_anew(self) -> None:
        assert all_differ(drawn(["cat cat cat dog", "cat cat cat dog"]))

    @pytest.mark.parametrize("name", OTHERS)
    def test_whatever_differs_the_numbers_do(self, name: str) -> None:
        texts = ["cat dog ox", "zebra a i"]
        assert all_differ(drawn(texts), drawn(texts, **OTHERS[name]))

    def test_runs_and_columns_are_not_mixed_up(self) -> None:
        pairs = itertools.product(["", "a", "ab"], ["", "b", "ab"])
        assert all_differ(*(drawn(["cat"], run_id=run_id, column=column) for run_id, column in pairs))

    def test_a_record_of_several_rows_draws_for_each_row(self) -> None:
        records = pa.array(["r", "r"])
        assert all_differ(drawn(["cat dog", "cat dog"], record_ids=records))
        assert drawn(["cat dog", "cat dog"], record_ids=records) == drawn(["cat dog", "cat dog"])

    def test_an_edited_text_under_the_same_position(self) -> None:
        """A word that stays keeps its number; one that changed gets an unrelated one, though it stands at the same place."""
        before, after = drawn(["cat dog ox"]), drawn(["cat don ox"])
        assert before[0] == after[0]
        assert before[2] == after[2]
        assert all_differ(before[1:2], after[1:2])
        # A word inserted before moves the rest to other positions.
        assert all_differ(drawn(["cat dog ox"]), drawn(["a cat dog ox"]))

    def test_the_uniform_of_an_edited_word_is_unrelated(self) -> None:
        """Not only different: over many rows the two numbers show no dependence."""
        words, rows = len(WORDS), 40_000
        place = {word.encode(): i for i, word in enumerate(WORDS)}
        outs = (run(first_lane(), [word] * rows)[0] for word in ("cat", "dog"))
        a, b = (np.array([place[text] for text in out]) for out in outs)
        assert abs((a == b).mean() - 1 / words) < 6 * np.sqrt(1 / words / rows)
        assert abs(np.corrcoef(a, b)[0, 1]) < 6 / np.sqrt(rows)

    def test_unknown_words_and_numbers_too(self) -> None:
        text = "frob 1234567890123456 frob 1234567890123456"
        outputs = [
            tokens(run(privatizer(DRAW_ALL), [text, text], **other)[0][i])
            for i in (0, 1)
            for other in ({}, {"column": "subject"}, {"run_id": "next"}, {"key": RunKey.insecure(2)})
        ]
        digits = [t for out in outputs for t in (out[1], out[3])]
        assert len(set(digits)) == len(digits)
        assert len({t for out in outputs for t in (out[0], out[2])}) > 5
        edited = run(privatizer(DRAW_ALL), ["1234567890123456 1234567890123456", "9234567890123456 1234567890123456"],
                     row_ids=pa.array([0, 0]))[0]  # fmt: skip
        assert edited[0].split()[1] == edited[1].split()[1]
        assert sum(a == b for a, b in zip(*(t.split()[0] for t in edited), strict=True)) < 8


class TestConsistency:
    WORD_LEVELS = pytest.mark.parametrize("level", ["record", "dataset"])

    @WORD_LEVELS
    def test_it_holds_across_runs_batches_and_columns(self, level: str) -> None:
        texts = ["cat frob 12345", "dog cat frob 12345"]
        records = pa.array(["r", "r" if level == "record" else "s"])
        made = privatizer(DRAW_ALL, 3, level)
        first = run(made, texts, record_ids=records, run_id="monday", column="a")[0]
        for i in (0, 1):
            again = run(made, texts[i : i + 1], record_ids=records[:1], run_id="tuesday", column="b")[0]
            assert again == first[i : i + 1]
        assert first[1].endswith(first[0].split(b" ", 1)[1])
        assert run(made, texts, record_ids=records, key=RunKey.insecure(2))[0] != first

    def test_scopes_of_records(self) -> None:
        """A record is all rows and columns with one record key; without one it is the row."""
        spy = lambda **k: drawn(["cat dog", "cat dog"], "record", **k)  # noqa: E731
        shared = spy(record_ids=pa.array(["r", "r"]))
        assert shared[:2] == shared[2:]
        assert all_differ(shared[:2])
        assert shared == spy(record_ids=pa.array(["r", "r"]), column="other", row_ids=pa.array([7, 8]))
        assert all_differ(spy(record_ids=pa.array(["r", "s"])))
        alone = spy()
        assert all_differ(alone)
        assert alone == spy(record_ids=pa.array([0, 1]))
        assert all_differ(shared[:2], spy(record_ids=pa.array([b"q", b"q"]))[:2])

    @WORD_LEVELS
    def test_spellings_of_one_word_are_one_word(self, level: str) -> None:
        """Case, curly apostrophes, and parts of compounds: of known and unknown words, short and long."""
        made, long = first_lane(level), "qwertyuiopasdfghjklzxcvbnm"
        text = f"cat CAT Cat cAt cat-frob FROB Frob o'clock O\u2019CLOCK frob-{long} {long} {long.upper()} a-{long}"
        out, _ = run(made, [text])
        groups = defaultdict(set)
        # Outputs may hold hyphens of their own, so the words are asked for one by one.
        for word in text.replace("-", " ").split():
            groups[form(word)].add(form(run(made, [word])[0][0].decode()))
        assert all(len(group) == 1 for group in groups.values())
        (first,), (second,) = groups["frob"], groups[long]
        assert f"{first}-{second}" in out[0].decode()

    def test_unknown_words_share_no_draw(self) -> None:
        words = [f"unknown{c}" for c in "abcdefghijklmnopqrstuvwxyz"]
        assert len(set(tokens(run(privatizer(DRAW_ALL, 0, "dataset"), [" ".join(words)])[0][0]))) > 10


class TestCounters:
    @settings(max_examples=100)
    @given(
        texts=st.lists(st.none() | TEXTS, max_size=5),
        cut=st.integers(0, 5),
        level=st.sampled_from(CONSISTENCY),
    )
    def test_they_add_up(self, texts: list[str | None], cut: int, level: str) -> None:
        made = privatizer(DRAW_ALL, 3, level)
        ids = pa.array(range(len(texts)), pa.int64())
        whole, counters = run(made, texts, row_ids=ids)
        parts = [run(made, texts[s], row_ids=ids[s]) for s in (slice(cut), slice(cut, None))]
        assert whole == parts[0][0] + parts[1][0]
        together = parts[0][1] + parts[1][1]
        assert (together.rows == counters.rows).all()
        totals = counters.totals()
        assert list(totals) == ["rows", *COUNTERS]
        assert totals["rows"] == len(texts)
        for i in range(len(texts)):
            c = row(counters, i)
            assert c["words"] == c["drawn"] + c["stop_kept"] + c["oov"] + c["numbers"]
            assert c["changed"] + c["same"] <= c["words"]
            assert c["distinct"] <= c["drawn"]
        for name in COUNTERS:
            assert totals[name] == int(counters.column(name).sum()) == sum(p[1].totals()[name] for p in parts)
            assert totals[name] >= 0

    def test_sums_do_not_overflow(self) -> None:
        rows = np.full((3, len(COUNTERS)), 2**31 - 1, np.int32)
        assert Counters(rows, np.zeros(3, np.int64)).totals()["words"] == 3 * (2**31 - 1)


class TestSameness:
    """One key and one input give one output, whatever the machine does."""

    TEXTS = tuple(" ".join((WORDS * 9)[i : i + 7]) for i in range(0, len(WORDS) * 9, 7))

    @pytest.mark.parametrize("level", CONSISTENCY)
    def test_batches(self, level: str) -> None:
        made, texts = first_lane(level), pa.array([*self.TEXTS, "frob 123 frob", None, ""])
        ids = pa.array([f"id{i}" for i in range(len(texts))])
        whole, _ = run(made, texts, row_ids=ids)
        for size in (1, 2, 7, len(texts)):
            slices = [slice(i, i + size) for i in range(0, len(texts), size)]
            assert [x for part in slices for x in run(made, texts[part], row_ids=ids[part])[0]] == whole
        order = np.random.default_rng(0).permutation(len(texts))
        shuffled, _ = run(made, texts.take(pa.array(order)), row_ids=ids.take(pa.array(order)))
        assert shuffled == [whole[i] for i in order]

    @pytest.mark.parametrize("level", CONSISTENCY)
    def test_threads(self, level: str) -> None:
        """One privatizer serves several threads at once: nothing in it is shared that changes."""
        texts, fresh, start = self.TEXTS * 20, first_lane(level), threading.Barrier(6)

        def work(_: int) -> list:
            start.wait()
            return run(fresh, texts)[0]

        with ThreadPoolExecutor(6) as pool:
            assert [*pool.map(work, range(6))] == [run(first_lane(level), texts)[0]] * 6

    @pytest.mark.cluster
    def test_other_processors_and_thread_counts(self, on_another_processor: Callable[[str], str]) -> None:
        """A process without vector instructions, on one thread, with nothing cached, gives every byte."""
        assert on_another_processor("tests.core.model.test_privatizer.digest") == digest()


def digest() -> str:
    """A hash of models and outputs: both metrics, all levels, words, unknown words and numbers."""
    lexicon = beginning(Lexicon.default(), 1500)
    words = lexicon.vocabulary.strings().to_pylist()
    texts = pa.array([" ".join(words[i : i + 50]) + " Frob 12345 ÉTÉ été" for i in range(0, 1500, 50)])
    parts = []
    for metric, level in zip(("cosine", "euclidean", "cosine"), CONSISTENCY, strict=True):
        made = Privatizer(lexicon, CusText(1.7, 20, metric=metric).compile(lexicon), DRAW_ALL, level)
        out, _ = made.privatize(texts, column="c", row_ids=pa.array(range(len(texts))), key=KEY)
        parts += [made.fingerprint, hashlib.sha256(out.buffers()[2]).hexdigest()]
    return " ".join(parts)


class TestRefusals:
    def test_an_unknown_level(self) -> None:
        with pytest.raises(SettingsError, match=r"consistency.*Did you mean 'record'"):
            privatizer(consistency="records")

    @pytest.mark.parametrize("level", ["token", "record"])
    def test_null_identities(self, level: str) -> None:
        made = privatizer(consistency=level)
        with pytest.raises(DataError, match="NULL") as raised:
            run(made, ["PRIVATE", "cat"], row_ids=pa.array(["PRIVATE", None]))
        assert "PRIVATE" not in str(raised.value)
        if level == "record":
            with pytest.raises(DataError, match=r"record.*NULL"):
                run(made, ["cat", "cat"], record_ids=pa.array([None, "r"]))

    @pytest.mark.parametrize("level", CONSISTENCY)
    def test_lengths_that_differ(self, level: str) -> None:
        with pytest.raises(DataError, match="body: 2 texts do not fit 1 identities"):
            run(privatizer(consistency=level), ["PRIVATE", "cat"], row_ids=pa.array([1]))

    def test_a_lexicon_of_another_tokenizer(self) -> None:
        lexicon = Lexicon(Vocabulary.of(["ten", "30"]), np.eye(2, dtype=np.float32))
        law = CusText(k=2).compile(lexicon)
        assert Privatizer(lexicon, law, Policy(tokenizer="whitespace")).consistency == "token"
        with pytest.raises(DataError, match=r"^lexicon: policy.tokenizer 'words' .* the first '30'"):
            Privatizer(lexicon, law)


class TestObject:
    def test_the_fingerprint_covers_everything_that_is_drawn_from(self) -> None:
        arrays = {"a": np.arange(6), "b": np.zeros(3, np.int32)}
        same = fingerprint_of(dict(reversed(arrays.items())), Policy(), "token")
        variants = [
            (arrays, Policy(), "token"),
            (arrays, Policy(oov="keep"), "token"),
            (arrays, Policy(), "record"),
            ({**arrays, "a": np.arange(6)[::-1]}, Policy(), "token"),
            ({**arrays, "a": np.arange(6).reshape(2, 3)}, Policy(), "token"),
            ({**arrays, "a": np.arange(6).astype(np.int32)}, Policy(), "token"),
            ({**arrays, "c": np.zeros(0)}, Policy(), "token"),
            ({"b": arrays["a"], "a": arrays["b"]}, Policy(), "token"),
        ]
        made = [fingerprint_of(*v) for v in variants]  # type: ignore[arg-type]
        assert len(set(made)) == len(made)
        assert made[0] == same
        strided = {**arrays, "a": np.arange(12)[::2] // 2}
        assert fingerprint_of(strided, Policy(), "token") == same

    @pytest.mark.long
    def test_a_used_privatizer_travels_without_its_draws(self) -> None:
        """At dataset level it remembers what it drew, under a subkey: no table of substitutions is ever shipped."""
        made = first_lane("dataset")
        wanted = run(made, ["cat dog"])[0]
        (subkey, table), *_ = made._draws.items()
        sent = pickle.dumps(made)
        assert subkey not in sent
        assert table.tobytes() not in sent
        assert run(pickle.loads(sent), ["cat dog"])[0] == wanted

    def test_at_dataset_level_a_word_is_drawn_when_it_first_occurs(self, monkeypatch: Any) -> None:
        """Once, whatever the batches: noise costs a search of the lexicon a word, and most words never occur."""
        asked: list[int] = []
        plain = FirstLane.sample

        def counted(self: FirstLane, ids: np.ndarray, draws: Any) -> np.ndarray:
            asked.extend(ids.tolist())
            return plain(self, ids, draws)

        monkeypatch.setattr(FirstLane, "sample", counted)
        batches, made = ["cat dog cat", "dog", "ox CAT dog", "ox ox"], first_lane("dataset")
        found = [run(made, [text])[0][0] for text in batches]
        assert sorted(asked) == sorted(map(WORDS.index, ("cat", "dog", "ox")))
        assert found == run(first_lane("dataset"), batches)[0]
        assert run(first_lane("dataset"), batches, key=RunKey.insecure(2))[0] != found

    def test_a_real_law_reaches_the_text(self) -> None:
        """Each drawn word comes out of its law's support, as often as the law says."""
        vectors = np.random.default_rng(0).normal(size=(len(WORDS), 3)).astype(np.float32)
        lexicon = Lexicon(Vocabulary.of(list(WORDS)), vectors)
        sampler = CusText(4.0, 6).compile(lexicon)
        made = Privatizer(lexicon, sampler, DRAW_ALL)
        for word in ("cat", "été", "internationalisation"):
            law = sampler.law(WORDS.index(word))
            n = 20_000
            out, _ = run(made, [f"{word} " * 20] * (n // 20))
            found = [t for text in out for t in tokens(text)]
            for u, p in zip(law.ids.tolist(), law.probability.tolist(), strict=True):
                assert abs(found.count(WORDS[u]) / n - p) < 6 * np.sqrt(p / n)
            assert set(found) <= {WORDS[u] for u in law.ids.tolist()}
