"""Manifests that somebody changed and sealed again: each ends in an error, and names no file elsewhere."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError
from dptext_spark.importance.idf import Frequencies
from dptext_spark.importance.selection import Importance, Level
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.model import artifact
from dptext_spark.model.artifact import MANIFEST, open_model, save_model
from dptext_spark.model.budget import with_importance
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS
from dptext_spark.text.policy import Policy
from tests.core.names import names

SECONDS = 10  # that a pipe may take
WORDS = [*names(590), *(f"{name}{'x' * 14}" for name in names(10))]
TEXTS = pa.array([" ".join(WORDS[:300]), "the unheardof " + " ".join(WORDS[300:]), "a" * 40 + " 12"])


def build(case: str) -> Privatizer:
    """Compile a small model; over so many words laws over the whole lexicon have a tail."""
    vectors = np.random.default_rng(5).normal(size=(len(WORDS), 4)).astype(np.float32)
    lexicon = Lexicon(Vocabulary.of(WORDS), vectors)
    if case == "levels":
        custext = MECHANISMS["custext"]
        plain = Privatizer(
            lexicon, custext(epsilon=1.0, k=4).compile(lexicon), Policy(identifiers=NO_IDENTIFIERS)
        )
        frequencies = Frequencies.of(plain.engine, TEXTS)
        further = (custext(epsilon=4.0, k=4).compile(lexicon),)
        return with_importance(plain, Importance(levels=(Level(30), Level(None, 4.0))), further, frequencies)
    return Privatizer(
        lexicon, MECHANISMS[case](epsilon=1.0).compile(lexicon), Policy(identifiers=NO_IDENTIFIERS)
    )


def seal(folder: Path, **changes: Any) -> None:
    """Change a manifest, and seal it again as its writer would have."""
    manifest = json.loads((folder / MANIFEST).read_text()) | changes
    manifest["seal"] = artifact._seal(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(build("custext"), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/etc/passwd",
        "words/../../outside",
        "words",
        "words.cells\0",
        "WORDS.cells",
        "",
        3,
        None,
    ],
)
def test_a_manifest_names_no_file_elsewhere(folder: Path, name: Any) -> None:
    np.save(folder.parent / "outside.npy", np.zeros(3))
    named = json.loads((folder / MANIFEST).read_text())["arrays"]
    seal(folder, arrays=[*named, name])
    with pytest.raises(DataError, match="names arrays that no model has"):
        open_model(folder)


@pytest.mark.parametrize("file", ["words.cells.npy", MANIFEST])
def test_no_link_leads_out_of_the_folder(folder: Path, file: str) -> None:
    elsewhere = folder.parent / "elsewhere"
    shutil.move(folder / file, elsewhere)
    (folder / file).symlink_to(elsewhere)
    with pytest.raises(DataError, match=file.removesuffix(".npy")):
        open_model(folder)
    shutil.move(elsewhere, folder / "inside")
    (folder / file).unlink()
    (folder / file).symlink_to("inside")
    open_model(folder)


@pytest.mark.parametrize("file", ["words.cells.npy", MANIFEST])
def test_a_pipe_is_not_waited_for(folder: Path, file: str) -> None:
    (folder / file).unlink()
    os.mkfifo(folder / file)
    signal.alarm(SECONDS)
    with pytest.raises(DataError, match=file.removesuffix(".npy")):
        open_model(folder)
    signal.alarm(0)


@pytest.mark.parametrize("content", ["[" * 200_000, '{"a":' * 200_000, " " * (artifact.MOST_BYTES + 1)])
def test_a_manifest_that_is_no_manifest(folder: Path, content: str) -> None:
    (folder / MANIFEST).write_text(content)
    with pytest.raises(DataError, match="no readable manifest"):
        open_model(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, None)
            for name in ("sampler", "spec", "policy", "guarantee", "summary", "arrays", "fingerprint")
        ),
        *(
            (name, [1])
            for name in ("sampler", "spec", "policy", "consistency", "guarantee", "summary", "certificate")
        ),
        *(("importance", value) for value in ({}, {"levels": 3, "selection": {}, "bound": {}}, [], "x")),
        ("sampler", "Path"),
        ("policy", {"oov": "shout"}),
        ("policy", {"nothing": 1}),
        ("consistency", "never"),
        ("guarantee", {"kind": "epsilon_dp"}),
        ("guarantee", {"kind": "epsilon_dp", "epsilon": "1"}),
        ("guarantee", {"kind": "epsilon_dp", "epsilon": -1.0}),
        ("guarantee", {"kind": "none", "epsilon": 1.0}),
        ("private", True),
    ],
)
def test_a_manifest_of_other_values(folder: Path, name: str, value: Any) -> None:
    seal(folder, **{name: value})
    with pytest.raises(DataError, match="artifact"):
        open_model(folder)


def test_what_chooses_words_is_what_the_fingerprint_says(tmp_path: Path) -> None:
    save_model(build("levels"), tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / MANIFEST).read_text())
    manifest["importance"]["selection"]["direction"] = "bottom"
    seal(tmp_path / "model", importance=manifest["importance"])
    with pytest.raises(DataError, match="chooses words in another way"):
        open_model(tmp_path / "model")
