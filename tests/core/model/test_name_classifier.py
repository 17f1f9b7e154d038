"""The policy's classifier of names in a model: found beside public lists or alone, at every level, and part of the model."""

from __future__ import annotations

import pickle
import shutil
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("onnx", reason="the extra [encoder] is not installed")

from dptext_spark.encoder.name_classifier import Classifier, read_classifier
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model import artifact
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.compile import compile, compile_to, prepare
from dptext_spark.model.preview import preview
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.chunks import padded
from dptext_spark.text.names.public_names import PublicNames
from dptext_spark.text.names.search import NameSearch
from dptext_spark.text.policy import Policy
from tests.core.encoder.tiny_bert import make_tiny_bert
from tests.core.encoder.tiny_classifier import (
    LABELS,
    VOCABULARY,
    logits_table,
    make_tiny_classifier,
    tiny_graph,
)
from tests.core.model.small_models import chosen_by, compiled, drawn, settings_of
from tests.core.names import beginning

# Of these the tiny classifier knows Anna, Jose, Keller, Müller, Oslo and New York; lists know Ada, Robert, Paris, too.
TEXTS = [
    "Anna Keller lives in Oslo.",
    "",
    "the time of Ada Keller and Robert, in Paris or New York!",
    "people like Anna's music; José Müller! A. Keller, Dr. Keller",
    "no name here in oslo",
    "Oslo Anna\nKeller Keller-Anna, anna@example.org and 123 Anna",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_classifier(tmp_path_factory.mktemp("names") / "tiny", tiny_graph(mixed=0.1))


@cache
def model(folder: Path, which: str, consistency: Any, action: str, lists: bool) -> Privatizer:
    policy = Policy(names={"model": str(folder), "lists": lists, "person": action, "location": action})  # type: ignore[arg-type]
    if which == "attention":
        bert = str(make_tiny_bert(folder.parent / "bert"))
        return compiled(policy, consistency, importance=chosen_by(consistency, "attention", model=bert))
    return compiled(policy, consistency, which)


CASES = [
    *(("plain", level) for level in ("token", "record", "dataset")),
    ("fluent", "token"),
    ("attention", "token"),
    *product(("importance", "budget"), ("token", "record")),
]


@pytest.mark.long
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("action", ["mask", "pseudonym"])
@pytest.mark.parametrize(("which", "level"), CASES)
def test_a_batch_equals_its_rows(folder: Path, which: str, level: str, action: str, lists: bool) -> None:
    made = model(folder, which, level, action, lists)
    together = drawn(made, TEXTS)
    assert together == [drawn(made, [text], row_ids=pa.array([row]))[0] for row, text in enumerate(TEXTS)]
    masks = "".join(together)
    # Keller-Anna is one name; lists find Robert and Paris, too.
    assert masks.count("[PERSON]") == (0 if action == "pseudonym" else 10 if lists else 9)
    assert masks.count("[LOCATION]") == (0 if action == "pseudonym" else 5 if lists else 4)
    words = set(masks.lower().replace("\n", " ").replace(".", " ").replace(",", " ").split())
    assert action == "pseudonym" or not {"anna", "keller", "müller", "york"} & words


def union(text: str, made: Privatizer) -> list[tuple[int, int]]:
    """The stretches that either search finds, those that overlap joined, byte by byte."""
    found: list[tuple[int, int]] = []
    for provider in (PublicNames(made.policy.names), made.classifier):
        some = provider.find_in(*padded(pa.array([text])))
        found += zip(some.starts.tolist(), some.ends.tolist(), strict=True)
    joined: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


@pytest.mark.parametrize("action", ["mask", "pseudonym"])
def test_what_both_searches_find_is_found_once(folder: Path, action: str) -> None:
    made = model(folder, "plain", "token", action, True)
    finder = made.engine.finder
    for text in TEXTS:
        texts = pa.array([text])
        spans, types, *_ = finder.find(*padded(texts), texts)
        places = zip(spans.starts.tolist(), spans.ends.tolist(), types.tolist(), strict=True)
        found = [(a, b) for a, b, kind in places if finder.names[kind] not in ("email", "username")]
        mail = text.find("anna@")  # a rule's, which the classifier's is a part of
        assert found == [one for one in union(text, made) if mail < 0 or not mail <= one[0] < mail + 16]
        assert all(one[1] <= other[0] for one, other in pairwise(found))


def parts(text: str, folder: Path, **actions: str) -> list[tuple[str, str]]:
    """The parts of a text that a classifier finds, with their types."""
    search = read_classifier(NameSearch(model=str(folder), **actions))  # type: ignore[arg-type]
    found, raw = search.find(pa.array([text])), text.encode()
    spans = zip(found.starts.tolist(), found.ends.tolist(), found.types.tolist(), strict=True)
    return [(raw[start:end].decode(), search.types[kind]) for start, end, kind in spans]


NAMED = {"person": "pseudonym", "location": "pseudonym"}


def test_words_are_parts_by_their_labels(folder: Path) -> None:
    assert parts("Anna Keller's in New York, Anna\u2019S Oslo", folder, **NAMED) == [
        ("Anna", "given_name"), ("Keller", "surname"), ("New", "city"), ("York", "city"), ("Anna", "given_name"),
        ("Oslo", "city"),
    ]  # fmt: skip
    for person, location, found in (
        ("mask", "mask", [("Anna Keller", "person"), ("New York", "location")]),
        ("keep", "pseudonym", [("New", "city"), ("York", "city")]),
        ("pseudonym", "keep", [("Anna", "given_name"), ("Keller", "surname")]),
    ):
        assert parts("Anna Keller's in New York", folder, person=person, location=location) == found


def relabelled(folder: Path, of: dict[str, str], more: dict[str, str] | None = None) -> Path:
    """The tiny classifier, its labels called otherwise; `more` are labels of further words."""
    cut = [label.split("-") for label in LABELS]
    labels = {str(place): "-".join([*rest, of.get(last, last)]) for place, (*rest, last) in enumerate(cut)}
    table = logits_table()
    for word, label in (more or {}).items():
        table[VOCABULARY.index(word)] = -40.0
        table[VOCABULARY.index(word), LABELS.index(label)] = 6.0
    return make_tiny_classifier(folder, tiny_graph(table=table), {"id2label": labels})


def test_persons_without_more_and_streets(tmp_path: Path) -> None:
    kinds = {"GIVEN_NAME": "PER", "SURNAME": "PER", "CITY": "LOC", "EMAIL": "ORG"}
    plain = relabelled(tmp_path / "plain", kinds, {"a": "B-GIVEN_NAME"})
    assert parts("Anna A. Keller and Anna met Keller in Oslo Mail", plain, **NAMED) == [
        ("Anna", "given_name"), ("A", "initial"), ("Keller", "surname"), ("Anna", "given_name"), ("Keller", "given_name"),
        ("Oslo", "city"),
    ]  # fmt: skip
    streets = relabelled(tmp_path / "streets", {"SURNAME": "STREET", "CITY": "COUNTRY", "EMAIL": "OTHER"})
    assert parts("Anna in Keller Müller Oslo", streets, **NAMED) == [
        ("Anna", "given_name"), ("Keller Müller", "location"), ("Oslo", "region"),
    ]  # fmt: skip


def test_of_equal_stretches_the_kind_of_the_lists_counts(tmp_path: Path) -> None:
    towns = relabelled(tmp_path / "towns", {"GIVEN_NAME": "COUNTRY"})
    text = pa.array(["people met Anna in Oslo"])
    for lists, kinds in ((True, ["given_name", "city"]), (False, ["region", "city"])):
        finder = model(towns, "plain", "token", "pseudonym", lists).engine.finder
        assert [finder.names[kind] for kind in finder.find(*padded(text), text).types] == kinds


def test_a_name_of_both_searches_has_one_pseudonym(folder: Path) -> None:
    both, lists = model(folder, "plain", "record", "pseudonym", True), NameSearch(lists=True, **NAMED)  # type: ignore[arg-type]
    alone = replace(both, policy=replace(both.policy, names=lists), classifier=None, fingerprint="")
    texts = ["Anna met Robert Keller"]
    assert drawn(both, texts)[0].split()[2:] == drawn(alone, texts)[0].split()[2:]


@pytest.mark.parametrize(("lists", "by"), [(False, "a classifier"), (True, "public lists or a classifier")])
def test_a_preview_says_who_found_it(folder: Path, lists: bool, by: str) -> None:
    found = preview(model(folder, "plain", "token", "mask", lists), "people like Anna").words[-1]
    assert (found.text, found.action, found.became) == ("Anna", "masked", "[PERSON]")
    assert found.reason == f"a name, by {by}"


def test_the_content_is_part_of_the_fingerprint_and_the_place_is_not(folder: Path, tmp_path: Path) -> None:
    made = model(folder, "plain", "token", "mask", False)
    moved = tmp_path / "elsewhere"
    shutil.copytree(folder, moved)
    assert model(moved, "plain", "token", "mask", False).fingerprint == made.fingerprint
    other = make_tiny_classifier(tmp_path / "other", tiny_graph(mixed=0.2))
    assert model(other, "plain", "token", "mask", False).fingerprint != made.fingerprint
    policies = [
        {"model": str(folder)}, {"model": str(folder), "threshold": 0.6}, {"model": str(folder), "lists": True}, {"lists": True},
        "none",
    ]  # fmt: skip
    lexicon = beginning(Lexicon.default(), 300)
    prints = {compile(CusText(k=5), lexicon, Policy(names=one)).fingerprint for one in policies}  # type: ignore[arg-type]
    assert len(prints) == len(policies)


@pytest.mark.long
def test_it_is_saved_and_opened_without_its_folder(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(folder, source)
    made = model(source, "plain", "record", "pseudonym", True)
    save_model(made, tmp_path / "model")
    shutil.rmtree(source)
    opened = open_model(tmp_path / "model")
    assert opened.fingerprint == made.fingerprint
    assert isinstance(opened.arrays()["names.graph"], np.memmap)
    assert drawn(opened, TEXTS) == drawn(made, TEXTS) == drawn(pickle.loads(pickle.dumps(opened)), TEXTS)


def classifying(folder: Path) -> dict[str, Any]:
    return {"names": {"model": str(folder)}}


def test_settings_prepare_a_model_by_the_content_of_the_folder(folder: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(folder, source)
    settings = settings_of(tmp_path, classifying(source))
    first, where = prepare(settings)
    assert prepare(settings)[1] == where
    assert first.classifier is not None
    compile_to(settings, tmp_path / "artifact")
    shutil.rmtree(source)
    make_tiny_classifier(source, tiny_graph(mixed=0.2))
    second, elsewhere = prepare(settings)
    assert elsewhere != where
    assert second.fingerprint != first.fingerprint
    shutil.rmtree(source)
    named = settings_of(tmp_path, classifying(source), run={"artifact": str(tmp_path / "artifact")})
    assert prepare(named)[0].fingerprint == first.fingerprint
    with pytest.raises(SettingsError, match=r"policy\.names\.model: .* is neither a folder nor an installed"):
        prepare(settings)


def test_what_does_not_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    made = model(folder, "plain", "token", "mask", False)
    other = Policy(names={"model": str(folder), "threshold": 0.7})  # type: ignore[arg-type]
    for change in ({"policy": Policy()}, {"classifier": None}, {"policy": other}):
        with pytest.raises(
            SettingsError, match=r"^policy\.names\.model: the policy has .*, but the privatizer"
        ):
            replace(made, **change, fingerprint="")  # type: ignore[arg-type]
    places = relabelled(tmp_path / "places", {"GIVEN_NAME": "ORG", "SURNAME": "ORG"})
    with pytest.raises(SettingsError, match=r"^policy\.names\.model: its labels are of location.*person"):
        read_classifier(NameSearch(model=str(places), location="keep"))
    kept = NameSearch(model="/no/such/folder", person="keep", location="keep")
    assert read_classifier(kept) is None


@pytest.mark.parametrize("wrong", ["labels", "tokenizer", "folder", "graph"])
def test_a_classifier_that_cannot_be_used_is_named_by_its_setting(tmp_path: Path, wrong: str) -> None:
    config, without = {"tokenizer": {"vocab_size": 5000}}.get(wrong), {"labels": "id2label"}.get(wrong, "")
    source = make_tiny_classifier(tmp_path / "c", config=config, without=without)
    if wrong == "folder":
        (source / "config.json").unlink()
    if wrong == "graph":
        (source / "onnx" / "model.onnx").write_bytes(b"secret")
    with pytest.raises(SettingsError, match=r"policy\.names\.model") as caught:
        prepare(settings_of(tmp_path, classifying(source)))
    assert "secret" not in str(caught.value)


def test_a_missing_extra_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_model(model(folder, "plain", "token", "mask", False), tmp_path / "model")
    monkeypatch.setattr("dptext_spark.errors.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=r"\[encoder\]"):
        open_model(tmp_path / "model")


def test_arrays_of_a_classifier_that_no_policy_names_are_refused(folder: Path, tmp_path: Path) -> None:
    made = model(folder, "plain", "token", "mask", False)
    save_model(made, tmp_path / "model")
    manifest = artifact.read_manifest(tmp_path / "model")
    arrays = {one.stem: np.load(one) for one in (tmp_path / "model").glob("*.npy")}
    seen = artifact.fingerprint_of(arrays, Policy(), manifest.consistency)
    replace(manifest, policy=Policy(), fingerprint=seen).sealed().write(tmp_path / "model")
    with pytest.raises(DataError, match="arrays that belong to no part"):
        open_model(tmp_path / "model")


def test_a_tokenizer_that_is_none_ends_a_batch_without_a_word(folder: Path) -> None:
    made = model(folder, "plain", "token", "mask", False)
    held = {**made.classifier.arrays(), "tokenizer": np.frombuffer(b"{", np.uint8)}
    damaged = replace(made, classifier=Classifier.restore(held, made.policy.names), fingerprint="")
    with pytest.raises(DataError) as caught:
        drawn(damaged, ["Anna Secret"])
    assert "Secret" not in str(caught.value)
