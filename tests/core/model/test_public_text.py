"""A prior that is counted in a public text, from the file to the artifact that an audit opens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dptext_spark.config.load import parse_config, parse_model_config
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import PairModel, counted
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model import public_text
from dptext_spark.model.artifact import open_model, read_manifest
from dptext_spark.model.compile import compile_to, prepare
from dptext_spark.model.public_text import read_prior
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.plain_whole import gaussian

WORDS = ["send", "the", "parcel", "late", "again", "oslo"]
TEXT = "Send the parcel, the late parcel.\n\nDon't send 12 parcel xyzzy parcel don't late\n"


@pytest.fixture
def lexicon() -> Lexicon:
    return Lexicon(Vocabulary.of(WORDS), gaussian(len(WORDS), 4, 2))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    file = tmp_path / "public.txt"
    file.write_text(TEXT, encoding="utf-8")
    return file


def test_words_and_pairs_are_counted_as_the_engine_cuts_them(
    lexicon: Lexicon, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prior = read_prior(corpus, lexicon)
    send, the, parcel, late, _, _ = range(6)
    counts = np.bincount([send, the, parcel, the, late, parcel, send, parcel, parcel, late], minlength=6)
    assert prior.words.tolist() == counted(counts).tolist()
    assert not set(prior.others) & set(WORDS)
    dont = len(WORDS) + prior.others.index("don't")
    # Marks, numbers, unknown words and the ends of documents part words; a stop word that the lexicon lacks is a context.
    pairs = [(send, the), (the, parcel), (the, late), (late, parcel), (dont, send), (dont, late)]
    (first, second), contexts = np.array(sorted(pairs), np.int32).T, len(WORDS) + len(prior.others)
    expected = PairModel.of_counts(prior.words, first, second, np.ones(6, np.int64), contexts)
    for name, array in expected.arrays().items():
        assert prior.pairs.arrays()[name].tolist() == array.tolist()
    assert prior.name == "counts of the public text 'public.txt' (10 words)"
    monkeypatch.setattr(public_text, "LINES", 1)
    assert read_prior(corpus, lexicon).digest == prior.digest


def test_other_stop_words_are_other_contexts(lexicon: Lexicon, corpus: Path) -> None:
    assert read_prior(corpus, lexicon, Policy(stop_word_list=("late", "12"))).others[0] == "12"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n \n", "has 0 different words"),
        (b"parcel parcel\n", "has 1 different words"),
        ("zwölf Männer\n".encode(), "has 0 different words"),
        (b"\xff\xfe\x00parcel", "is not UTF-8 text"),
        (b"parcel late " * 100, "a line of more than 1,000 characters"),
        (b"parcel late\n" * 1000, "has 12,000 bytes. Choose at most 10,000"),
    ],
)
def test_a_corpus_that_teaches_nothing(
    lexicon: Lexicon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    monkeypatch.setattr(public_text, "MOST_LINE", 1000)
    monkeypatch.setattr(public_text, "MOST_BYTES", 10_000)
    (tmp_path / "corpus.txt").write_bytes(content)
    with pytest.raises(DataError, match=rf"^lexicon.prior.corpus: .*{said}"):
        read_prior(tmp_path / "corpus.txt", lexicon)


def test_a_corpus_that_is_no_file(lexicon: Lexicon, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^lexicon.prior.corpus: .* cannot be read \(No such file"):
        read_prior(tmp_path / "nowhere", lexicon)
    with pytest.raises(DataError, match=r"^lexicon.prior.corpus: .* is not a file"):
        read_prior(tmp_path, lexicon)


def test_settings_that_name_a_corpus(corpus: Path) -> None:
    run = {"columns": ["body"], "output": {"path": "/out"}}
    with pytest.raises(SettingsError, match=r"^lexicon.prior.corpus: '/in/a.txt' is the input"):
        parse_config({**run, "input": {"path": "/in"}, "lexicon": {"prior": {"corpus": "/in/a.txt"}}})
    for prior, said in (
        ({}, "lexicon.prior.corpus"),
        ({"corpus": ""}, "lexicon.prior.corpus"),
        ({"file": "x"}, "lexicon.prior.file: no such setting"),
        ({"corpus": "s3://user:secret@bucket/x"}, "lexicon.prior.corpus: the path holds a password"),
    ):
        with pytest.raises(SettingsError, match=said):
            parse_config({**run, "input": {"path": "/in"}, "lexicon": {"prior": prior}})
    config = parse_model_config({"lexicon": {"prior": {"corpus": str(corpus)}}})
    assert config.spec()["lexicon"]["prior"] == {"corpus": str(corpus)}
    assert "prior" not in parse_model_config({}).spec()["lexicon"]


def test_a_model_keeps_its_prior_which_is_no_part_of_its_fingerprint(
    lexicon: Lexicon, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("DPTEXT_CACHE", str(cache))
    lexicon.save(tmp_path / "lexicon")
    of = {"source": str(tmp_path / "lexicon")}
    plain = {"lexicon": of, "mechanism": {"k": 3}}
    counted_too = {"lexicon": {**of, "prior": {"corpus": str(corpus)}}, "mechanism": {"k": 3}}
    (by_rank, folder), (with_prior, other) = (
        prepare(parse_model_config(one)) for one in (plain, counted_too)
    )
    assert by_rank.fingerprint == with_prior.fingerprint
    assert folder != other
    assert by_rank.prior.is_by_rank
    assert read_manifest(folder).prior is None
    assert with_prior.prior.digest == read_prior(corpus, lexicon).digest
    compile_to(parse_model_config(counted_too), tmp_path / "model")
    corpus.unlink()  # what an audit needs is in the model
    opened = open_model(tmp_path / "model")
    assert (opened.prior.name, opened.prior.digest) == (with_prior.prior.name, with_prior.prior.digest)
    run = {"artifact": str(tmp_path / "model")}
    prepare(parse_model_config({"mechanism": {"k": 3}, "run": run}))
    with pytest.raises(SettingsError, match=r"lexicon.prior: .* differs from .* of artifact"):
        prepare(parse_model_config({**plain, "run": run}))
    # The contexts of a model are those of its table, whatever stop words were counted with.
    assert opened.prior.others == opened.table.beyond()  # type: ignore[union-attr]
    np.save(tmp_path / "model" / "prior.words.npy", np.full(6, 1 / 6))
    with pytest.raises(DataError, match="its numbers have changed"):
        open_model(tmp_path / "model")
