"""The benchmarks at toy size: that they measure, judge, print and record; not how fast anything is."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks import __main__ as command
from benchmarks import engine, lexicon, mapping, mechanisms, memory, utility
from benchmarks.measure import Figure, Goal, Section, Spread, in_turn, quotient, scaled
from benchmarks.phases import PHASES, REST, timed_phases
from benchmarks.plain_loop import kept_words, laws_of, plain_loop
from benchmarks.sentiment import OneSet, Task
from benchmarks.sizes import TOY, Sizes
from benchmarks.sources import composition, drawn_ids, packaged, row_ids, texts
from benchmarks.table import show
from benchmarks.token_rates import RATES, prepared
from dptext_spark.draws import Draws, RunKey
from dptext_spark.mechanisms import MECHANISMS, CusText, Tem
from dptext_spark.privatizer import CONSISTENCY, Privatizer
from dptext_spark.text.policy import Policy


def quiet(step: str) -> None:
    """Tell nobody."""


@pytest.fixture(autouse=True)
def without_real_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))


@pytest.fixture(scope="module")
def privatizer() -> Privatizer:
    return Privatizer(packaged(TOY.lexicon_words), CusText(k=5).compile(packaged(TOY.lexicon_words)))


def test_calls_take_turns() -> None:
    order: list[str] = []
    times = in_turn(3, lambda: order.append("a"), lambda: order.append("b"))
    assert order == ["a", "b"] * 3
    assert [len(one) for one in times] == [3, 3]


def test_a_ratio_is_taken_within_each_round() -> None:
    ours, peer = scaled([1.0, 2.0, 4.0], 10.0), Spread((20.0, 20.0, 20.0))
    assert quotient(peer, ours).runs == (2.0, 1.0, 0.5)
    assert ours.as_dict() == {"median": 20.0, "min": 10.0, "max": 40.0, "runs": [10.0, 20.0, 40.0]}


@pytest.mark.parametrize(
    ("at_least", "value", "verdict"),
    [
        (False, 45.0, "met"),
        (False, 46.0, "floor met"),
        (False, 61.0, "missed"),
        (True, 61.0, "met"),
        (True, 46.0, "floor met"),
        (True, 44.0, "missed"),
    ],
)
def test_goals_are_judged(at_least: bool, value: float, verdict: str) -> None:
    limit, floor = (60.0, 45.0) if at_least else (45.0, 60.0)
    assert Goal(limit, floor, "value", at_least).verdict(value) == verdict


def test_a_figure_is_judged_by_its_median() -> None:
    value = Spread((1.0, 2.0, 90.0))
    figure = Figure("f", "s", value, ratio=Spread((3.0,)), goals=(Goal(2, 2, "value"), Goal(2, 2, "ratio")))
    assert [verdict for _, verdict in figure.judged()] == ["met", "missed"]


def test_texts_are_like_running_text() -> None:
    batch = texts(packaged(), 400, 25)
    assert batch.equals(texts(packaged(), 400, 25)) and not batch.equals(texts(packaged(), 400, 25, seed=1))
    assert {len(row.split(" ")) for row in batch.to_pylist()} == {25}
    stop = set(Policy().stop_list())
    words = [token.strip(".,").lower() for row in batch.to_pylist() for token in row.split(" ")]
    assert 0.3 < sum(word in stop for word in words) / len(words) < 0.55
    assert 0.01 < sum(word.startswith("zq") for word in words) / len(words) < 0.03


def test_the_plain_loop_does_the_work_of_the_engine(privatizer: Privatizer) -> None:
    batch = texts(privatizer.lexicon, 50, 20)
    laws = laws_of(privatizer)
    kept = kept_words(privatizer)
    assert all(candidates[1][-1] == pytest.approx(1.0) for candidates in laws.values())
    outputs, counters = privatizer.privatize(
        batch, column="text", row_ids=row_ids(50), key=RunKey.insecure(0)
    )
    looped = plain_loop(batch.to_pylist(), laws, kept)
    numbers = 0
    for source, ours, theirs in zip(batch.to_pylist(), outputs.to_pylist(), looped, strict=True):
        for word, mine, peers in zip(source.split(), ours.split(), theirs.split(), strict=True):
            bare = word.strip(".,").lower()
            numbers += bare.isdigit()
            if bare in kept:
                assert mine == peers == word
            elif bare in laws:
                assert {mine.strip(".,").lower(), peers} <= set(laws[bare][0])
            elif not bare.isdigit():
                assert mine.strip(".,") == peers == "[OOV]"
    assert counters.totals()["numbers"] == numbers
    assert sum(composition(counters.totals()).values()) == pytest.approx(1.0)


def test_phases_are_those_of_the_engine(privatizer: Privatizer) -> None:
    batch = texts(privatizer.lexicon, 50, 20)
    with timed_phases() as taken:
        timed, _ = privatizer.privatize(batch, column="text", row_ids=row_ids(50), key=RunKey.insecure(0))
        seconds = taken()
        assert set(taken().values()) == {0.0}
    assert list(seconds) == list(PHASES)
    assert all(spent > 0 for spent in seconds.values())
    plain, _ = privatizer.privatize(batch, column="text", row_ids=row_ids(50), key=RunKey.insecure(0))
    assert timed.equals(plain)


def test_the_engine_section() -> None:
    section = engine.measure(TOY, quiet)
    assert [reason.split(":")[0] for reason in section.skipped] == ["glove.840B.300d.34k.txt.gz"]
    levels = section.figures[: len(CONSISTENCY)]
    assert [figure.name.rsplit(", ", 1)[1] for figure in levels] == list(CONSISTENCY)
    assert all(figure.goals and figure.ratio is not None for figure in levels)
    phases = section.figures[-len(PHASES) - 1 :]
    assert [figure.name.rsplit(": ", 1)[1] for figure in phases] == [*PHASES, REST]
    for number in range(TOY.rounds):
        whole = phases[0].peer
        assert whole is not None
        assert sum(f.value.runs[number] for f in phases) == pytest.approx(whole.runs[number])


def test_the_mapping_section() -> None:
    section = mapping.measure(TOY, quiet)
    compiled = [figure for figure in section.figures if figure.goals]
    assert len(compiled) == 2 and all(figure.peer_name.startswith("faiss.knn") for figure in compiled)
    shares = {(f["metric"], f["mapping"]): f["type_share"] for f in section.facts["type_shares"]}
    assert len(shares) == 6
    assert all(sum(share.values()) == pytest.approx(1.0) for share in shares.values())


def test_the_lexicon_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "simlex-999.tsv").write_text(
        "word1\tword2\tSimLex999\nhe\tshe\t5\nin\tto\t3\nfirst\tkey\t1\nwas\tis\t8\n", encoding="utf-8"
    )
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path))
    section = lexicon.measure(TOY, quiet)
    assert len(section.skipped) == 1
    assert sum(figure.name.startswith("SimLex-999") for figure in section.figures) == 2
    assert sum(figure.name.startswith("opening") for figure in section.figures) == 2


def test_words_that_are_drawn_are_no_stop_words() -> None:
    ids = drawn_ids(packaged(), 5000)
    stop = set(Policy().stop_list())
    words = packaged().vocabulary.strings().to_pylist()
    assert not any(words[word] in stop for word in ids)
    assert (ids == drawn_ids(packaged(), 5000)).all() and len(set(ids.tolist())) > 1000
    # As frequent as in texts: the 100 first of them by 1 / (rank + 2.7), to 5 standard deviations.
    others = [1 / (rank + 2.7) for rank, word in enumerate(words) if word not in stop]
    share = sum(others[:100]) / sum(others)
    first = [rank for rank, word in enumerate(words) if word not in stop][:100]
    assert abs(np.isin(ids, first).mean() - share) < 5 * (share * (1 - share) / 5000) ** 0.5


def test_every_mechanism_has_a_rate() -> None:
    assert {case.mechanism.name for case in RATES} == set(MECHANISMS)
    wanted = {(case.mechanism.name, case.peer.wanted) for case in RATES if case.peer and case.peer.wanted}
    assert wanted == {("calibrated", 40), ("mahalanobis", 150), ("tem", 10_000)}


def test_a_text_is_sanitized_in_a_part_of_its_rows() -> None:
    policy = Policy(stop_words="draw")
    whole, part = (prepared(packaged(TOY.lexicon_words), Tem(), TOY, policy, part) for part in (1, 10))
    assert (whole.words, part.words) == (TOY.rows * TOY.words_a_row, TOY.rows // 10 * TOY.words_a_row)
    assert whole.kinds["stop_kept"] == 0 and whole.kinds["drawn"] > 0.9


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
    peers = [
        figure for figure in section.figures if figure.unit == "tokens/s" and "mldp-text" in figure.peer_name
    ]
    assert all(figure.note and figure.judged is not None for figure in peers)
    judged = [figure for figure in section.figures if figure.goals]
    assert {figure.unit for figure in judged} == {"tokens/s", "ns", "MB", "Gflop/s", "s"}
    laws = section.facts["whole laws"]["laws"]
    assert set(laws) == {"santext, ε = 1", "santext, ε = 1000", "tem, ε = 1000"}  # at ε = 1 both are one law
    for figure in section.figures:
        if figure.peer_name == "sampling alone":
            assert figure.peer is not None and figure.value.median > figure.peer.median
    assert "the list of 300 words" in names[-1]


@pytest.mark.skipif(
    not memory.ROLLUP.exists(), reason="this system does not tell a process its private memory"
)
def test_the_memory_section() -> None:
    section = memory.measure(TOY, quiet)
    (figure,) = section.figures
    assert len(figure.value.runs) == TOY.workers
    for one in section.facts["packaged"]["mapped"] + section.facts["packaged"]["copied"]:
        assert one["before"]["private"] > 0 and one["after"]["private"] > 0


def test_a_run_prints_and_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUICK", TOY)
    file = tmp_path / "records" / "record.json"
    command.main(["--quick", "--only", "engine", "--rounds", "3", "--record", str(file)])
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert record["sizes"]["name"] == "toy" and list(record["sections"]) == ["engine"]
    assert record["repeat"] == "python -m benchmarks --quick --only engine --rounds 3"
    assert record["machine"]["cores"] >= 1 and record["machine"]["memory_bytes"] > 0
    assert {"python", "numpy", "numba", "pyarrow"} <= set(record["versions"])
    first = record["sections"]["engine"]["figures"][0]
    assert len(first["value"]["runs"]) == len(first["ratio"]["runs"]) == 3
    assert {goal["of"] for goal in first["goals"]} == {"value", "ratio"}
    printed = capsys.readouterr().out
    assert "ns/word" in printed and re.search(r"goals: \d+ of \d+ met", printed)


def test_an_interrupted_run_leaves_what_it_has_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(sizes: Sizes, say: Callable[[str], None]) -> Section:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "QUICK", TOY)
    monkeypatch.setitem(command.SECTIONS, "spark", interrupted)
    file = tmp_path / "record.json"
    with pytest.raises(KeyboardInterrupt):
        command.main(["--quick", "--only", "lexicon", "--only", "spark", "--record", str(file)])
    assert list(json.loads(file.read_text(encoding="utf-8"))["sections"]) == ["lexicon"]


def test_a_section_without_figures_says_why() -> None:
    out = io.StringIO()
    show(Section("spark", "Spark", skipped=["spark: it is not here"]), Console(file=out, width=100))
    assert out.getvalue() == "skipped: spark: it is not here\n"


def test_names_of_sections_are_checked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.arguments(["--only", "nothing"])
    assert "memory" in capsys.readouterr().err


def test_the_utility_section() -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    pytest.importorskip("sacrebleu", reason="the extra [audit] is not installed")
    section = utility.measure(TOY, quiet)
    assert section.facts["text"] == "made-up sentences" and len(section.skipped) == 2
    grids = {grid.title: grid for grid in section.grids}
    assert len(grids) == 9
    for grid in section.grids[:6]:
        here = grid.headings.index("here")
        assert all(0 <= row[here] <= 1 and len(row) == len(grid.headings) for row in grid.rows)
    assert len(grids["CusText, Table 5: accuracy, K = 50, balanced"].rows) == 18
    assert len(grids["1-Diffractor, Table 3: accuracy"].rows) == 18
    assert set(section.facts["audits"]) == {"1", "5", "10"}
    json.dumps(section.as_dict(), allow_nan=False)


def test_one_set_over_a_whole_lexicon_draws_by_its_law() -> None:
    words = packaged(TOY.lexicon_words)
    ids = np.full(20_000, 7, np.int32)
    blocks = np.zeros((len(ids), 2), np.uint64)
    blocks[:, 0] = np.arange(len(ids))
    found = OneSet(words.vectors, 4.0).sample(ids, Draws(bytes(32), blocks))
    unit = words.vectors / np.linalg.norm(words.vectors, axis=1, keepdims=True)
    score = (unit @ unit[7]).astype(np.float64)
    law = np.exp(2.0 * (score - score.min()) / (score.max() - score.min()))
    law /= law.sum()
    seen = np.bincount(found, minlength=len(words)) / len(ids)
    # 300 shares within 6 standard errors each: a false alarm in 2 million.
    assert (np.abs(seen - law) < 6 * np.sqrt(law / len(ids))).all()


def test_sst2_is_read_with_its_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path))
    (tmp_path / "sst2").mkdir()
    for part in ("train", "test"):
        (tmp_path / "sst2" / f"{part}.tsv").write_text(
            "the first one\t1\nkey to he\t0\nit\t0", encoding="utf-8"
        )
    task, reasons = Task.sst2(packaged(TOY.lexicon_words), 8)
    assert reasons == [] and task.train.to_pylist() == ["the first one", "key to he", "it"]
    assert task.train_labels == ["1", "0", "0"] and task.test_labels == ["1", "0"]
    assert task.walked(packaged(TOY.lexicon_words)).vocabulary.strings().to_pylist()[:2] == ["first", "he"]
