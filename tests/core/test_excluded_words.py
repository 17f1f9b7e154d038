"""No output set, no pool of pseudonyms and no fake holds an obscenity or a slur, and how the reviewed list is made."""

# ruff: noqa: SIM905
from __future__ import annotations

from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import EXCLUDED_FILE, excluded_words, read_excluded
from dptext_spark.mechanisms import MECHANISMS, CusText, Mechanism
from dptext_spark.model.compile import compile as dp_compile
from dptext_spark.model.compile import load_lexicon, prepare
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.names.public_names import LISTS
from dptext_spark.text.policy import TYPES, Policy
from dptext_spark.text.replacements import pool
from tests.core.names import beginning
from tests.frozen.behaviour import PARAMETERS
from tools import excluded_words as tool

OUT = set("anal asshole bastards dick dyke fanny fucking gypsy homo negro porn shit whore".split())
STAY = set("breast penis gay black jew muslim hell idiot murder nazi willy randy paddy wang".split())


def test_the_list_is_sorted_lower_case_and_says_its_rule() -> None:
    text = (files("dptext_spark.lexicon") / "default" / EXCLUDED_FILE).read_text(encoding="utf-8")
    words = [line for line in text.splitlines() if not line.startswith("#")]
    assert words == sorted(set(words))
    assert all(word.isascii() and word.isalpha() and word.islower() for word in words)
    assert set(words) == excluded_words()
    assert excluded_words() >= OUT
    assert not excluded_words() & STAY
    for name in ("Dick", "Fanny", "Willy", "Randy"):
        assert name in text.partition("# Names.")[2]


def test_no_word_of_the_lexicon_is_excluded() -> None:
    words = {word.lower() for word in Lexicon.default().vocabulary.strings().to_pylist()}
    assert not words & excluded_words()
    assert words >= STAY


def commonest(count: int) -> Lexicon:
    packaged = Lexicon.default()
    return beginning(packaged, count).with_prior(packaged.prior.of_words(np.arange(count)))


PUBLISHED = [kind(**PARAMETERS[name]) for name, kind in MECHANISMS.items()]


@pytest.mark.parametrize(
    "mechanism",
    [*PUBLISHED, CusText(epsilon=1.0, remap="bayes"), CusText(epsilon=1.0, fluent=True)],
    ids=repr,
)
def test_no_output_is_another_than_a_word_of_the_lexicon(mechanism: Mechanism) -> None:
    """Of words that are drawn, and of unknown ones in whose place a word is drawn."""
    lexicon = commonest(200)
    model = dp_compile(mechanism, lexicon, Policy(oov="draw"))
    words = lexicon.vocabulary.strings().to_pylist()
    texts = pa.array([" ".join([*words, "fuck", "Dick"])] * 3)
    out, _ = model.privatize(texts, column="body", row_ids=pa.array(range(3)), key=RunKey.insecure(4))
    drawn = {word.lower() for text in out.to_pylist() for word in text.split()}
    assert len(drawn) > 20
    assert drawn <= set(words)
    assert not drawn & excluded_words()


@pytest.mark.parametrize("kind", range(len(LISTS)))
def test_no_pseudonym_is_excluded(kind: int) -> None:
    names = pool(kind)
    found = {bytes(names.data[a:b]).decode().lower() for a, b in pairwise(names.bounds)}
    assert len(found) > 200
    assert not found & excluded_words()


def test_no_fake_spells_a_word() -> None:
    assert all(set(word) & set("aeiouy") for word in excluded_words())
    shapes = ["mr.dick@fanny.example", "https://example.com/Fuck/a?b=shit"]
    lexicon = commonest(50)
    policy = Policy(identifiers={name: "fake" for name in TYPES if name != "date"})
    model = Privatizer(lexicon, CusText(epsilon=1.0, k=5).compile(lexicon), policy)
    rows = pa.array(shapes * 500)
    out, _ = model.privatize(rows, column="b", row_ids=pa.array(np.arange(1_000)), key=RunKey.insecure(4))
    letters = set("".join(text.partition("@")[0] for text in out.to_pylist()[::2])) - {"."}
    assert letters <= set("bcdfghjklmnpqrstvwxz")
    assert len(letters) == 20


