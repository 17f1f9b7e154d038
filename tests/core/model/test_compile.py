"""From settings to a compiled model: found, compiled once, refused where it was made from something else."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.config.load import parse_model_config
from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.importance.providers import Frequencies
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.model import artifact, certificate, compile
from dptext_spark.model.compile import compile_to, load_lexicon, prepare
from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer, fingerprint_of
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.jit import code_cache
from dptext_spark.text.policy import Policy

WORDS = [a + b + c for a in "bdfg" for b in "aeiou" for c in "lmnr"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("NUMBA_CACHE_DIR", code_cache())  # processes that a test starts need not compile loops
    monkeypatch.setenv("DPTEXT_CACHE", str(folder))
    return folder


def write_vectors(file: Path, words: list[str], dimensions: int) -> Path:
    numbers = np.random.default_rng(dimensions).normal(size=(len(words), dimensions))
    lines = (
        f"{word} {' '.join(f'{x:.6f}' for x in row)}\n" for word, row in zip(words, numbers, strict=True)
    )
    file.write_text("".join(lines), encoding="utf-8")
    return file


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    """A file of word vectors."""
    return write_vectors(tmp_path / "vectors.txt", WORDS, 8)


def settings(source: Path, **more: object) -> ModelConfig:
    return parse_model_config({"lexicon": {"source": str(source)}, "mechanism": {"k": 5}, **more})


def named(folder: Path, **more: Any) -> ModelConfig:
    """Settings that name an artifact."""
    run = {"artifact": str(folder), **more.pop("run", {})}
    return parse_model_config({"mechanism": {"k": 5}, "run": run, **more})


def stepped(config: ModelConfig) -> tuple[Privatizer, Path, list[str]]:
    """A model, its folder, and the steps to it."""
    steps: list[str] = []
    return (*prepare(config, lambda step, share: steps.append(step)), steps)


def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count how often a mechanism is compiled."""
    seen: list[str] = []
    inner = compile._compile
    monkeypatch.setattr(compile, "_compile", lambda *given: seen.append("compiled") or inner(*given))
    return seen


def test_a_model_is_compiled_once_and_then_found(vectors: Path, cache: Path, monkeypatch: Any) -> None:
    seen, steps = compilations(monkeypatch), []
    first, folder = prepare(settings(vectors), lambda step, share: steps.append((step, share)))
    assert {("reading the lexicon", 1.0), (f"compiling custext for {len(WORDS)} words", None)} <= set(steps)
    for note in (cache / "lexicons").iterdir():  # a note that is damaged costs a reading
        note.write_text("{")
    second, again = prepare(settings(vectors))
    assert seen == ["compiled"]
    assert folder == again
    assert folder.is_relative_to(cache / "artifacts")
    assert first.fingerprint == second.fingerprint
    texts, key = pa.array([" ".join(WORDS)] * 3), RunKey.insecure(1)
    drawn = [p.privatize(texts, column="c", row_ids=pa.array([1, 2, 3]), key=key)[0] for p in (first, second)]
    assert drawn[0].equals(drawn[1])
    assert not drawn[0].equals(texts)


def test_the_lexicon_is_not_read_again_to_be_recognised(vectors: Path, monkeypatch: Any) -> None:
    prepare(settings(vectors))
    monkeypatch.setattr(Lexicon, "read", lambda *_, **__: pytest.fail("the file was read"))
    prepare(settings(vectors))
    with pytest.raises(pytest.fail.Exception, match="the file was read"):
        prepare(settings(vectors, mechanism={"k": 6}))


def test_other_settings_or_another_file_give_another_model(vectors: Path, tmp_path: Path) -> None:
    more = ({}, {"mechanism": {"k": 6}}, {"mechanism": {"k": 5, "epsilon": 2}}, {"policy": {"oov": "draw"}},
            {"policy": {"stop_word_list": ["bal"]}}, {"consistency": "record"})  # fmt: skip
    folders = [prepare(settings(vectors, **one))[1] for one in more]
    vectors.write_text(vectors.read_text().replace("1", "2"), encoding="utf-8")
    folders.append(prepare(settings(vectors))[1])
    for words in (WORDS[:4], WORDS[1:5]):  # an edited file of words
        (tmp_path / "sensitive.txt").write_text("\n".join(words), encoding="utf-8")
        mechanism = {"name": "santext", "sensitive": {"file": str(tmp_path / "sensitive.txt")}}
        folders.append(prepare(settings(vectors, mechanism=mechanism))[1])
    assert len(set(folders)) == len(folders)


