"""All texts of a row are chosen in together: the laws of whole rows multiplied, against what the guarantee claims.

Every row of a few words over a lexicon of four goes through the privatizer. Laws that move a word by one place or by two show at
which level each occurrence was drawn, and their numbers which occurrences share a draw: that is the law of the row's output, as
a product. Two rows that differ in what the guarantee is for, with the same choice, must not be farther apart than it says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import DIRECTIONS, Importance, Level, check_record_key
from dptext_spark.importance.providers import ColumnWeights, ImportanceProvider, RandomImportance
from dptext_spark.importance.selector import RowTexts, Selector, levels_of
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms.samplers.table import TableSampler, TableSummary
from dptext_spark.model.privatizer import IN_ONE_TEXT, UNITS, Privatizer
from dptext_spark.randomness import Draws, RunKey
from dptext_spark.text.chunks import Spans
from dptext_spark.text.policy import Policy
from dptext_spark.text.selection import Texts
from tests.core.importance.test_selector import Lengths
from tests.core.text.samples import Step

KEY = RunKey.insecure(3)
WORDS = ("alder", "birch", "cedar", "maple")
EPSILONS = (4.0, 5.0)
CLEAR = -1  # in the place of a level
# Words of each text of a row, by column; a column of several texts is a list of them.
LAYOUTS: dict[str, list[list[int]]] = {
    "one text": [[4]],
    "two columns": [[2], [2]],
    "a list": [[1, 0, 3]],
    "two columns and a list": [[1], [1], [1, 1]],
}
SHARES: dict[str, dict[str, Any]] = {
    "levels": {"levels": (Level(30), Level(None))},
    "levels and a rest in clear": {"levels": (Level(25), Level(25))},
    "a share": {"percent": 25},
    "all": {"percent": 100},
}


class Ranked(Lengths):
    """A provider that likes some words more: the choice depends on them."""

    fingerprint = "ranked"

    def weights(self, words: Spans) -> np.ndarray:
        return words.data[words.starts].astype(np.float32)


@dataclass(frozen=True, eq=False)
class Seen(Step):
    """Moves a word, and notes what number each draw was made from."""

    numbers: list[int] = field(default_factory=list)

    def sample(self, ids: np.ndarray, draws: Draws) -> np.ndarray:
        self.numbers.extend(draws.u64(0).tolist())
        return super().sample(ids, draws)


def law(epsilon: float) -> tuple[tuple[Fraction, ...], ...]:
    """Randomized response: the chances of every output of every word, exactly as they are sampled."""
    odds = np.full((len(WORDS), len(WORDS)), 1.0) + np.eye(len(WORDS)) * (math.exp(epsilon) - 1)
    outputs = np.tile(np.arange(len(WORDS), dtype=np.int32), (len(WORDS), 1))
    sampler = TableSampler.of(outputs, odds, Guarantee("epsilon_dp", epsilon), TableSummary())
    found = []
    for word in range(len(WORDS)):
        one = sampler.law(word)
        weights = dict(zip(one.ids.tolist(), one.weight.tolist(), strict=True))
        found.append(tuple(Fraction(weights[other], 1 << 63) for other in range(len(WORDS))))
    return tuple(found)


LAWS = [law(epsilon) for epsilon in EPSILONS]
# The greatest ratio of the chances of one output of two words, by level.
RATIOS = [
    [[max(a / b for a, b in zip(one, other, strict=True)) for other in laws] for one in laws] for laws in LAWS
]


@dataclass(frozen=True)
class Outcome:
    """What becomes of a row.

    Attributes:
        levels: of each word, in the order of the columns; CLEAR where it stays.
        draws: for each drawn word what tells its draw from others; None for one that stays.
    """

    levels: tuple[int, ...]
    draws: tuple[Any, ...]


def made(consistency: str, provider: ImportanceProvider, **selection: Any) -> tuple[Privatizer, list[Seen]]:
    weights = ("w",) if provider.name == "column" else ()
    chosen = Importance(provider=provider.name, weights=weights, **selection)
    laws = [Seen(n + 1, len(WORDS), Guarantee("epsilon_dp", epsilon)) for n, epsilon in enumerate(EPSILONS)]
    laws = laws[: len(chosen.cumulative)]
    words, policy = Vocabulary.of(list(WORDS)), Policy(stop_words="draw")
    selector = Selector(chosen, provider, tuple(laws[1:]))
    return Privatizer(words, laws[0], policy, consistency, selector=selector), laws  # type: ignore[arg-type]


def outcomes(
    privatizer: Privatizer, laws: list[Seen], rows: Sequence[tuple[int, ...]], layout: list[list[int]],
    *, together: bool = True,
) -> list[Outcome]:  # fmt: skip
    """Sanitize rows of words, and read off what became of each; `together`: as a job does, or column by column."""
    columns, at = [], 0
    for sizes in layout:
        texts = []
        for row in rows:
            start = at
            for size in sizes:
                texts.append(" ".join(WORDS[word] for word in row[start : start + size]))
                start += size
        weights = None
        if isinstance(privatizer.selector.provider, ColumnWeights):  # type: ignore[union-attr]
            counts = [(len(text), len(text.split())) for text in texts]
            weights = pa.array([[float(size % 7 + n) for n in range(words)] for size, words in counts])
        owner = np.repeat(np.arange(len(rows)), len(sizes))
        columns.append(Texts(pa.array(texts, pa.string()), owner, weights))
        at += sum(sizes)
    chosen = privatizer.choose(columns) if together else None
    levels: list[list[int]] = [[] for _ in rows]
    draws: list[list[Any]] = [[] for _ in rows]
    for number, column in enumerate(columns):
        assert column.rows is not None
        before = [len(one.numbers) for one in laws]
        out, _ = privatizer.privatize(
            column.values, column=f"c{number}", row_ids=pa.array(range(len(column.values))), key=KEY, run_id="r",
            record_ids=pa.array(column.rows) if together else None,
            weights=None if together else column.weights, chosen=chosen[number] if chosen else None,
        )  # fmt: skip
        numbers = [iter(one.numbers[start:]) for one, start in zip(laws, before, strict=True)]
        for row, text, output in zip(column.rows, column.values.to_pylist(), out.to_pylist(), strict=True):
            for word, became in zip(text.split(), output.split(), strict=True):
                level = (WORDS.index(became) - WORDS.index(word)) % len(WORDS) - 1
                levels[row].append(level)
                draws[row].append(None if level == CLEAR else (level, next(numbers[level])))
    return [Outcome(tuple(a), tuple(b)) for a, b in zip(levels, draws, strict=True)]


def neighbours(row: tuple[int, ...], levels: tuple[int, ...], consistency: str) -> Iterator[tuple[int, ...]]:
    """Yield rows that differ in one unit: a drawn occurrence, or all of a word that is drawn somewhere, the pattern kept."""
    if consistency == "token":
        for place, word in enumerate(row):
            for other in {*range(len(WORDS))} - {word} if levels[place] != CLEAR else ():
                yield (*row[:place], other, *row[place + 1 :])
        return
    for word in {word for word, level in zip(row, levels, strict=True) if level != CLEAR}:
        for other in {*range(len(WORDS))} - {*row}:
            yield tuple(other if one == word else one for one in row)


def pattern(draws: tuple[Any, ...]) -> list[int]:
    """Which occurrences share a draw: of each the first one that has it."""
    return [place if one is None else draws.index(one) for place, one in enumerate(draws)]


def ratio(row: tuple[int, ...], other: tuple[int, ...], outcome: Outcome) -> Fraction | float:
    """The greatest ratio of the chances of one output of two rows with one choice: the product over their draws."""
    found = Fraction(1)
    for place, (first, level) in enumerate(zip(pattern(outcome.draws), outcome.levels, strict=True)):
        if level == CLEAR:
            if row[place] != other[place]:
                return math.inf
        elif first == place:  # what shares a draw counts once
            found *= RATIOS[level][row[place]][other[place]]
    return found


def worst_loss(
    privatizer: Privatizer, laws: list[Seen], layout: list[list[int]], **how: Any
) -> tuple[float, int]:
    """Compare all rows with their neighbours: (the greatest loss, how many pairs have the same choice)."""
    size = sum(sum(sizes) for sizes in layout)
    rows = list(product(range(len(WORDS)), repeat=size))
    found = dict(zip(rows, outcomes(privatizer, laws, rows, layout, **how), strict=True))
    worst, pairs = Fraction(1), 0
    for row, outcome in found.items():
        for other in neighbours(row, outcome.levels, privatizer.consistency):
            there = found[other]
            if there.levels != outcome.levels:
                continue
            assert pattern(there.draws) == pattern(outcome.draws)
            worst, pairs = max(worst, ratio(row, other, outcome)), pairs + 1  # type: ignore[type-var]
    return (math.inf if worst == math.inf else math.log(worst)), pairs


@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("shares", SHARES.values(), ids=SHARES)
@pytest.mark.parametrize("consistency", ["token", "record"])
@pytest.mark.parametrize(
    "provider", [RandomImportance(), Ranked(), ColumnWeights()], ids=["random", "ranked", "column"]
)
def test_no_row_loses_more_than_is_claimed(
    layout: list[list[int]], shares: dict[str, Any], consistency: str, provider: ImportanceProvider
) -> None:
    directions = DIRECTIONS if isinstance(provider, Ranked) else DIRECTIONS[:1]
    for direction in directions:
        privatizer, laws = made(consistency, provider, direction=direction, **shares)
        claimed = privatizer.guarantee(of_rows=True)
        assert claimed.unit == UNITS[consistency]
        worst, pairs = worst_loss(privatizer, laws, layout)
        assert pairs > 50
        assert worst <= claimed.epsilon + 1e-12
        if not isinstance(provider, Ranked):  # and the claim is no larger than need be
            assert worst > claimed.epsilon - 1e-9


class TestChosenTextByText:
    """What the guarantee of one text does not say of a record: the comparison above would find it."""

    def test_what_is_said_of_one_text_holds(self) -> None:
        for shares in SHARES.values():
            privatizer, laws = made("record", Ranked(), **shares)
            worst, _ = worst_loss(privatizer, laws, LAYOUTS["one text"], together=False)
            assert worst <= privatizer.guarantee().epsilon + 1e-12
        assert privatizer.guarantee().unit == IN_ONE_TEXT
        assert "record" not in privatizer.guarantee().sentence
        # Two columns that are chosen in apart: two levels of a word add up, and a drawn word stands in clear elsewhere.
        for name, expected in (("levels", sum(EPSILONS)), ("a share", math.inf)):
            privatizer, laws = made("record", RandomImportance(), **SHARES[name])
            worst, _ = worst_loss(privatizer, laws, LAYOUTS["two columns"], together=False)
            assert worst == pytest.approx(expected, abs=1e-9)


class TestRecordsOfSeveralRows:
    def test_are_refused_where_they_are_planned(self) -> None:
        for consistency, row_key, record_key in (
            ("record", "id", None), ("record", "id", "id"), ("record", None, None), ("token", "id", "customer"),
        ):  # fmt: skip
            check_record_key(consistency, row_key, record_key)
        for row_key in ("id", None):
            with pytest.raises(SettingsError, match=r"record_key: 'customer' is not valid with importance"):
                check_record_key("record", row_key, "customer")

    def test_are_refused_by_the_privatizer(self) -> None:
        privatizer, _ = made("record", RandomImportance(), percent=50)
        texts, ids = pa.array(["alder", "alder birch", "cedar"]), pa.array(["a", "b", "c"])
        customers = pa.array(["x", "x", "y"])
        options: dict[str, Any] = {"column": "c", "row_ids": ids, "key": KEY}
        privatizer.privatize(texts, record_ids=ids, **options)
        for chosen in (None, *(privatizer.choose([Texts(texts)]) or ())):
            with pytest.raises(DataError, match=r"c: the record_ids"):
                privatizer.privatize(texts, record_ids=customers, chosen=chosen, **options)
        # Texts of one row have one record, and texts of two rows have two.
        (chosen,) = privatizer.choose([Texts(texts, np.array([0, 0, 1]))]) or ()
        privatizer.privatize(texts, record_ids=customers, chosen=chosen, **options)
        for wrong in (ids, pa.array(["x", "x", "x"])):
            with pytest.raises(DataError, match="record_ids"):
                privatizer.privatize(texts, record_ids=wrong, chosen=chosen, **options)
        # At token level a record is only what ε is summed over, and without importance nothing is chosen.
        made("token", RandomImportance(), percent=50)[0].privatize(texts, record_ids=customers, **options)
        replace(privatizer, selector=None, fingerprint="").privatize(texts, record_ids=customers, **options)


TEXT = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
ROW = st.tuples(st.one_of(st.none(), TEXT), st.lists(st.one_of(st.none(), TEXT), max_size=3), TEXT)


@pytest.mark.parametrize("provider", [Ranked(), RandomImportance()], ids=["ranked", "random"])
@given(st.lists(ROW, max_size=5), st.sampled_from([20, 50, 75]), st.sampled_from(DIRECTIONS))
def test_words_of_all_texts_are_ranked_as_of_one(
    provider: Any, rows: Any, share: int, direction: Any
) -> None:
    selector = Selector(Importance(provider="random", direction=direction, percent=share), provider)
    for consistency in ("token", "record"):
        first = made(consistency, RandomImportance(), percent=5)[0]
        privatizer = replace(first, selector=selector, fingerprint="")
        joined = [" ".join(text or "" for text in (first, *several, last)) for first, several, last in rows]
        (whole,) = privatizer.choose([Texts(pa.array(joined, pa.string()))]) or ()
        flat, sizes = [text for row in rows for text in row[1]], [len(row[1]) for row in rows]
        columns = [
            Texts(pa.array([first for first, _, _ in rows], pa.string())),
            # Another type, sliced, as Spark may hand it over.
            Texts(pa.array([None, *flat], pa.large_string())[1:], np.repeat(np.arange(len(rows)), sizes)),
            Texts(pa.array([None if last is None else last.encode() for _, _, last in rows], pa.binary())),
        ]
        parts = privatizer.choose(columns)
        assert parts is not None
        levels: list[list[int]] = [[] for _ in rows]
        units = np.zeros(len(rows), np.int64)
        for column, part in zip(columns, parts, strict=True):
            np.add.at(units, part.rows, part.units)
            sizes = [len((text or b"").split()) for text in column.values.cast(pa.large_binary()).to_pylist()]
            found = iter(part.levels.tolist())
            for row, size in zip(part.rows, sizes, strict=True):  # type: ignore[arg-type]
                levels[row] += [next(found) for _ in range(size)]
            starts = iter(part.starts.tolist())
            data = b"".join(text or b"" for text in column.values.cast(pa.large_binary()).to_pylist())
            assert all(data[at : at + 5].decode() in WORDS for at in starts)
        assert [level for row in levels for level in row] == whole.levels.tolist()
        assert units.tolist() == whole.units.tolist()


def test_attention_is_shared_out_by_the_words_of_a_text() -> None:
    from dptext_spark.importance.providers import Attention

    class Even:
        def importance(self, words: Spans) -> np.ndarray:
            sizes = np.diff(words.bounds)
            return np.repeat(1 / np.maximum(sizes, 1), sizes).astype(np.float32)

    attention = Attention(None, "none")
    attention.__dict__["_encoder"] = Even()
    bounds = np.array([0, 1, 4, 4, 6])  # texts of one, three, none and two words
    none = np.zeros(6, np.int64)
    words = Spans(np.zeros(1, np.uint8), np.zeros(5, np.int64), none, none, bounds)
    assert attention.weights(words).tolist() == pytest.approx([1, *[1 / 3] * 3, 0.5, 0.5])
    of_rows = attention.weights(words._replace(records=np.array([0, 2, 4])))
    assert of_rows.tolist() == pytest.approx([*[0.25] * 4, 0.5, 0.5])  # each record's sum is 1
    shares = levels_of(of_rows, bounds[[0, 2, 4]], (50_000_000,), "top")
    assert shares.tolist() == [0, 0, 1, 1, 0, 1]


class TestWhatIsNoRow:
    def test_numbers_of_rows(self) -> None:
        texts = pa.array(["alder", "birch"])
        for rows in ([0], [1, 0], [-1, 0]):
            with pytest.raises(DataError, match=r"2 texts do not fit . row numbers"):
                RowTexts.of([Texts(texts, np.array(rows))])
        with pytest.raises(DataError, match=r"of type int64 is not valid\. Choose string"):
            RowTexts.of([Texts(pa.array([1, 2]))])

    def test_weights(self) -> None:
        privatizer, _ = made("token", ColumnWeights(), percent=50)
        texts, weights = pa.array(["alder", "birch"]), pa.array([[1.0], [2.0]])
        with pytest.raises(DataError, match="only some columns have weights"):
            privatizer.choose([Texts(texts, None, weights), Texts(texts)])
        columns = [Texts(texts, None, each) for each in (weights, pa.array([[3], [1]]))]
        both = privatizer.choose(columns) or ()
        assert [part.levels.tolist() for part in both] == [[1, 0], [0, 1]]
        with pytest.raises(DataError, match="1 lists of weights do not fit 2 texts"):
            privatizer.choose([Texts(texts, None, weights), Texts(texts, None, weights[:1])])
