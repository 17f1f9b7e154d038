"""Labelled names that are found and that stay, beside the same counted word by word."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.audit.estimates import Metric
from dptext_spark.audit.table.annotations import GROUPS, Annotations
from dptext_spark.audit.table.labelled import (
    FOUND_COUNTS,
    LABEL_COUNTS,
    MEANING,
    LabelledCounts,
    LabelledNames,
    Labels,
    _spaces,
    key_ids,
    labelled_counts,
    labelled_figures,
    name_finder,
    plain_engine,
    text_ids,
)
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model.compile import compile
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey, hash_keys
from dptext_spark.report.results import result_of
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.public_names import PublicNames
from dptext_spark.text.names.search import NAME_TYPES, NameSearch
from dptext_spark.text.names.word_list import WordList
from dptext_spark.text.pair_tokens import pair, words_of
from dptext_spark.text.policy import Policy
from tests.core.names import beginning

KEY = RunKey.insecure(9)
KEYS = hash_keys(KEY.derive("audit", length=16))
KINDS = ("creative-work", "location", "person")
WORDS = (
    "the", "house", "Ada", "Lovelace", "london", "Paris", "met", "in", "Robert", "dog", "Hope", "Smith", "42", "x", "Zürich",
)  # fmt: skip


class Case(NamedTuple):
    """A text, its rewritten form, and its labels by characters."""

    source: str | None
    table: str | None
    labels: tuple[tuple[int, int, str], ...]


def cases(seed: int, size: int) -> list[Case]:
    """Texts of random words, spaces and labels; a word in three stays, and one table in six has a word less."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(size):
        words = [str(one) for one in rng.choice(WORDS, rng.integers(1, 9))]
        gaps = [str(one) for one in rng.choice([" ", "  ", ", ", "\n", "\u00a0", ". "], len(words))]
        written = [word if rng.random() < 1 / 3 else "cat" for word in words]
        if rng.random() < 1 / 6:
            written = written[1:]
        text, labels, at = "", [], 0
        starts = []
        for word, gap in zip(words, gaps, strict=True):
            starts.append(len(text))
            text += word + gap
        while at < len(words):
            long = int(rng.integers(1, 3))
            if rng.random() < 0.4 and at + long <= len(words):
                last = at + long - 1
                labels.append((starts[at], starts[last] + len(words[last]), str(rng.choice(KINDS))))
            at += long
        found.append(Case(text, " ".join(written), tuple(labels)))
    return found


@pytest.fixture(scope="module")
def model() -> Privatizer:
    return compile(CusText(epsilon=1.0, k=5), beginning(Lexicon.default(), 400))


def counted(
    model: Privatizer, given: list[Case], folder: Path, by_row: bool, named: bool = False
) -> LabelledCounts:
    file = folder / "sample"
    if by_row:
        rows = [
            {"row": n, "spans": [{"start": a, "end": b, "kind": kind} for a, b, kind in one.labels]}
            for n, one in enumerate(given)
        ]
        file.write_text("\n".join(map(json.dumps, rows)))
    else:
        file.write_text("\n\n".join(conll(one) for one in given))
    labels = Labels.of(Annotations.read(str(file), ("body",)), ("body",), KEY)
    texts, written = (pa.array([one[i] for one in given], pa.string()) for i in range(2))
    data, bounds = padded(texts)
    ids = (
        key_ids(pa.array([str(n) for n in range(len(given))]), 0, KEY)
        if by_row
        else text_ids(data, bounds, KEY)
    )
    source, output = (words_of(model.engine, side, KEYS) for side in (texts, written))
    aligned = pair(source, output).partner >= 0
    same = np.zeros(len(aligned), np.bool_)
    same[aligned] = (source.form[aligned] == output.form[pair(source, output).partner[aligned]]).all(axis=1)
    return labelled_counts(
        labels, labels.texts_of(ids), texts, data, bounds, (source, aligned, same), name_finder(model, named),
        plain_engine(model.engine),
    )  # fmt: skip