@pytest.mark.parametrize(
    ("version", "licence", "listed", "said"),
    [
        (tool.VERSION, tool.LICENCE, True, ""),
        ("0.6.1", tool.LICENCE, True, "better-profanity==0.7.0"),
        (tool.VERSION, "License :: Other", True, "MIT"),
        (tool.VERSION, tool.LICENCE, False, "profanity_wordlist"),
        (None, "", False, "none is installed"),
    ],
)
def test_the_tool_reads_the_public_list_by_name_version_and_licence(
    version: str | None, licence: str, listed: bool, said: str, tmp_path: Path, capsys: Any
) -> None:
    """The package as pip would lay it, with three invented entries."""
    if version is not None:
        information = tmp_path / f"better_profanity-{version}.dist-info"
        information.mkdir()
        fields = f"Name: {tool.NAME}\nVersion: {version}\nClassifier: {licence}\n"
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\n{fields}")
    if listed:
        (tmp_path / "better_profanity").mkdir()
        (tmp_path / tool.LIST_FILE).write_text("zounds\nshit\ntime\n\n", encoding="utf-8")
    if said:
        with pytest.raises((SettingsError, DataError), match=said):
            tool.public_list(str(tmp_path))
        return
    assert tool.public_list(str(tmp_path)) == {"zounds", "shit", "time"}
    assert tool.main(["--list", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["out   shit", "stays time"]
    assert "out, beside the public list whore" in lines
    assert "smith" in tool.packaged_names()


def test_a_list_of_ones_own_is_read_as_the_lexicon_looks_words_up(tmp_path: Path) -> None:
    file = tmp_path / "words.txt"
    file.write_bytes("\ufeff# ours\r\n\r\nParcel\r\n  O\u2019Neill \r\n".encode())
    assert read_excluded(file) == {"parcel", "o'neill"}
    for content, said in ((b"caf\xe9\n", "not UTF-8 text"), (b"# none\n\n", "has no word")):
        file.write_bytes(content)
        with pytest.raises(DataError, match=said):
            read_excluded(file)
    for name in ("none.txt", "none\0.txt"):
        with pytest.raises(DataError, match=r"^lexicon\.exclude: .*cannot be read"):
            read_excluded(tmp_path / name)


def test_the_setting_takes_words_out_of_any_lexicon_and_changes_the_fingerprint(tmp_path: Path) -> None:
    vectors, unfit = tmp_path / "vectors.txt", tmp_path / "unfit.txt"
    vectors.write_text("cat 0.5 1\ndog 1.5 1\ncow 2.5 1\nhen 3.5 1\nant 4.5 1\n")
    unfit.write_text("\ufeff# ours\nDOG\n\nzebra\n", encoding="utf-8")
    settings = {"lexicon": {"source": str(vectors)}, "mechanism": {"name": "custext", "k": 2}}
    cut = {**settings, "lexicon": {"source": str(vectors), "exclude": str(unfit)}}
    whole, left = (load_lexicon(ModelConfig.model_validate(one)) for one in (settings, cut))
    assert left.vocabulary.strings().to_pylist() == ["cat", "cow", "hen", "ant"]
    assert whole.fingerprint != left.fingerprint
    models = [prepare(ModelConfig.model_validate(one))[0] for one in (settings, cut, cut, settings)]
    assert [len(model.vocabulary) for model in models] == [5, 4, 4, 5]
    fingerprints = {model.fingerprint for model in models}
    assert len(fingerprints) == 2
    unfit.write_text("hen\n", encoding="utf-8")
    assert len(prepare(ModelConfig.model_validate(cut))[0].vocabulary) == 4
    assert prepare(ModelConfig.model_validate(cut))[0].fingerprint not in fingerprints
    unfit.write_text("cat\ndog\ncow\nhen\n", encoding="utf-8")
    with pytest.raises(DataError, match="1 usable word"):
        load_lexicon(ModelConfig.model_validate(cut))
    unfit.write_text("zebra\n", encoding="utf-8")
    steps: list[str] = []
    load_lexicon(ModelConfig.model_validate(cut), lambda step, _: steps.append(step))
    assert any("none of its 1 words" in step for step in steps)