def test_a_source_is_its_content_and_not_its_name(vectors: Path, tmp_path: Path) -> None:
    Lexicon.read(vectors).save(tmp_path / "lexicon")
    (tmp_path / "copy.txt").write_bytes(vectors.read_bytes())
    folders = {prepare(settings(one))[1] for one in (vectors, tmp_path / "copy.txt", tmp_path / "lexicon")}
    assert len(folders) == 1


def test_the_tokenizer_of_the_policy_reads_the_file_which_limits_cut(vectors: Path, tmp_path: Path) -> None:
    vectors.write_text(vectors.read_text() + "b.2.3 " + " ".join(["1"] * 8) + "\n", encoding="utf-8")
    plain = load_lexicon(settings(vectors))
    spaced = load_lexicon(settings(vectors, policy={"tokenizer": "whitespace"}))
    assert (len(plain), len(spaced)) == (len(WORDS), len(WORDS) + 1)
    (tmp_path / "words.txt").write_text("\n".join(WORDS[:30]), encoding="utf-8")
    source = {"source": str(vectors), "limit": 20, "vocabulary": str(tmp_path / "words.txt")}
    assert len(load_lexicon(parse_model_config({"lexicon": source}))) == 20


@pytest.mark.parametrize("word", ["30", "9/11", "u.s", "U2"])
def test_a_saved_lexicon_of_another_tokenizer_is_refused(tmp_path: Path, cache: Path, word: str) -> None:
    """Drawn, such a word would be read as a number or as two words: the output would not be the text with words replaced."""
    vectors = np.eye(3, dtype=np.float32)
    folder = tmp_path / "spaced"
    Lexicon(Vocabulary.of(["ten", word, "more"]), vectors).save(folder)
    spaced = {"policy": {"tokenizer": "whitespace"}, "mechanism": {"k": 2}}
    if word == word.lower():
        assert len(load_lexicon(settings(folder, **spaced))) == 3
    with pytest.raises(DataError, match=f"^lexicon.source: policy.tokenizer 'words' .* the first '{word}'"):
        prepare(settings(folder, mechanism={"k": 2}))
    assert not (cache / "artifacts").exists()


LEVELS = [{"share": 20}, {"mechanism": {"name": "tem", "epsilon": 1.0}}]
TWO = {"lexicon": {"source": "vectors.txt", "more": ["none.txt"]}, "mechanism": {"name": "diffractor"}}


