"""The benchmarks of mechanisms at toy size: that they measure and judge, not how fast anything is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from benchmarks import mechanisms
from benchmarks.sizes import TOY
from benchmarks.sources import drawn_ids, packaged
from benchmarks.token_rates import RATES, prepared
from dptext_spark.mechanisms import MECHANISMS, TEM
from dptext_spark.text.policy import Policy


def quiet(step: str) -> None:
    """Tell nobody."""


@pytest.fixture(autouse=True)
def without_real_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))


def test_words_that_are_drawn_are_no_stop_words() -> None:
    ids = drawn_ids(packaged(), 5000)
    stop = set(Policy().stop_list())
    words = packaged().vocabulary.strings().to_pylist()
    assert not any(words[word] in stop for word in ids)
    assert (ids == drawn_ids(packaged(), 5000)).all()
    assert len(set(ids.tolist())) > 1000
    # As frequent as in texts: the 100 first of them by 1 / (rank + 2.7), to 5 standard deviations.
    others = [1 / (rank + 2.7) for rank, word in enumerate(words) if word not in stop]
    share = sum(others[:100]) / sum(others)
    first = [rank for rank, word in enumerate(words) if word not in stop][:100]
    assert abs(np.isin(ids, first).mean() - share) < 5 * (share * (1 - share) / 5000) ** 0.5


def test_every_mechanism_has_a_rate() -> None:
    assert {case.mechanism.name for case in RATES} == set(MECHANISMS)
    wanted = {(case.mechanism.name, case.peer.wanted) for case in RATES if case.peer and case.peer.wanted}
    assert wanted == {("mvc", 40), ("mahalanobis", 150), ("tem", 10_000)}


def test_a_text_is_sanitized_in_a_part_of_its_rows() -> None:
    policy = Policy(stop_words="draw")
    whole, part = (prepared(packaged(TOY.lexicon_words), TEM(), TOY, policy, part) for part in (1, 10))
    assert (whole.words, part.words) == (TOY.rows * TOY.words_a_row, TOY.rows // 10 * TOY.words_a_row)
    assert whole.kinds["stop_kept"] == 0
    assert whole.kinds["drawn"] > 0.9


def test_the_process_of_mechanisms_has_one_thread_for_matrix_products() -> None:
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    with mechanisms.single_threaded() as process:
        assert process.submit(os.getenv, "OPENBLAS_NUM_THREADS").result() == "1"
        assert process.submit(os.getpid).result() != os.getpid()
    assert os.environ.get("OPENBLAS_NUM_THREADS") == before


def test_the_mechanisms_section(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def here() -> Iterator[Executor]:
        with ThreadPoolExecutor(1) as threads:
            yield threads

    monkeypatch.setattr(mechanisms, "single_threaded", here)
    section = mechanisms.measure(TOY, quiet)
    assert [reason.split(":")[0] for reason in section.skipped] == ["glove.840B.300d.34k.txt.gz"]
    names = [figure.name for figure in section.figures]
    assert len(set(names)) == len(names)
    # Six of the mechanisms and settings have this peer, with stop words kept and drawn: a fixed number, which must be said.
    fixed = [figure for figure in section.figures if figure.peer_name == "mldp-text"]
    assert len(fixed) == 12
    assert all("not measured here" in figure.note for figure in fixed)
    judged = [figure for figure in section.figures if figure.goals]
    assert {figure.unit for figure in judged} == {"tokens/s", "ns", "MB", "Gflop/s", "s"}
    laws = section.facts["whole laws"]["laws"]
    assert set(laws) == {"santext, ε = 1", "santext, ε = 1000", "tem, ε = 1000"}  # at ε = 1 both are one law
    for figure in section.figures:
        if figure.peer_name == "sampling alone":
            assert figure.peer is not None
            assert figure.value.median > figure.peer.median
    assert "the list of 300 words" in names[-1]
