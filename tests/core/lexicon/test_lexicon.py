from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon import lexicon as module
from dptext_spark.lexicon.lexicon import MANIFEST_FILE, VECTORS_FILE, Lexicon, same_words, with_shared_words
from dptext_spark.lexicon.vector_intake import ReadCounts
from dptext_spark.lexicon.vocabulary import BYTES_FILE, OFFSETS_FILE, Vocabulary

WORDS = ["one", "two", "three"]
VECTORS = np.arange(6, dtype=np.float32).reshape(3, 2)


def small(**changes: object) -> Lexicon:
    settings: dict = {"vocabulary": Vocabulary.of(WORDS), "vectors": VECTORS, "name": "small", **changes}
    return Lexicon(**settings)


def test_the_fingerprint_covers_words_vectors_and_metric_only() -> None:
    one = small()
    assert len(one.fingerprint) == 64
    assert one.fingerprint == small(name="other", counts=ReadCounts(read=3, kept=3)).fingerprint
    others = [
        small(metric="euclidean"),
        small(vocabulary=Vocabulary.of(["one", "two", "thre"])),
        small(vocabulary=Vocabulary.of(["onet", "wo", "three"])),  # the same bytes, cut elsewhere
        small(vectors=VECTORS + np.float32(1e-6)),
        small(vectors=VECTORS[::-1].copy()),
    ]
    assert len({one.fingerprint, *(other.fingerprint for other in others)}) == 6
    assert dataclasses.replace(one, metric="euclidean").fingerprint == others[0].fingerprint
    with pytest.raises(SettingsError, match=r"metric: 'cosin' is not valid\. Choose cosine or euclidean"):
        small(metric="cosin")


def test_saved_and_opened(tmp_path: Path) -> None:
    counts = ReadCounts(read=9, kept=3, duplicates=6)
    lexicon = small(metric="euclidean", counts=counts)
    lexicon.save(tmp_path / "a" / "lexicon")
    for folder in (tmp_path / "a" / "lexicon", str(tmp_path / "a" / "lexicon")):
        opened = Lexicon.open(folder)
        assert isinstance(opened.vectors.base, np.memmap)
        assert isinstance(opened.vocabulary.data.base, np.memmap)
        assert opened.vocabulary.ids(pa.array(["three"])).tolist() == [2]
        np.testing.assert_array_equal(opened.vectors, VECTORS)
        assert opened.vocabulary.strings().to_pylist() == WORDS
        assert (opened.metric, opened.name, opened.counts) == ("euclidean", "small", counts)
        assert opened.fingerprint == lexicon.fingerprint
        assert dataclasses.replace(opened, metric="cosine").fingerprint == small().fingerprint
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["lexicon"]  # no draft is left behind


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    small().save(tmp_path / "lexicon")
    with pytest.raises(SettingsError, match="exists"):
        small().save(tmp_path / "lexicon")
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingsError, match="exists"):
        small().save(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    small().save(tmp_path / "empty")
    assert len(Lexicon.open(tmp_path / "empty")) == 3


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    small().save(tmp_path / "lexicon")
    for name in (VECTORS_FILE, BYTES_FILE):
        path = tmp_path / "lexicon" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(DataError, match="fingerprint"):
            Lexicon.open(tmp_path / "lexicon")
        assert len(Lexicon.open(tmp_path / "lexicon", verify=False)) == 3
        path.write_bytes(whole)
    offsets = np.load(tmp_path / "lexicon" / OFFSETS_FILE)
    offsets[1] += 1
    np.save(tmp_path / "lexicon" / OFFSETS_FILE, offsets)
    with pytest.raises(DataError, match="fingerprint"):
        Lexicon.open(tmp_path / "lexicon")


@pytest.mark.parametrize("name", [VECTORS_FILE, BYTES_FILE, OFFSETS_FILE, MANIFEST_FILE])
def test_a_missing_or_truncated_file_is_refused(tmp_path: Path, name: str) -> None:
    small().save(tmp_path / "lexicon")
    path = tmp_path / "lexicon" / name
    np.save(tmp_path / "pickled.npy", np.array([object()]), allow_pickle=True)
    for content in (path.read_bytes()[:-3], b"", (tmp_path / "pickled.npy").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(DataError, match=name):
            Lexicon.open(tmp_path / "lexicon", verify=False)
    path.unlink()
    with pytest.raises(DataError, match=name):
        Lexicon.open(tmp_path / "lexicon", verify=False)
    with pytest.raises(DataError, match="not a lexicon folder"):
        Lexicon.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 2"),
        ({"format": "something"}, "something"),
        ({"metric": None}, "metric"),
        ({"fingerprint": ...}, "damaged"),
        ({"counts": {"unheard": 1}}, "damaged"),
    ],
)
def test_a_manifest_that_does_not_fit(tmp_path: Path, change: dict, message: str) -> None:
    small().save(tmp_path / "lexicon")
    path = tmp_path / "lexicon" / MANIFEST_FILE
    manifest = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: value for key, value in manifest.items() if value is not ...}))
    with pytest.raises((DataError, SettingsError), match=message):
        Lexicon.open(tmp_path / "lexicon")