def conll(one: Case) -> str:
    lines = []
    for match in re.finditer(r"\w+|[^\w\s]", one.source or ""):
        label = next(((a, b, kind) for a, b, kind in one.labels if a <= match.start() < b), None)
        tag = "O" if label is None else f"{'B' if label[0] == match.start() else 'I'}-{label[2]}"
        lines.append(f"{match.group()}\t{tag}")
    return "\n".join(lines)


def plainly(given: list[Case]) -> tuple[np.ndarray, np.ndarray]:
    """Count the same, a word at a time."""
    by_label = np.zeros((len(KINDS), len(LABEL_COUNTS)), np.int64)
    by_type = np.zeros((len(NAME_TYPES), len(FOUND_COUNTS)), np.int64)
    finder = PublicNames(NameSearch(lists=True))
    for text, table, labels in given:
        assert text is not None
        assert table is not None
        found = finder.find(pa.array([text]))
        raw = text.encode()
        spans = [
            (len(raw[:a].decode()), len(raw[:b].decode()), int(kind))
            for a, b, kind in zip(found.starts, found.ends, found.types, strict=True)
        ]
        # Pieces lie between spaces; here each holds one word.
        words = list(re.finditer(r"\w+", text))
        written = re.findall(r"\w+", table)
        fits = len(words) == len(written)
        marks = []
        for n, word in enumerate(words):
            if word.group() == "42":
                continue
            kind = next((k for a, b, k in spans if a < word.end() and word.start() < b), None)
            label = next(
                (i for i, (a, b, _) in enumerate(labels) if a < word.end() and word.start() < b), None
            )
            kept = fits and written[n].lower() == word.group().lower()
            if label is not None:
                marks.append((label, (True, kind is not None, fits, kept)))
            if kind is not None:
                group = -1 if label is None else {"person": 0, "location": 1}.get(labels[label][2], 2)
                by_type[kind] += np.array([True, group == kind, group >= 0])
        for i, (_, _, label_kind) in enumerate(labels):
            mine = np.array([flags for label, flags in marks if label == i])
            if len(mine):
                row = by_label[KINDS.index(label_kind)]
                row[:4] += mine.sum(axis=0)
                row[4:] += mine.all(axis=0)
    return by_label, by_type


@pytest.mark.parametrize("by_row", [True, False])
def test_counts_are_those_of_each_word(model: Privatizer, tmp_path: Path, by_row: bool) -> None:
    given = list({re.sub(r"\s", "", one.source or ""): one for one in cases(3, 300)}.values())
    by_label, by_type = plainly(given)
    assert by_label.min() > 0
    assert by_type[:, 0].min() > 0
    found = counted(model, given, tmp_path, by_row)
    assert found.by_label.tolist() == by_label.tolist()
    assert found.by_type.tolist() == by_type.tolist()
    assert sorted(found.seen.tolist()) == list(range(len(given)))
    assert len(found.outside) == 0


def test_a_name_that_the_policy_replaces_whole_is_counted_by_its_words(tmp_path: Path) -> None:
    policy = Policy(names={"lists": True, "person": "keep"})  # type: ignore[arg-type]
    model = compile(CusText(epsilon=1.0, k=5), beginning(Lexicon.default(), 400), policy)
    given = [
        Case("we saw New York and Ada Lovelace", "we saw [LOCATION] and Ada cat", ((7, 15, "location"), (20, 32, "person"))),
        Case("we saw New York there", "we saw New York there", ((7, 15, "location"),)),
    ]  # fmt: skip
    found = counted(model, given, tmp_path, True, named=True)
    # New York was one stretch in the first text; names that the policy keeps are looked for, too.
    assert found.by_label.tolist() == [[4, 4, 4, 2, 2, 2, 2, 1], [2, 2, 2, 1, 1, 1, 1, 0]]
    assert found.by_type.tolist() == [[2, 2, 2], [4, 4, 4]]


