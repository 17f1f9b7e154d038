"""Artifacts: what is opened is what was saved, whole, memory-mapped, and unchanged."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.levels import Importance, Level
from dptext_spark.importance.providers import Frequencies
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import CusText
from dptext_spark.model import artifact
from dptext_spark.model.artifact import (
    MANIFEST,
    certificate_of,
    keep_certificate,
    open_model,
    read_manifest,
    save_model,
    seal_of,
)
from dptext_spark.model.certificate import Certificate, LossFigure
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import with_importance
from dptext_spark.randomness import RunKey
from dptext_spark.text.policy import Policy
from tests.core.text.samples import CORNERS, WORDS, privatizer

SECONDS = 10  # that a pipe may take
SPEC = {"mechanism": {"name": "custext", "epsilon": 1.0, "k": 5}}
TEXTS = pa.array([" ".join(CORNERS), None, " ".join(WORDS), "The cat, 44 frobs", ""])


def make(policy: Policy = Policy(), consistency: Any = "token", **parameters: Any) -> Privatizer:  # noqa: B008
    vectors = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32)
    lexicon = Lexicon(Vocabulary.of(list(WORDS)), vectors)
    return Privatizer(lexicon, CusText(**({"k": 5} | parameters)).compile(lexicon), policy, consistency)


def output(made: Privatizer) -> tuple[list[str | None], list[list[int]]]:
    ids = pa.array(range(len(TEXTS)))
    out, counters = made.privatize(TEXTS, column="c", row_ids=ids, key=RunKey.insecure(1), run_id="r")
    return out.to_pylist(), counters.rows.tolist()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_model(make(), tmp_path / "model", spec=SPEC)
    return tmp_path / "model"


def test_a_seal_tells_apart_what_a_fingerprint_does_not(tmp_path: Path) -> None:
    """A later version may promise the same law in other words; it must not stumble over what an earlier one left."""
    made = make()
    sampler = replace(made.sampler, guarantee=replace(made.sampler.guarantee, sentence="In other words."))
    said = replace(made, sampler=sampler)
    assert said.fingerprint == made.fingerprint
    assert seal_of(said) != seal_of(made)
    save_model(made, tmp_path / "model")
    assert read_manifest(tmp_path / "model").seal == seal_of(made)


@pytest.mark.parametrize("consistency", ["token", "record", "dataset"])
@pytest.mark.parametrize(
    "policy",
    [
        Policy(),
        Policy("draw", oov="draw", numbers="mask", case="lower", gaps="normalise", tokenizer="whitespace"),
        Policy(stop_word_list=("cat", "o\u2019clock", "THE")),
    ],
    ids=["default", "other", "listed"],
)
def test_what_is_opened_is_what_was_saved(tmp_path: Path, policy: Policy, consistency: str) -> None:
    made, folder = make(policy, consistency, epsilon=2.0), tmp_path / "deep" / "model"
    fingerprint = save_model(made, folder, spec=SPEC)
    opened = open_model(folder)
    assert opened.fingerprint == made.fingerprint == fingerprint
    assert output(opened) == output(made)
    assert (opened.policy, opened.consistency) == (policy, consistency)
    assert opened.guarantee() == made.guarantee()
    assert opened.sampler.summary == made.sampler.summary
    assert opened.vocabulary.strings().to_pylist() == list(WORDS)
    for word in range(len(WORDS)):
        assert opened.sampler.law(word).weight.tolist() == made.sampler.law(word).weight.tolist()
    assert read_manifest(folder).spec == SPEC


def test_arrays_are_memory_mapped_and_read_only(folder: Path) -> None:
    opened = open_model(folder).arrays()
    for name, array in opened.items():
        assert isinstance(array, np.memmap), name
        assert not array.flags.writeable, name
    assert {f"{name}.npy" for name in opened} | {"manifest.json"} == {p.name for p in folder.iterdir()}


def test_nothing_private_is_in_it(folder: Path) -> None:
    made = open_model(folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    key = RunKey.insecure(7)
    made.privatize(pa.array(["markerword cat"]), column="c", row_ids=pa.array(["markerid"]), key=key)
    after = {p.name: p.read_bytes() for p in folder.iterdir()}
    assert before == after
    assert not any(key.secret in content or b"marker" in content for content in after.values())


def test_any_flipped_byte_is_found(folder: Path) -> None:
    """In every file, at the start, in the middle and at the end."""
    for file in sorted(folder.iterdir()):
        content = file.read_bytes()
        for place in (0, len(content) // 2, len(content) - 1):
            changed = bytearray(content)
            changed[place] ^= 1
            file.write_bytes(bytes(changed))
            with pytest.raises(DataError, match="artifact"):
                open_model(folder)
        file.write_bytes(content)
    open_model(folder)


def test_a_damaged_array(folder: Path) -> None:
    """Missing, empty, cut off, of another type, and a folder."""
    file = folder / "words.cells.npy"
    content = file.read_bytes()
    for damaged in (None, b"", content[:-9], b"not an array" + content, "a folder"):
        file.unlink(missing_ok=True)
        if isinstance(damaged, bytes):
            file.write_bytes(damaged)
        elif damaged is not None:
            file.mkdir()
        with pytest.raises(DataError, match=r"words\.cells\.npy"):
            open_model(folder)


DEEP = ("[" * 200_000, '{"a":' * 200_000, " " * (artifact.MOST_BYTES + 1))


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", "3", '{"schema": 2}', '{"schema": "1"}', '{"schema": 1}', "\xff", *DEEP]
)
def test_a_foreign_folder(folder: Path, content: str | None) -> None:
    (folder / "manifest.json").unlink()
    if content is not None:
        (folder / "manifest.json").write_text(content, encoding="latin-1")
    for read in (open_model, read_manifest):
        with pytest.raises(DataError, match="artifact"):
            read(folder)
    with pytest.raises(DataError, match="no readable"):
        keep_certificate(folder / "none", TestCertificate.FOUND)


class TestCertificate:
    FOUND = Certificate(
        "confirmed", Guarantee("epsilon_dp", 1.0), LossFigure(0.7, 0.7, 9, 9, (1, 2), "a test"), "Confirmed."
    )

    def test_it_is_kept_and_replaced_and_changes_nothing_else(self, folder: Path) -> None:
        before = read_manifest(folder)
        assert certificate_of(folder) is None
        assert "certificate" not in json.loads((folder / "manifest.json").read_text())
        names = {p.name for p in folder.iterdir()}
        for found in (self.FOUND, replace(self.FOUND, verdict="refuted")):
            keep_certificate(folder, replace(found, seconds=1.5))
            assert certificate_of(folder) == found
        after = read_manifest(folder)
        assert after.seal != before.seal
        assert {p.name for p in folder.iterdir()} == names
        assert replace(after, seal=before.seal, certificate=None) == before
        assert output(open_model(folder)) == output(make())

    @pytest.mark.parametrize(
        ("before", "after"), [("confirmed", "Confirmed"), ('"epsilon": 1.0', '"epsilon": 0.01')]
    )
    def test_neither_it_nor_the_guarantee_can_be_edited(self, folder: Path, before: str, after: str) -> None:
        """A guarantee that does not hold is never printed, not even by a worker that hashes nothing else."""
        keep_certificate(folder, self.FOUND)
        text = (folder / MANIFEST).read_text()
        assert before in text
        (folder / MANIFEST).write_text(text.replace(before, after))
        for read in (open_model, certificate_of):
            with pytest.raises(DataError, match="was changed"):
                read(folder)

    def test_what_is_infinite_is_null_and_comes_back(self, folder: Path) -> None:
        figure = LossFigure(math.inf, math.inf, 9, 9, None, "a test", others=math.inf)
        keep_certificate(folder, replace(self.FOUND, loss=figure))
        written = json.loads((folder / "manifest.json").read_text())["certificate"]
        assert [written["loss"][name] for name in ("value", "attained", "others")] == [None, None, None]
        assert certificate_of(folder).loss == replace(figure, others=None)
        assert certificate_of(folder).as_dict() == written

    def test_what_is_no_number_is_not_kept(self, folder: Path) -> None:
        loss = LossFigure(math.nan, 0.7, 9, 9, None, "a test")
        with pytest.raises(ValueError, match="JSON"):
            keep_certificate(folder, replace(self.FOUND, loss=loss))
        assert certificate_of(folder) is None


class TestSave:
    def test_the_same_again_changes_nothing(self, folder: Path) -> None:
        keep_certificate(folder, TestCertificate.FOUND)
        before = {p: p.stat().st_mtime_ns for p in folder.iterdir()}
        assert save_model(make(), folder, spec=SPEC) == make().fingerprint
        assert before == {p: p.stat().st_mtime_ns for p in folder.iterdir()}

    @pytest.mark.parametrize(
        ("other", "spec"),
        [
            ({"epsilon": 2.0}, SPEC),
            ({"policy": Policy(oov="keep")}, SPEC),
            ({"consistency": "record"}, SPEC),
            ({}, {"mechanism": {"name": "custext", "epsilon": 3.0}}),
        ],
    )
    def test_another_artifact_is_not_replaced(self, folder: Path, other: Any, spec: Any) -> None:
        with pytest.raises(SettingsError, match="another artifact"):
            save_model(make(**other), folder, spec=spec)
        assert output(open_model(folder)) == output(make())

    def test_the_same_law_with_another_guarantee_is_another_artifact(self, tmp_path: Path) -> None:
        """Where all vectors are equal every ε gives the uniform law, and so the same arrays."""
        lexicon = Lexicon(Vocabulary.of(["a", "b", "c"]), np.ones((3, 2), np.float32))
        first, second = (Privatizer(lexicon, CusText(e, 3).compile(lexicon)) for e in (1.0, 2.0))
        assert first.fingerprint == second.fingerprint
        save_model(first, tmp_path / "model")
        with pytest.raises(SettingsError, match="another artifact"):
            save_model(second, tmp_path / "model")

    @pytest.mark.parametrize("fails_at", [0, 3, "manifest"])
    def test_a_failing_write_leaves_nothing(self, tmp_path: Path, monkeypatch: Any, fails_at: Any) -> None:
        calls = []

        def full(*args: Any, **kwargs: Any) -> None:
            calls.append(args)
            if len(calls) - 1 == fails_at:
                raise OSError(28, "No space left on device")
            real(*args, **kwargs)

        real = np.save
        monkeypatch.setattr(artifact.np, "save", full)
        if fails_at == "manifest":
            monkeypatch.setattr(
                artifact, "write_atomically", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
            )
        with pytest.raises(OSError, match=r"28|full"):
            save_model(make(), tmp_path / "model")
        assert list(tmp_path.iterdir()) == []
        monkeypatch.undo()
        (tmp_path / "model").mkdir()  # an empty folder is filled
        save_model(make(), tmp_path / "model")
        open_model(tmp_path / "model")

    def test_a_sampler_that_no_mechanism_makes_cannot_be_stored(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match="Step"):
            save_model(privatizer(), tmp_path / "model")
        assert list(tmp_path.iterdir()) == []


class TestImportance:
    """A model that chooses its words is opened as it was saved: provider, levels, their laws and guarantees."""

    def made(self, consistency: str = "token", **selection: Any) -> Privatizer:
        plain = make(consistency=consistency, epsilon=1.0)
        chosen = Importance(**({"levels": (Level(30), Level(None, 4.0))} | selection))
        further = tuple(make(epsilon=4.0).sampler for _ in chosen.cumulative[1:])
        frequencies = Frequencies.of(plain.engine, pa.array(["cat dog", "cat", "a cat"]))
        return with_importance(plain, chosen, further, frequencies)

    @pytest.mark.parametrize("consistency", ["token", "record"])
    def test_it_draws_the_same_after_it_was_opened(self, tmp_path: Path, consistency: str) -> None:
        made = self.made(consistency)
        save_model(made, tmp_path / "model", spec=SPEC)
        again = open_model(tmp_path / "model")
        assert output(again) == output(made) != output(make(consistency=consistency))
        assert (again.fingerprint, again.guarantee()) == (made.fingerprint, made.guarantee())
        assert again.units == made.units
        assert again.units.multiples == (1, 4)
        assert again.selector.selection == made.selector.selection
        assert again.selector.bound() == made.selector.bound()

    def test_what_chooses_words_is_what_the_fingerprint_says(self, tmp_path: Path) -> None:
        save_model(self.made(), tmp_path / "model")
        importance = read_manifest(tmp_path / "model").as_dict()["importance"]
        importance["selection"]["direction"] = "bottom"  # type: ignore[index, call-overload]
        seal(tmp_path / "model", importance=importance)
        with pytest.raises(DataError, match="chooses words in another way"):
            open_model(tmp_path / "model")

    def test_no_word_and_no_count_of_the_corpus_is_in_the_manifest(self, tmp_path: Path) -> None:
        save_model(self.made(), tmp_path / "model", spec=SPEC)
        manifest = (tmp_path / "model" / artifact.MANIFEST).read_text()
        assert "zebra" not in manifest
        assert "importance" not in artifact.Manifest.of_privatizer(make()).as_dict()

    def test_counts_of_private_texts_are_marked_and_kept_for_their_owner(self, tmp_path: Path) -> None:
        (tmp_path / "corpus.txt").write_text("cat dog\ncat\n")
        public = Importance(percent=20, corpus=str(tmp_path / "corpus.txt"))
        save_model(with_importance(make(), public), tmp_path / "public", spec=SPEC)
        assert read_manifest(tmp_path / "public").private is False
        before = os.umask(0o022)
        try:
            save_model(self.made(), tmp_path / "private", spec=SPEC)
            keep_certificate(tmp_path / "private", TestCertificate.FOUND)
            save_model(with_importance(make(), Importance(percent=20)), tmp_path / "uncounted", spec=SPEC)
        finally:
            os.umask(before)
        assert read_manifest(tmp_path / "private").private is True
        assert (tmp_path / "private").stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in (tmp_path / "private").iterdir()} == {0o600}
        assert read_manifest(tmp_path / "uncounted").private is False
        assert not open_model(tmp_path / "uncounted").chooses
        assert {file.stat().st_mode & 0o777 for file in (tmp_path / "uncounted").iterdir()} == {0o644}

    def test_private_counts_that_others_can_read_are_not_opened(self, tmp_path: Path) -> None:
        save_model(self.made(), tmp_path / "model", spec=SPEC)
        (tmp_path / "model" / "importance.values.npy").chmod(0o644)
        with pytest.raises(DataError, match=r"counts of private texts.*other users can read.*chmod -R go= "):
            open_model(tmp_path / "model")


# Manifests that somebody changed and sealed again: each ends in an error, and names no file elsewhere.
def seal(folder: Path, **changes: Any) -> None:
    """Change a manifest, and seal it again as its writer would have."""
    manifest = json.loads((folder / MANIFEST).read_text()) | changes
    manifest["seal"] = artifact._seal(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


PATHS = ("../outside", "/etc/passwd", "words/../../outside", "words", "words.cells\0", "WORDS.cells", "")


@pytest.mark.parametrize("name", [*PATHS, 3, None])
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


PARTS = ("sampler", "spec", "policy", "guarantee", "summary")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, None) for name in (*PARTS, "arrays", "fingerprint")),
        *((name, [1]) for name in (*PARTS, "consistency", "certificate")),
        *(("importance", value) for value in ({}, {"levels": 3, "selection": {}, "bound": {}}, [], "x")),
        ("sampler", "Path"),
        *(("policy", value) for value in ({"oov": "shout"}, {"nothing": 1})),
        ("consistency", "never"),
        *(
            ("guarantee", {"kind": "epsilon_dp", **more})
            for more in ({}, {"epsilon": "1"}, {"epsilon": -1.0})
        ),
        ("guarantee", {"kind": "none", "epsilon": 1.0}),
        ("private", True),
    ],
)
def test_a_manifest_of_other_values(folder: Path, name: str, value: Any) -> None:
    seal(folder, **{name: value})
    with pytest.raises(DataError, match="artifact"):
        open_model(folder)