def test_vectors_kept_as_float16_are_widened(tmp_path: Path) -> None:
    small().save(tmp_path / "lexicon")
    np.save(tmp_path / "lexicon" / VECTORS_FILE, VECTORS.astype(np.float16))
    opened = Lexicon.open(tmp_path / "lexicon")
    assert opened.vectors.dtype == np.float32
    np.testing.assert_array_equal(opened.vectors, VECTORS)


def test_a_folder_inside_an_archive(tmp_path: Path) -> None:
    small().save(tmp_path / "lexicon")
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        for file in (tmp_path / "lexicon").iterdir():
            archive.write(file, f"lexicon/{file.name}")
    with zipfile.ZipFile(tmp_path / "package.zip") as archive:
        inside = module._load(zipfile.Path(archive, "lexicon/"), verify=True)
    assert inside.fingerprint == small().fingerprint
    assert inside.vocabulary.strings().to_pylist() == WORDS


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vectors": VECTORS.astype(np.float64)}, "float32"),
        ({"vectors": VECTORS[0]}, "float32"),
        ({"vectors": np.asfortranarray(VECTORS)}, "C order"),
        ({"vectors": VECTORS[:2].copy()}, "3 words"),
        ({"vectors": np.zeros((3, 0), np.float32)}, "3 words"),
        ({"vectors": np.where(VECTORS == 3, np.float32(-np.inf), VECTORS)}, "NaN or an infinity"),
        ({"vectors": VECTORS[:1].copy(), "vocabulary": Vocabulary.of(["one"])}, "too few"),
        ({"vectors": VECTORS[:0].copy(), "vocabulary": Vocabulary.of([])}, "0 usable"),
    ],
)
def test_vectors_that_cannot_be(changes: dict, message: str) -> None:
    with pytest.raises(DataError, match=message):
        small(**changes)


def lexicon(words: str, name: str = "lexicon", metric: str = "cosine") -> Lexicon:
    """Every letter has its code as its vector."""
    vectors = np.array([[ord(w), -ord(w)] for w in words], np.float32)
    return Lexicon(Vocabulary.of(list(words)), vectors, metric=metric, name=name)  # type: ignore[arg-type]


def test_the_words_of_all_in_the_order_of_the_first() -> None:
    found = with_shared_words([lexicon("zebra", "a"), lexicon("abcdez", "b", "euclidean"), lexicon("ezxba")])
    assert [one.vocabulary.strings().to_pylist() for one in found] == [list("zeba")] * 3
    for one in found:
        assert one.vectors[:, 0].tolist() == [ord(w) for w in "zeba"]
        assert one.vectors.dtype == np.float32
        assert one.vectors.flags.c_contiguous
    assert [one.name for one in found] == ["a", "b", "lexicon"]
    assert [one.metric for one in found] == ["cosine", "euclidean", "cosine"]
    assert same_words(found)


def test_those_that_agree_stay_themselves() -> None:
    given = [lexicon("abc"), lexicon("abc")]
    assert all(one is other for one, other in zip(with_shared_words(given), given, strict=True))
    assert with_shared_words(given[:1]) == (given[0],)