@pytest.mark.parametrize(
    ("more", "kind", "said"),
    [
        ({"lexicon": {"source": "none.txt"}}, DataError, r"lexicon.source: .*none.txt' does not exist"),
        (TWO, DataError, r"lexicon.more\[0\].source: .*none.txt' does not exist"),
        ({"mechanism": {"k": 500}}, SettingsError, "mechanism.k: 500 .* lexicon of 80 "),
        ({"importance": {"provider": "random", "levels": LEVELS}}, SettingsError, "of one kind"),
    ],
)
def test_what_makes_no_model_is_refused_and_leaves_nothing(
    vectors: Path, cache: Path, more: dict[str, Any], kind: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(vectors.parent)
    with pytest.raises(kind, match=said):
        prepare(settings(vectors, **more))
    assert not list((cache / "artifacts").glob("*")), "nothing is left half written"


def test_a_damaged_copy_in_the_cache_is_made_again(vectors: Path) -> None:
    made, folder = prepare(settings(vectors))
    cells = folder / "sampler.cells.npy"
    raw = bytearray(cells.read_bytes())
    raw[-1] ^= 1
    cells.unlink()  # what is mapped elsewhere keeps its bytes
    cells.write_bytes(bytes(raw))
    again, _, steps = stepped(settings(vectors))
    assert "a cached model is damaged, and dptext makes it again" in steps
    assert again.fingerprint == made.fingerprint
    assert cells.read_bytes() != bytes(raw)
    assert [entry.name for entry in folder.parent.iterdir()] == [folder.name]


def test_a_named_artifact_is_opened(vectors: Path, tmp_path: Path) -> None:
    fingerprint = compile_to(settings(vectors, consistency="record"), tmp_path / "model")
    for more in ({}, {"lexicon": {"source": str(vectors)}}):
        _, folder = prepare(named(tmp_path / "model", consistency="record", **more))
        assert (artifact.expected_fingerprint(folder), folder) == (fingerprint, tmp_path / "model")


class TestTheModelThatIsExpected:
    """`run.artifact_fingerprint` names it, and another is refused before an array is read."""

    @pytest.fixture
    def made(self, vectors: Path, tmp_path: Path) -> tuple[Path, str]:
        return tmp_path / "model", compile_to(settings(vectors), tmp_path / "model")

    def test_another_is_refused_unread(self, made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
        folder, fingerprint = made
        assert prepare(named(folder, run={"artifact_fingerprint": fingerprint}))[1] == folder
        monkeypatch.setattr(artifact, "open_model", lambda *_, **__: pytest.fail("an array was read"))
        with pytest.raises(SettingsError, match=f"^run.artifact_fingerprint: 0+ is not .* {fingerprint}"):
            prepare(named(folder, run={"artifact_fingerprint": "0" * 64}))

    @pytest.mark.parametrize("part", ["guarantee", "certificate", "summary", "cells"])
    def test_one_that_was_changed_and_sealed_again_is_another(self, made: Any, part: str) -> None:
        """The digest of the arrays alone would let somebody promise what does not hold."""
        folder, fingerprint = made
        manifest = json.loads((folder / artifact.MANIFEST).read_text())
        if part == "cells":
            cells = np.load(folder / "sampler.cells.npy")
            np.save(folder / "sampler.cells.npy", cells[::-1])
            arrays = {name: np.load(folder / f"{name}.npy") for name in manifest["arrays"]}
            policy = Policy(**manifest["policy"])
            manifest["fingerprint"] = fingerprint_of(arrays, policy, manifest["consistency"])
        elif part == "guarantee":
            manifest["guarantee"]["epsilon"] = 0.01
        elif part == "certificate":
            manifest["certificate"]["verdict"] = "refuted"
        else:
            manifest[part] = {"words": 3}
        manifest["seal"] = artifact._seal(manifest)
        (folder / artifact.MANIFEST).write_text(json.dumps(manifest))
        artifact.open_model(folder)
        with pytest.raises(SettingsError, match=r"run\.artifact_fingerprint"):
            prepare(named(folder, run={"artifact_fingerprint": fingerprint}))

    def test_one_that_was_swapped_after_its_manifest_was_read(self, made: tuple[Path, str]) -> None:
        with pytest.raises(DataError, match="not the model that the driver sent"):
            artifact.open_model(made[0], seal="0" * 64)


SOME = {"importance": {"percent": 50, "provider": "random"}}
BUDGET = {"budget": {"record": 3.0, "delta": 0.01}}


@pytest.mark.long
@pytest.mark.parametrize(
    ("made", "asked", "field"),
    [
        ({}, {"mechanism": {"k": 6}}, "mechanism.k"),
        ({}, {"mechanism": {"k": 5, "epsilon": 2.0}}, "mechanism.epsilon"),
        ({}, {"mechanism": {"k": 5, "fluent": True}}, "mechanism.fluent"),
        ({}, {"policy": {"oov": "keep"}}, "policy.oov"),
        ({}, {"policy": {"stop_word_list": ["a"]}}, "policy.stop_word_list"),
        ({}, {"consistency": "dataset"}, "consistency"),
        ({}, {"lexicon": {"source": "default"}}, "lexicon.source"),
        ({}, SOME, "importance"),
        (SOME, {"importance": None}, "importance"),
        (SOME, {"importance": {"percent": 40, "provider": "random"}}, "importance"),
        ({}, BUDGET, "budget"),
        (BUDGET, {"budget": None}, "budget"),
        (BUDGET, {"budget": {"record": 4.0, "delta": 0.01}}, "budget"),
        (BUDGET, {"budget": {"record": 3.0}}, "budget"),
    ],
)
def test_an_artifact_of_other_settings_is_refused(
    vectors: Path, tmp_path: Path, made: dict[str, object], asked: dict[str, object], field: str
) -> None:
    fingerprint = compile_to(settings(vectors, **made), tmp_path / "model")
    with pytest.raises(SettingsError, match=f"^{field}.* differs from .* of artifact"):
        prepare(named(tmp_path / "model", **asked))
    opened, folder = prepare(named(tmp_path / "model", **made))
    assert artifact.expected_fingerprint(folder) == fingerprint
    assert (opened.selector is not None) == bool(made)


def test_a_list_of_words_that_differs_is_told_without_a_word(vectors: Path, tmp_path: Path) -> None:
    compile_to(settings(vectors, mechanism={"name": "santext", "sensitive": WORDS[:4]}), tmp_path / "model")
    file = tmp_path / "sensitive.txt"
    config = {"mechanism": {"name": "santext", "sensitive": {"file": str(file)}}}
    file.write_text("\n".join(WORDS[:4]), encoding="utf-8")
    prepare(named(tmp_path / "model", **config))
    file.write_text("\n".join(WORDS[1:5]), encoding="utf-8")
    with pytest.raises(SettingsError) as refused:
        prepare(named(tmp_path / "model", **config))
    said = str(refused.value)
    assert said.startswith("mechanism.sensitive: a list of 4 (digest ")
    assert "differs from a list of 4 (" in said
    assert not any(repr(word) in said for word in WORDS)


def test_an_artifact_of_another_engine_is_refused(vectors: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as earlier:
        earlier.setattr("dptext_spark.model.compile.ENGINE_VERSION", "0")
        compile_to(settings(vectors), tmp_path / "model")
        _, old = prepare(settings(vectors))
    # Of settings that differ, too, nothing is said: another engine may not have known them.
    for k in (5, 6):
        with pytest.raises(SettingsError, match=r"^run.artifact: .* was made for engine '0', but this is '"):
            prepare(named(tmp_path / "model", mechanism={"k": k}))
    _, new = prepare(settings(vectors))  # the cache makes such models anew
    made = [artifact.read_manifest(folder).spec["engine"] for folder in (old, new)]
    assert made == ["0", ENGINE_VERSION]
    assert old != new


@pytest.mark.long
def test_an_artifact_of_another_packaged_lexicon_is_refused(tmp_path: Path) -> None:
    compile_to(parse_model_config({}), tmp_path / "model")
    manifest = artifact.read_manifest(tmp_path / "model")
    manifest.spec["lexicon"]["version"] = 1
    manifest.sealed().write(tmp_path / "model")
    run = {"artifact": str(tmp_path / "model")}
    with pytest.raises(SettingsError, match=r"^run.artifact: .* was made with version 1 of the packaged"):
        prepare(parse_model_config({"lexicon": {"source": "default"}, "run": run}))
    prepare(parse_model_config({"run": run}))  # the artifact alone says which words it has
    assert parse_model_config({"run": run}).spec()["lexicon"]["version"] is None


def test_a_model_of_another_schema_version_is_prepared_again(vectors: Path, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as earlier:
        for module in ("errors", "model.artifact", "model.compile"):
            earlier.setattr(f"dptext_spark.{module}.SCHEMA_VERSION", 0)
        compile_to(settings(vectors), tmp_path / "model")
        first, old = prepare(settings(vectors))
    with pytest.raises(DataError, match=r"has schema version 0, but this dptext reads version 1"):
        prepare(named(tmp_path / "model"))
    second, new = prepare(settings(vectors))  # the cache does so by itself
    assert old != new
    assert first.fingerprint == second.fingerprint


def test_an_artifact_is_not_written_over_something_else(vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "diary.txt").write_text("mine")
    for taken in (tmp_path / "model", tmp_path / "model" / "diary.txt"):
        with pytest.raises(SettingsError, match=r"artifact: .* exists"):
            compile_to(settings(vectors), taken)
    assert (tmp_path / "model" / "diary.txt").read_text() == "mine"
    with pytest.raises(DataError, match="cannot be written"):
        compile_to(settings(vectors), tmp_path / "model" / "diary.txt" / "model")
    assert compile_to(settings(vectors), tmp_path / "new") == compile_to(settings(vectors), tmp_path / "new")


def _prepare_in_a_process(source: Path, barrier: object, results: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    privatizer, folder = prepare(settings(source))
    results.put((privatizer.fingerprint, str(folder)))  # type: ignore[attr-defined]


@pytest.mark.long
def test_two_processes_may_compile_at_once(vectors: Path) -> None:
    context = multiprocessing.get_context("spawn")
    given = (vectors, context.Barrier(2), results := context.Queue())
    workers = [context.Process(target=_prepare_in_a_process, args=given) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = {results.get(timeout=120) for _ in workers}
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    assert len(found) == 1


@pytest.mark.parametrize(
    "text",
    ["", "abc", "0" * 63, "G" * 64, 3, "0" * 64 + "+", "0" * 64 + "+" + "0" * 63, "+" + "0" * 64, "0" * 128],
)
def test_what_is_no_fingerprint(text: object) -> None:
    with pytest.raises(SettingsError, match=r"run\.artifact_fingerprint: .* is not valid"):
        parse_model_config({"run": {"artifact": "model", "artifact_fingerprint": text}})
    with pytest.raises(SettingsError, match=r"run\.artifact_fingerprint: set without run\.artifact"):
        parse_model_config({"run": {"artifact_fingerprint": "0" * 64}})


def test_losing_the_race_to_another_process_is_no_failure(vectors: Path, tmp_path: Path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    inner, calls = artifact.save_model, []

    def slower(privatizer: object, folder: Path, *, spec: dict[str, object]) -> str:
        calls.append(inner(privatizer, folder, spec=spec))  # type: ignore[arg-type]
        if len(calls) == 1:
            raise OSError(39, "Directory not empty")
        return calls[-1]

    monkeypatch.setattr(artifact, "save_model", slower)
    compile_to(settings(vectors), tmp_path / "model")
    assert len(calls) == 2
    assert artifact.open_model(tmp_path / "model").fingerprint == calls[0]


class TestSeveralLexicons:
    @pytest.fixture
    def other(self, tmp_path: Path) -> Path:
        """Another embedding: of most of the words, in another order, and of one word more."""
        return write_vectors(tmp_path / "other.txt", [*WORDS[-2:4:-1], "other"], 5)

    @staticmethod
    def both(first: Path, second: Path, **more: object) -> ModelConfig:
        lexicon = {"source": str(first), "more": [str(second)]}
        return parse_model_config(
            {"lexicon": lexicon, "mechanism": {"name": "diffractor", "lists": 2, **more}}
        )

    def test_the_words_are_those_of_all(self, vectors: Path, other: Path) -> None:
        config = self.both(vectors, other)
        made, folder = prepare(config)
        shared = WORDS[5:-1]
        assert made.vocabulary.strings().to_pylist() == shared
        assert load_lexicon(config).vocabulary.strings().to_pylist() == shared
        summary = made.sampler.summary
        assert (summary.words, summary.lists, summary.embeddings) == (len(shared), 4, 2)
        assert artifact.read_manifest(folder).sampler.summary.as_dict()["list_seed"] == 0
        texts, key = pa.array([" ".join(WORDS)]), RunKey.insecure(1)
        drawn = made.privatize(texts, column="c", row_ids=pa.array([1]), key=key)[0][0].as_py().split()
        assert drawn[0] == "[OOV]"
        assert set(drawn[5:-1]) <= set(shared)

    def test_every_one_of_them_counts(self, vectors: Path, other: Path, monkeypatch: Any) -> None:
        seen = compilations(monkeypatch)
        folders = {prepare(self.both(vectors, other))[1]}
        with monkeypatch.context() as unread:  # they are recognised by a note, without reading them again
            unread.setattr(Lexicon, "read", None)
            assert {prepare(self.both(vectors, other))[1]} == folders
        assert seen == ["compiled"]
        folders.add(prepare(self.both(other, vectors))[1])
        folders.add(prepare(self.both(vectors, other, list_seed=1))[1])
        other.write_text(other.read_text().replace("1", "2"), encoding="utf-8")
        folders.add(prepare(self.both(vectors, other))[1])
        folders.add(prepare(settings(vectors, mechanism={"name": "diffractor", "lists": 2}))[1])
        assert len(folders) == len(seen) == 5

    def test_an_artifact_of_other_lexicons_is_refused(self, vectors, other, tmp_path) -> None:  # type: ignore[no-untyped-def]
        compile_to(self.both(vectors, other), tmp_path / "model")
        mechanism = {"name": "diffractor", "lists": 2}
        assert prepare(named(tmp_path / "model", mechanism=mechanism))[1] == tmp_path / "model"
        with pytest.raises(SettingsError, match=r"^lexicon.more: \[\] differs from .* of artifact"):
            prepare(named(tmp_path / "model", mechanism=mechanism, lexicon={"source": str(vectors)}))


class TestTheCertificate:
    def test_noise_and_many_words_have_none_until_one_is_asked_for(self, vectors, monkeypatch) -> None:  # type: ignore[no-untyped-def]
        for name in ("mvc", "laplace", "truncated_laplace"):
            assert artifact.certificate_of(prepare(settings(vectors, mechanism={"name": name}))[1]) is None
        monkeypatch.setattr(certificate, "CHEAP", len(WORDS) - 1)
        assert artifact.certificate_of(prepare(settings(vectors))[1]) is None

    def test_a_model_made_without_one_gains_it(self, vectors: Path, tmp_path: Path, monkeypatch: Any) -> None:
        with monkeypatch.context() as before:
            before.setattr(compile, "is_cheap", lambda privatizer: False)
            _, folder = prepare(settings(vectors))
            compile_to(settings(vectors), tmp_path / "model")
        assert artifact.certificate_of(folder) is None
        assert prepare(settings(vectors))[1] == folder
        assert artifact.certificate_of(folder) is not None
        prepare(named(tmp_path / "model"))  # a named artifact is left as it is
        assert artifact.certificate_of(tmp_path / "model") is None

    def test_where_it_cannot_be_kept_the_run_goes_on(self, vectors: Path, monkeypatch: Any) -> None:
        def full(*_: object) -> None:
            raise DataError("full")

        monkeypatch.setattr(artifact, "keep_certificate", full)
        _, folder, steps = stepped(settings(vectors))
        assert artifact.certificate_of(folder) is None
        assert "the certificate cannot be stored" in steps


class TestImportance:
    """A model that chooses words: compiled with what it weighs them by, and made again where that has changed."""

    def test_a_corpus_is_part_of_the_model(self, vectors: Path, tmp_path: Path) -> None:
        corpus = tmp_path / "corpus.txt"
        corpus.write_text(f"{WORDS[0]} {WORDS[1]}\n{WORDS[0]}\n")
        config = settings(vectors, importance={"percent": 50, "corpus": str(corpus)})
        made, folder = prepare(config)
        assert prepare(config)[1] == folder != prepare(settings(vectors))[1]
        texts, ids = pa.array([f"{WORDS[0]} {WORDS[1]}"]), pa.array([1])
        out, counters = made.privatize(texts, column="c", row_ids=ids, key=RunKey.insecure(1))
        assert out[0].as_py().split()[0] == WORDS[0]
        assert counters.units.tolist() == [1]
        corpus.write_text(f"{WORDS[1]}\n{WORDS[1]} {WORDS[1]}\n")
        other, elsewhere = prepare(config)
        assert elsewhere != folder
        assert other.fingerprint != made.fingerprint

    def test_counts_of_the_texts_themselves_come_later(self, vectors: Path) -> None:
        config = settings(vectors, importance={"percent": 50})
        base, folder = prepare(config)
        assert not base.chooses
        assert artifact.certificate_of(folder) is not None
        counts = Frequencies.of(base.engine, pa.array([WORDS[0], WORDS[0], WORDS[1]]))
        made, counted = prepare(config, frequencies=counts)
        assert made.chooses
        assert counted != folder
        assert prepare(config, frequencies=counts)[1] == counted
        assert prepare(config)[1] == folder
        with pytest.raises(SettingsError, match=r"importance.corpus: not set, so that each run counts"):
            compile_to(config, folder.parent / "other")

    def test_every_level_is_compiled(self, vectors: Path) -> None:
        levels = [{"share": 20, "epsilon": 0.5}, {"share": 30}, {"mechanism": {"name": "custext", "k": 3}}]
        made, folder = prepare(settings(vectors, importance={"provider": "random", "levels": levels}))
        assert [sampler.guarantee.epsilon for sampler in made.samplers] == [0.5, 1.0, 1.0]
        assert made.samplers[2].summary.set_size.max == 3
        kept = artifact.certificate_of(folder)
        assert kept.sentence.count("Level ") == 3
        assert (kept.verdict, kept.seconds) == ("confirmed", None)
