"""The benchmarks at toy size: that they measure, judge, print and record what is counted by hand; not how fast anything is."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from benchmarks import __main__ as command
from benchmarks import labelled_names, referee
from benchmarks.measure import Figure, Goal, Section, Spread, quotient, scaled
from benchmarks.plain_loop import laws_of, plain_loop
from benchmarks.sizes import TOY
from benchmarks.sources import composition, packaged, row_ids, sst2, texts
from dptext_spark.mechanisms import CusText
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.policy import Policy


def quiet(step: str) -> None:
    """Tell nobody."""


@pytest.fixture(autouse=True)
def without_real_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))


@pytest.fixture(scope="module")
def privatizer() -> Privatizer:
    return Privatizer(packaged(TOY.lexicon_words), CusText(k=5).compile(packaged(TOY.lexicon_words)))


@pytest.mark.parametrize(
    ("at_least", "limit", "floor", "verdicts"),
    [(False, 45.0, 60.0, ["met", "floor met", "missed"]), (True, 60.0, 45.0, ["missed", "floor met", "met"])],
)
def test_goals_are_judged_by_the_median_of_ratios_within_each_round(
    at_least: bool, limit: float, floor: float, verdicts: list[str]
) -> None:
    ours, peer = scaled([1.0, 2.0, 4.0], 10.0), Spread((20.0, 20.0, 20.0))
    assert quotient(peer, ours).runs == (2.0, 1.0, 0.5)
    goal = Goal(limit, floor, "value", at_least)
    for value, verdict in zip((44.0, 46.0, 61.0), verdicts, strict=True):
        figure = Figure("f", "s", Spread((1.0, value, 90.0)), goals=(goal,))
        assert [found for _, found in figure.judged()] == [verdict]


def test_texts_are_like_running_text() -> None:
    batch = texts(packaged(), 400, 25)
    assert batch.equals(texts(packaged(), 400, 25))
    assert not batch.equals(texts(packaged(), 400, 25, seed=1))
    assert {len(row.split(" ")) for row in batch.to_pylist()} == {25}
    stop = set(Policy().stop_list())
    words = [token.strip(".,").lower() for row in batch.to_pylist() for token in row.split(" ")]
    assert 0.3 < sum(word in stop for word in words) / len(words) < 0.55
    assert 0.01 < sum(word.startswith("zq") for word in words) / len(words) < 0.03


def test_real_sentences_are_read_without_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sst2()[0] is None
    assert "sst2/train.tsv" in sst2()[1]
    (tmp_path / "sst2").mkdir()
    for part, text in (("train", "no movement , no yuks\t0\na film\t1\n"), ("dev", "best\t1\n")):
        (tmp_path / "sst2" / f"{part}.tsv").write_text(text, encoding="utf-8")
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path))
    found, reason = sst2(("train", "dev"))
    assert found is not None
    assert found.to_pylist() == ["no movement , no yuks", "a film", "best"]
    assert not reason


def test_the_plain_loop_does_the_work_of_the_engine(privatizer: Privatizer) -> None:
    batch = texts(privatizer.lexicon, 50, 20)
    laws = laws_of(privatizer)
    kept = privatizer.policy.kept_words()
    assert all(candidates[1][-1] == pytest.approx(1.0) for candidates in laws.values())
    given = {"column": "text", "row_ids": row_ids(50), "key": RunKey.insecure(0)}
    outputs, counters = privatizer.privatize(batch, **given)
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


def test_a_run_prints_and_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "QUICK", TOY)
    file = tmp_path / "records" / "record.json"
    command.main(["engine", "--quick", "--rounds", "3", "--record", str(file)])
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    assert record["sizes"]["name"] == "toy"
    assert list(record["sections"]) == ["engine"]
    assert record["repeat"] == "python -m benchmarks engine --quick --rounds 3"
    assert record["machine"]["cores"] >= 1
    assert record["machine"]["memory_bytes"] > 0
    assert {"python", "numpy", "numba", "pyarrow"} <= set(record["versions"])
    first = record["sections"]["engine"]["figures"][0]
    assert len(first["value"]["runs"]) == len(first["ratio"]["runs"]) == 3
    assert {goal["of"] for goal in first["goals"]} == {"value", "ratio"}
    printed = capsys.readouterr().out
    assert "ns/word" in printed
    assert re.search(r"goals: \d+ of \d+ met", printed)


CONLL = (
    "We\tO\nmet\tO\nAda\tB-person\nLovelace\tI-person\nin\tO\nOslo\tB-location\n.\tO\n\t\n"
    "Robert\tO\nsaw\tO\nZorblax\tB-product\n"
)


def test_shares_are_those_counted_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample.conll").write_text(CONLL, encoding="utf-8")
    monkeypatch.setenv("DPTEXT_LABELLED", str(tmp_path / "sample.conll"))
    found, stay = labelled_names.measure(TOY, lambda step: None).grids
    shares = {"persons": (1, 1.0, 1.0), "places": (1, 1.0, 1.0), "others": (1, 0.0, 0.0)}
    shares["words without a label that are taken"] = (5, 0.2, None)  # Robert
    assert {row[0]: row[1:] for row in found.rows} == shares
    for style, search, *stays in stay.rows:
        assert style in ("balanced", "strict")
        assert stays == [0.0] * 4 if search == "on" else all(0 <= float(share or 0) < 0.5 for share in stays)


def test_the_referee_reads_a_release_as_an_adversary_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(referee, "MODEL", "no model")  # so public lists find the names
    own = ["Ada likes the harbour in Oslo", "a slow film about rivers", "good food and a good walk"]
    source = referee.Source(own, ["0", "1", "1"], own, None, [0, 1, 2], packaged())
    section = Section("referee", "")
    plain, names, shuffled, dealt, hashes = islice(referee.releases(source, section), 5)
    assert names.texts == ["[NAME] likes the harbour in [NAME]", *own[1:]]
    assert [sorted(text.split()) for text in shuffled.texts] == [sorted(text.split()) for text in own]
    assert sorted(" ".join(dealt.texts).split()) == sorted(" ".join(own).split())
    codes = hashes.texts[2].split()
    assert codes[0] == codes[4]
    assert len(set(codes)) == 5
    assert not (source.reading(hashes.texts).words >= 0).any()
    assert not set(" ".join(own).split()) & {word for text in hashes.texts for word in text.split()}
    for release in (plain, shuffled):
        figures = referee.linked(source, release)
        assert figures["linkage_top1"].value == figures["linkage_source_top1"].value == 1.0
        assert "singled_out" not in figures  # there is no law
        assert referee.guessed(source, release) == 1.0
    assert section.facts["names"].startswith("public lists")
    assert referee.guessed(source, names) == 9 / 11
