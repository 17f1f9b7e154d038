"""The section on what is left where an attack succeeds equally: figures at a level, the search for it, a little text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import embeddings, utility_gain
from benchmarks.sizes import TOY
from benchmarks.utility_gain import ACCURACY, EMBEDDED, KEPT, Material, epsilon_at, gains
from dptext_spark.arrays import F32
from dptext_spark.encoder.encoder import TextVectors
from tests.core.mechanisms.fluent_toys import lexicon_of

pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
COMMON = ("film", "movie", "story", "good", "bad", "funny", "comedy", "character", "performance")
TOLD = Material(["good film", "bad film"] * 8, ["1", "0"] * 8, [], None, 1, 1)


def kept(*counts: float) -> utility_gain.Point:
    """Ten words a record, of which so many are kept."""
    return {KEPT: np.array([counts, [10.0] * len(counts)])}


def of_letters(texts: list[str]) -> F32:
    """Vectors that tell a text with the word `good`."""
    return np.array([[1.0, 0.0] if "good" in text else [0.0, 1.0] for text in texts], np.float32)


def test_gains_are_taken_on_the_same_records() -> None:
    # Whichever records are drawn, the gain is the same.
    (row,) = gains(0.4, [kept(10, 10), kept(2, 6), kept(3, 7)])
    assert row == (KEPT, 0.4, 1.0, 0.4, 0.5, "+0.100 (+0.100 to +0.100)")
    (wide,) = gains(0.4, [kept(10, 10), kept(2, 6), kept(7, 3)])
    assert wide[-1] == "+0.100 (-0.300 to +0.500)"


def test_who_does_not_reach_a_level_has_no_gain_and_gives_none() -> None:
    assert gains(0.4, [kept(10, 10), None, kept(3, 7)]) == [(KEPT, 0.4, 1.0, None, 0.5, None)]
    assert gains(0.4, [kept(10, 10), kept(2, 6), None]) == [(KEPT, 0.4, 1.0, 0.4, None, None)]
    assert gains(0.4, [kept(10, 10), None, None]) == []


@pytest.mark.parametrize("first", [0.5, 3.0, 20.0])
def test_the_search_ends_where_the_attack_has_the_success(first: float) -> None:
    def attack(epsilon: float) -> float:
        return 0.3 + 0.6 / (1.0 + np.exp(4.0 - epsilon))

    tried = {first: attack(first)}
    for level in (0.4, 0.45, 0.5):
        found = epsilon_at(level, attack, tried)
        assert found is not None
        assert attack(found) == pytest.approx(level, abs=utility_gain.CLOSE)
    assert len(tried) < 20
    # The attack never finds as little as .2, nor as much as .95.
    assert epsilon_at(0.2, attack, tried) is None
    assert epsilon_at(0.95, attack, tried) is None
    assert {utility_gain.BOUNDS[0], utility_gain.BOUNDS[1]} <= set(tried)


def test_labels_are_told_by_what_learnt_from_others_by_each_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utility_gain, "embedded", of_letters)
    release = np.array(TOLD.texts, object)
    found = TOLD.accuracies([release, release[::-1]])
    # The second release has the labels the other way round, which is told as well; the encoder reads the first one only.
    assert found[ACCURACY].tolist() == [[2.0] * 16, [2.0] * 16]
    assert found[EMBEDDED].tolist() == [[1.0] * 16, [1.0] * 16]
    # What is said of one quarter of the records only is not told of it.
    rare = np.array([f"w{i % 4} w{i % 4}" for i in range(16)], object)
    assert TOLD.accuracies([rare])[ACCURACY][0].sum() < 16
    assert set(replace(TOLD, embedded=0).accuracies([release])) == {ACCURACY}


def test_each_different_text_is_read_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    class Reader:
        def running(self, kind: str) -> None:
            assert kind == "vectors"

    def vectors(_: Reader, texts: list[str]) -> TextVectors:
        read.extend(texts)
        return TextVectors(of_letters(texts), of_letters(texts), np.arange(len(texts) + 1))

    monkeypatch.setattr(embeddings, "CACHED", tmp_path)
    monkeypatch.setattr(embeddings, "encoder", lambda: (Reader(), ""))
    monkeypatch.setattr(embeddings, "vectors", vectors)
    texts = ["a bad film", "good", "a bad film", "so so", "good"]
    for _ in range(2):
        assert embeddings.embedded(texts).tolist() == of_letters(texts).tolist()
    assert sorted(read) == ["a bad film", "good", "so so"]


def test_without_the_package_the_section_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "PACKAGE", "no-such-package")
    model, reason = embeddings.encoder.__wrapped__()
    assert model is None
    assert reason.startswith("accuracy on sentence embeddings: encoder: 'no-such-package' is neither")


@pytest.mark.usefixtures("shared_data")
def test_the_section_on_a_little_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(utility_gain, "lexicons", lambda _: ([("toy", lexicon_of(40, 3, among=COMMON))], []))
    monkeypatch.setattr(utility_gain, "encoder", lambda: (None, "accuracy on sentence embeddings: none"))
    monkeypatch.setattr(utility_gain, "LEVELS", (0.5,))
    section = utility_gain.measure(TOY, lambda _: None)
    assert section.skipped[-1] == "accuracy on sentence embeddings: none"
    assert section.facts["reader"] is None
    titles = [f"toy, {texts}: at equal success" for texts in ("sentences", "longer texts")]
    assert [grid.title for grid in section.grids] == [*titles, "Style `balanced`"]
    rows = {row[0]: row[2:] for row in section.grids[0].rows}
    assert set(rows) >= {"ε", "K", "attack", KEPT, ACCURACY}
    unchanged, plain, remap, gain, clustered, _, fluent, _ = rows["attack"]
    assert unchanged is None
    # Of a little text not every share can be met.
    assert [plain, remap, clustered, fluent] == pytest.approx([0.5] * 4, abs=0.03)
    assert gain.startswith(f"{remap - plain:+.3f} (")
    assert rows[KEPT][0] == 1.0
    assert rows["K"] == (None, 20.0, 20.0, None, 20.0, None, 20.0, None)


@pytest.mark.usefixtures("shared_data")
def test_lexicons_are_compared_on_the_other_half_than_that_on_which_k_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lexicon_of(40, 4, among=COMMON).save(tmp_path / "other")
    monkeypatch.setattr(utility_gain, "packaged", lambda _: lexicon_of(40, 3, among=COMMON))
    monkeypatch.setattr(utility_gain, "encoder", lambda: (None, "none"))
    monkeypatch.setattr(utility_gain, "BEST_K_AT", 0.5)
    monkeypatch.setattr(utility_gain, "K_AT", (0.55,))
    steps: list[str] = []
    section = utility_gain.measure(replace(TOY, against=str(tmp_path / "other")), steps.append)
    assert len(section.facts["lexicons"]) == 2
    packaged = [f"packaged{head}" for head in ("", ", gain", ", clustered", ", clustered, gain")]
    *compared, released = section.grids
    assert [grid.headings[2:] for grid in compared] == [(utility_gain.UNCHANGED, "other", *packaged)] * 2
    assert released.headings[3:] == ("balanced", "gain")
    taken = [step.split(": ")[1].split(",")[0] for step in steps]
    assert taken == ["choosing K"] * 9 + ["sentences"] * 6 + ["longer texts"] * 6
    kept_rows = [row for row in section.grids[0].rows if row[0] == KEPT]
    assert [row[1] for row in kept_rows] == [0.5, 0.55]