def test_the_classifier_of_the_settings_is_judged(tmp_path: Path) -> None:
    pytest.importorskip("onnx", reason="the extra [encoder] is not installed")
    from tests.core.encoder.tiny_classifier import make_tiny_classifier, tiny_graph

    folder = make_tiny_classifier(tmp_path / "tiny", tiny_graph(mixed=0.1))
    policy = Policy(names={"model": str(folder), "person": "pseudonym"})  # type: ignore[arg-type]
    model = compile(CusText(epsilon=1.0, k=5), beginning(Lexicon.default(), 400), policy)
    text = "Anna Keller lives in Oslo and Robert in Paris"
    labels = ((0, 11, "person"), (21, 25, "location"), (30, 36, "person"))
    # It knows Anna, Keller and Oslo; public lists, which know Robert and Paris, were not asked.
    found = counted(model, [Case(text, "the", labels)], tmp_path, True, named=True)
    assert found.by_label[:, [0, 1, 4, 5]].tolist() == [[1, 1, 1, 1], [3, 2, 2, 1]]
    assert found.by_type.tolist() == [[2, 2, 2], [1, 1, 1]]
    by_lists = counted(model, [Case(text, "the", labels)], tmp_path, True)
    assert by_lists.by_label[1, 1] >= 1
    assert by_lists.by_type[1, 0] == 2


def test_a_span_outside_its_text_is_told_by_its_text(model: Privatizer, tmp_path: Path) -> None:
    given = [
        Case("Zürich", "x", ((0, 6, "location"),)),
        Case("Zürich", "x", ((0, 7, "location"),)),
        Case("", "", ()),
    ]
    found = counted(model, given, tmp_path, True)
    assert found.seen.tolist() == [0, 1, 2]
    assert found.outside.tolist() == [1]


def test_texts_that_are_not_labelled_count_for_nothing(model: Privatizer, tmp_path: Path) -> None:
    file = tmp_path / "sample"
    file.write_text("Oslo\tB-location\n")
    labels = Labels.of(Annotations.read(str(file), ("body",)), ("body",), KEY)
    data, bounds = padded(pa.array(["I met Ada", None, "O s\tlo", "oslo"]))
    assert labels.texts_of(text_ids(data, bounds, KEY)).tolist() == [-1, -1, 0, -1]
    keys = key_ids(pa.array(["1", "2"]), 0, KEY)
    assert (keys != key_ids(pa.array(["1", "2"]), 1, KEY)).all(axis=1).all()


def test_spaces_are_those_of_python() -> None:
    every = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]
    data, bounds = padded(pa.array(["".join(every)]))
    sizes = [len(char.encode()) for char in every]
    expected = np.repeat([char.isspace() for char in every], sizes)
    assert _spaces(data)[: bounds[-1]].tolist() == expected.tolist()
    assert not _spaces(data)[bounds[-1] :].any()


def test_figures_are_shares_of_the_counts() -> None:
    by_label = np.array(
        [[10, 8, 9, 3, 4, 2, 4, 1], [5, 1, 4, 1, 2, 0, 0, 0], [0] * 8, [2, 2, 2, 2, 1, 1, 1, 1]]
    )
    by_type = np.array([[10, 6, 7], [0, 0, 0]])
    groups = np.array([0, 1, 1, 2])
    found = {one.name: one.value for one in labelled_figures(7, by_label, by_type, groups)}
    assert found == {
        "annotated_texts": 7, "annotated_words": 17, "annotated_recall": 11 / 17, "annotated_recall_whole": 3 / 7,
        "annotated_precision": 0.7, "annotated_kept": 6 / 15, "annotated_kept_whole": 2 / 5,
        "annotated_persons_recall": 0.8, "annotated_persons_recall_whole": 0.5, "annotated_persons_precision": 0.6,
        "annotated_persons_kept": 3 / 9, "annotated_persons_kept_whole": 0.25,
        "annotated_locations_recall": 0.2, "annotated_locations_recall_whole": 0.0, "annotated_locations_precision": None,
        "annotated_locations_kept": 0.25, "annotated_locations_kept_whole": None,
        "annotated_others_recall": 1.0, "annotated_others_recall_whole": 1.0, "annotated_others_kept": 1.0,
        "annotated_others_kept_whole": 1.0,
    }  # fmt: skip
    assert list(found) == list(MEANING)
    result = LabelledNames.of(("person", "city", "state", "work"), by_label)
    assert result.words == {"person": 10.0, "city": 5.0, "work": 2.0}
    assert result.kept_whole == {"person": 0.25, "work": 1.0}
    assert [group.name for group in result.shown().groups] == [
        "", "whole names found", "words that stayed", "whole names that stayed",
    ]  # fmt: skip
    assert result_of(json.loads(json.dumps(result.as_dict()))) == result