def test_the_same_words_in_another_order_are_put_in_order() -> None:
    assert not same_words([lexicon("abc"), lexicon("acb")])
    cut_elsewhere = (Vocabulary.of(["ab", "c"]), Vocabulary.of(["a", "bc"]))
    assert not same_words([Lexicon(each, np.eye(2, dtype=np.float32)) for each in cut_elsewhere])
    found = with_shared_words([lexicon("abc"), lexicon("cab")])
    assert same_words(found)
    assert (found[0].vectors == found[1].vectors).all()


@pytest.mark.parametrize(("other", "number"), [("xyz", 0), ("ayz", 1)])
def test_too_few(other: str, number: int) -> None:
    with pytest.raises(DataError, match=rf"{number} word\(s\) in all of one \(3\), two \(3\)"):
        with_shared_words([lexicon("abc", "one"), lexicon(other, "two")])


KEYS = ["the", "naïve", "日本", "a", "don't", "\U0001f600"]


def test_both_ways() -> None:
    vocabulary = Vocabulary.of(KEYS)
    assert len(vocabulary) == 6
    assert [vocabulary.word(i) for i in range(6)] == KEYS == vocabulary.strings().to_pylist()
    assert vocabulary.words(np.array([5, 0, 0], np.int32)).to_pylist() == ["\U0001f600", "the", "the"]
    ids = vocabulary.ids(pa.array(["a", "zebra", None, "The", "日本", ""]))
    assert ids.dtype == np.int32
    assert ids.tolist() == [3, -1, -1, -1, 2, -1]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
def test_any_text_type_sliced_or_chunked(kind: pa.DataType) -> None:
    array = pa.array(["skipped", *KEYS], pa.string()).cast(kind)[1:]
    assert Vocabulary.of(array).strings().to_pylist() == KEYS
    assert Vocabulary.of(pa.chunked_array([array[:2], array[2:]])).strings().to_pylist() == KEYS
    assert Vocabulary.of([]).ids(array).tolist() == [-1] * len(KEYS)


@given(st.lists(st.text(), unique=True, max_size=30))
def test_any_distinct_words(words: list[str]) -> None:
    vocabulary = Vocabulary.of(words)
    assert vocabulary.strings().to_pylist() == words
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(["skipped", *words], kind)[1:]
        assert vocabulary.ids(array).tolist() == list(range(len(words)))


@pytest.mark.parametrize("index", [-1, 6])
def test_ids_that_do_not_exist(index: int) -> None:
    vocabulary = Vocabulary.of(KEYS)
    with pytest.raises(IndexError, match="0"):
        vocabulary.word(index)
    with pytest.raises(IndexError, match="0 to 5"):
        vocabulary.words(np.array([0, index], np.int32))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "a"], "only 2 of 3 words"),
        (pa.array(["a", None]), "1 of 2 words are NULL"),
        (pa.array([b"a", b"\xff"]), "valid Unicode"),
        (["\ud800"], "valid Unicode"),
        (pa.array([[1]]), "valid Unicode"),
    ],
)
def test_words_that_cannot_be(words: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Vocabulary.of(words)


@pytest.mark.parametrize(
    ("offsets", "data"),
    [
        (np.array([0, 3, 2, 4]), np.zeros(4, np.uint8)),
        (np.array([0, 3]), np.zeros(4, np.uint8)),
        (np.array([0, 400]), np.zeros(4, np.uint8)),
        (np.array([1, 4]), np.zeros(4, np.uint8)),
        (np.zeros(0, np.int64), np.zeros(0, np.uint8)),
        (np.array([0, 4], np.int32), np.zeros(4, np.uint8)),
        (np.array([0, 4]), np.zeros(4, np.int8)),
        (np.array([[0, 4]]), np.zeros(4, np.uint8)),
    ],
)
def test_arrays_that_do_not_fit(offsets: np.ndarray, data: np.ndarray) -> None:
    with pytest.raises(DataError, match="vocabulary"):
        Vocabulary(offsets, data)
