"""Models that somebody changed and sealed again: each ends in an error or in words of its lexicon, never in a crash or a loop.

A child process doctors, opens and draws, so that a crash is seen; a clock ends one that hangs. For a longer search by hand:
DPTEXT_HYPOTHESIS=search.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError, DPTextError
from dptext_spark.importance.idf import Frequencies
from dptext_spark.importance.selection import Importance, Level
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.model import artifact
from dptext_spark.model.artifact import MANIFEST, open_model, save_model
from dptext_spark.model.importance import with_importance
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.text import word_table
from dptext_spark.text.identifiers.types import NO_IDENTIFIERS
from dptext_spark.text.policy import Policy
from tests.core.mechanisms.test_contract import MORE, PARAMETERS
from tests.core.names import names

SEARCH = os.environ.get("DPTEXT_HYPOTHESIS") == "search"
WAYS = 7  # of doctoring an array, of some fifty
SECONDS = 10  # that one doctored model may take
SILENCE = 120.0  # seconds after which a child that says nothing is ended: the first word takes its imports, and compiling
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
    name, _, search = case.partition("-")
    more = {"search": search} if search else {}
    policy = Policy(identifiers=NO_IDENTIFIERS, oov="draw")
    return Privatizer(lexicon, MECHANISMS[name](**(PARAMETERS[name] | more)).compile(lexicon), policy)


def doctored(array: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield an array in ways that no compiler wrote it."""
    if array.dtype.kind in "iu":
        info = np.iinfo(array.dtype)
        numbers = [info.min, info.max, 1, len(WORDS), info.max // 2, len(WORDS) - 1]
        extremes: list[Any] = [one for one in numbers if one <= info.max]
    else:
        extremes = [np.nan, np.inf, -1.0, 0.0, 1e30, -np.inf]
    for value in extremes:
        yield np.full_like(array, value)
        changed = array.copy().reshape(-1)
        if changed.size:
            for place in {0, changed.size - 1, *rng.integers(0, changed.size, 20 if SEARCH else 1).tolist()}:
                one = changed.copy()
                one[place] = value
                yield one.reshape(array.shape)
    flat = array.reshape(-1)
    yield flat[::-1].copy().reshape(array.shape)
    yield rng.permutation(flat).reshape(array.shape)
    yield np.sort(flat).reshape(array.shape)
    yield np.zeros_like(array)
    for _ in range(60 if SEARCH else 2):
        bits = array.copy()
        view = bits.reshape(-1).view(np.uint8)
        if view.size:
            at = rng.integers(0, view.size, rng.integers(1, 9))
            view[at] = rng.integers(0, 256, len(at), dtype=np.uint8)
        yield bits
    yield array[:-1]
    yield array[:0]
    yield np.concatenate([array, array])
    yield np.asfortranarray(array) if array.ndim > 1 else array[:, None]
    yield array.reshape(-1)
    yield array.reshape(1, *array.shape)
    yield array.astype(np.float64 if array.dtype != np.float64 else np.float32)
    yield array.astype(np.int16)
    yield array.astype(array.dtype.newbyteorder())
    yield np.array(array.flat[0] if array.size else 0)


def seal(folder: Path, **changes: Any) -> None:
    """Change a manifest, and seal it again as its writer would have."""
    manifest = json.loads((folder / MANIFEST).read_text()) | changes
    manifest["seal"] = artifact._seal(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


def outcome(folder: Path) -> str:
    """Open a model and draw with it."""
    try:
        model = open_model(folder, verify=False)
        ids = pa.array(range(len(TEXTS)))
        out, _ = model.privatize(TEXTS, column="c", row_ids=ids, key=RunKey.insecure(1))
        out.validate(full=True)
        for sampler in model.samplers:
            law = sampler.law(3)
            assert law is None or (law.ids.min() >= 0 and law.ids.max() < len(WORDS))
    except DPTextError:
        return "refused"
    return "drawn"


def attack(case: str, folder: Path, progress: Any) -> None:
    """Try every doctored array of a model; tell which one is tried before it is."""
    rng = np.random.default_rng(7)
    save_model(build(case), folder)
    assert outcome(folder) == "drawn"
    for name in json.loads((folder / MANIFEST).read_text())["arrays"]:
        file = folder / f"{name}.npy"
        array = np.load(file)
        if name.startswith("words.") and case != "custext" and not SEARCH:
            continue  # the same look-up table in all
        ways = list(enumerate(doctored(array, rng)))
        for number, changed in ways if SEARCH else [ways[i] for i in rng.permutation(len(ways))[:WAYS]]:
            file.unlink()
            np.save(file, changed)
            progress.send((name, number))
            signal.alarm(SECONDS)
            ended = outcome(folder)
            signal.alarm(0)
            progress.send(ended)
        file.unlink()
        np.save(file, array)
    progress.send("done")


def outcomes(case: str, folder: Path) -> list[str]:
    """Attack in a child process, and fail where it ends before it is done, or says nothing for long.

    The child is a new interpreter: one that is forked beside threads of libraries may wait for a lock that nobody holds.
    """
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe(duplex=False)
    child = spawn.Process(target=attack, args=(case, folder, theirs))
    child.start()
    theirs.close()
    said: list[Any] = []
    with contextlib.suppress(EOFError):
        while (not said or said[-1] != "done") and ours.poll(SILENCE):
            said.append(ours.recv())
    if not said or said[-1] != "done":
        child.terminate()
    child.join()
    assert (child.exitcode, said[-1]) == (0, "done")
    return [one for one in said if one in ("refused", "drawn")]


# One of each kind of sampler; the others differ in numbers alone.
FEW = ("custext", "santext", "diffractor", "truncated_gumbel", "mvc-ivf", "vickrey-ivf", "levels")
ALL = (*MECHANISMS, *(f"{name}-{more['search']}" for name, more in MORE), "levels")


@pytest.mark.parametrize("case", ALL if SEARCH else FEW)
def test_a_doctored_array_ends_in_an_error(case: str, tmp_path: Path) -> None:
    found = outcomes(case, tmp_path / "model")
    assert found.count("refused") >= 5


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
        open_model(folder, verify=False)


@pytest.mark.parametrize("file", ["words.cells.npy", MANIFEST])
def test_no_link_leads_out_of_the_folder(folder: Path, file: str) -> None:
    elsewhere = folder.parent / "elsewhere"
    shutil.move(folder / file, elsewhere)
    (folder / file).symlink_to(elsewhere)
    with pytest.raises(DataError, match=file.removesuffix(".npy")):
        open_model(folder, verify=False)
    shutil.move(elsewhere, folder / "inside")
    (folder / file).unlink()
    (folder / file).symlink_to("inside")
    open_model(folder, verify=False)


@pytest.mark.parametrize("file", ["words.cells.npy", MANIFEST])
def test_a_pipe_is_not_waited_for(folder: Path, file: str) -> None:
    (folder / file).unlink()
    os.mkfifo(folder / file)
    signal.alarm(SECONDS)
    with pytest.raises(DataError, match=file.removesuffix(".npy")):
        open_model(folder, verify=False)
    signal.alarm(0)


@pytest.mark.parametrize("content", ["[" * 200_000, '{"a":' * 200_000, " " * (artifact.MOST_BYTES + 1)])
def test_a_manifest_that_is_no_manifest(folder: Path, content: str) -> None:
    (folder / MANIFEST).write_text(content)
    with pytest.raises(DataError, match="no readable manifest"):
        open_model(folder, verify=False)


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
        open_model(folder, verify=False)


def test_words_that_are_no_text(folder: Path) -> None:
    """Broken UTF-8 would come out, and end in an error far away."""
    table = {name: np.load(folder / f"words.{name}.npy") for name in ("word_bytes", "offsets", "flags")}
    table["word_bytes"][0] = 0xFF
    cells = np.load(folder / "words.cells.npy")
    shift = 64 - (len(cells).bit_length() - 1)
    cells[:], slots = 0, np.full_like(np.load(folder / "words.slots.npy"), -1)
    word_table._fill(table["word_bytes"], table["offsets"], table["flags"], cells, shift, slots)
    outputs = word_table._output_cells(table["word_bytes"], table["offsets"], len(WORDS))
    for name, array in {**table, "cells": cells, "slots": slots, "outputs": outputs}.items():
        np.save(folder / f"words.{name}.npy", array)
    with pytest.raises(DataError, match="UTF-8"):
        open_model(folder, verify=False)


def test_what_chooses_words_is_what_the_fingerprint_says(tmp_path: Path) -> None:
    save_model(build("levels"), tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / MANIFEST).read_text())
    manifest["importance"]["selection"]["direction"] = "bottom"
    seal(tmp_path / "model", importance=manifest["importance"])
    with pytest.raises(DataError, match="chooses words in another way"):
        open_model(tmp_path / "model")