def test_without_labels_there_are_no_figures() -> None:
    nothing = np.zeros((0, len(LABEL_COUNTS)), np.int64), np.zeros((2, 3), np.int64), np.zeros(0, np.int64)
    values = [
        one.value
        for one in labelled_figures(1, *nothing)
        if one.name not in ("annotated_texts", "annotated_words")
    ]
    assert set(values) == {None}
    assert len(values) == len(MEANING) - 2
    assert len(GROUPS) == 3
    assert Metric("annotated_words", 0) in labelled_figures(1, *nothing)


class Strange:
    """Finds words that begin with z, as a provider of the run would: some as names of persons, some of a kind of its own."""

    name, types = "strange 1", ("person", "order_number")

    def find(self, texts: pa.Array) -> TypedSpans:
        found = [
            (row, match.start(), match.end(), match.group()[1].isupper())
            for row, text in enumerate(texts.to_pylist())
            for match in re.finditer(r"\b[Zz]\w+", text or "")
        ]
        return TypedSpans(*([one[i] for one in found] for i in range(3)), [int(one[3]) for one in found])


def test_recall_knows_the_lists_and_the_providers_of_the_run(model: Privatizer, tmp_path: Path) -> None:
    text = "zorblax met Quuxly Vonn near Frobnia with Ada and zLIMP, ok"
    given = [Case(text, text, tuple(
        (text.index(word), text.index(word) + len(word), kind)
        for word, kind in (
            ("zorblax", KINDS[0]), ("Quuxly Vonn", KINDS[0]), ("Frobnia", KINDS[1]), ("Ada", KINDS[0]), ("zLIMP", KINDS[0]),
        )
    ))]  # fmt: skip
    lists = [
        WordList.of("mask", [b"Quuxly Vonn"]),
        WordList.of("named", [b"Frobnia"]),
        WordList.of("keep", [b"Ada"]),
    ]
    names = Names(compile_names(lists, name_key(KEY, "r")), 2, kinds=(None, "location"))
    strange = replace(model, providers=(Strange(),), fingerprint="")
    both = strange.with_names(names)
    recall = {}
    for which, made, settings in (
        ("both", both, True), ("lists", model.with_names(names), True), ("providers", strange, True),
        ("not given", both, False), ("public", model, True),
    ):  # fmt: skip
        counts = counted(made, given, tmp_path, by_row=True, named=settings)
        words = dict(zip(LABEL_COUNTS, counts.by_label.sum(axis=0).tolist(), strict=True))
        assert words["words"] == 6
        taken = {
            name: row[FOUND_COUNTS.index("taken")]
            for name, row in zip(NAME_TYPES, counts.by_type.tolist(), strict=True)
        }
        recall[which] = (words["words_found"], taken["person"], taken["location"])
    # What a list keeps is not found; an entry that is masked, and what a provider finds of a type of its own, are of no kind.
    assert recall == {
        "both": (5, 1, 1), "lists": (3, 0, 1), "providers": (2, 1, 0), "not given": (1, 1, 0), "public": (1, 1, 0),
    }  # fmt: skip
