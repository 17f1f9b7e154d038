"""Machine code beside a model: taken where somebody vouches for it and it fits; else loops are compiled, with the same draws."""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from dptext_spark.config.load import parse_model_config
from dptext_spark.errors import DataError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import CusText
from dptext_spark.model import compile as compiling
from dptext_spark.model import machine_code
from dptext_spark.model.artifact import expected_fingerprint, open_model, save_model
from dptext_spark.model.compile import compile_with_code, prepare
from dptext_spark.model.machine_code import (
    FILE,
    FOLDER,
    attach_code,
    digest_of,
    expected_text,
    make_code,
    trusted_code,
)
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime import jit
from dptext_spark.runtime.jit import _state, code_cache
from dptext_spark.runtime.paths import writable_by_others
from tests.core.names import beginning

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of models of these tests; processes that they start find the loops of this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", code_cache())
        patch.setenv("DPTEXT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def nothing_attached() -> Iterator[None]:
    _state.attached.clear()
    yield
    _state.attached.clear()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with its code; tests copy it."""
    folder = tmp_path_factory.mktemp("prepared") / "model"
    words = beginning(Lexicon.default(), 300)
    save_model(Privatizer(words, CusText(epsilon=1.0, k=10).compile(words)), folder)
    make_code(folder)
    return folder


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of this user's that others may enter; below those of pytest, modes would not count."""
    with tempfile.TemporaryDirectory(prefix="dptext-tests-") as name:
        place = Path(name).resolve()
        place.chmod(0o755)
        yield place


@pytest.fixture
def model(prepared: Path, place: Path) -> Path:
    """A copy of it that only this user may change."""
    shutil.copytree(prepared, place / "model", copy_function=shutil.copyfile)
    for part in (place / "model", *(place / "model").rglob("*")):
        part.chmod(0o755 if part.is_dir() else 0o644)
    return place / "model"


def archive(model: Path) -> Path:
    return model / FOLDER / FILE


def repacked(model: Path, name: Callable[[str], str]) -> str:
    """Give the folder in the archive another name; return the digest of the new archive, which anybody can make."""
    with zipfile.ZipFile(archive(model)) as before:
        files = {file: before.read(file) for file in before.namelist()}
    with zipfile.ZipFile(archive(model), "w") as after:
        for file, content in files.items():
            folder, _, rest = file.partition("/")
            after.writestr(f"{name(folder)}/{rest}", content)
    return digest_of(archive(model).read_bytes())


def told(model: Path, vouched: str | None = None) -> list[str]:
    """Take the code of a model, and return the sentences that this says; where it says one, nothing is attached."""
    said: list[str] = []
    took = attach_code(model, vouched, lambda step, _: said.append(step))
    assert took is bool(_state.attached) is not bool(said)
    return said


CHILD = """
import os, sys
import pyarrow as pa
from dptext_spark.model.artifact import open_model
from dptext_spark.model.machine_code import attach_code
from dptext_spark.randomness import RunKey
from dptext_spark.runtime.jit import compilations
from dptext_spark.runtime.jit import taken
before = dict(os.environ)
attach_code(sys.argv[1], None, lambda step, _: print(step, file=sys.stderr))
ids = pa.array(["a", "b"])
texts, _ = open_model(sys.argv[1]).privatize(
    pa.array(["call me at +44 20 7946 0958 in the house", "a.b@example.com"]),
    column="body", row_ids=ids, record_ids=ids, key=RunKey.insecure(1))
assert dict(os.environ) == before
print(compilations(), taken(), texts.to_pylist())
"""


def child(model: Path, python: str = sys.executable, **environment: str) -> tuple[int, int, str, str]:
    """Draw in a process of its own; return how many loops it compiled and took, the texts, and what it said."""
    ran = subprocess.run(
        [python, "-c", CHILD, str(model)],
        env=environment, cwd=environment.get("TMPDIR"), check=True, capture_output=True, text=True,
    )  # fmt: skip
    compiled, took, drawn = ran.stdout.split(maxsplit=2)
    return int(compiled), int(took), drawn.strip(), ran.stderr


@pytest.mark.long
def test_a_new_process_compiles_no_loop_and_draws_the_same(model: Path, tmp_path: Path) -> None:
    here = os.environ | {"PYTHONPATH": str(CHECKOUT), "NUMBA_CACHE_DIR": str(tmp_path / "empty")}
    compiled, took, drawn, said = child(model, **here)
    assert (compiled, said) == (0, "")
    assert took > 8
    ids, key = pa.array(["a", "b"]), RunKey.insecure(1)
    texts = pa.array(["call me at +44 20 7946 0958 in the house", "a.b@example.com"])
    expected, _ = open_model(model).privatize(texts, column="body", row_ids=ids, record_ids=ids, key=key)
    assert drawn == str(expected.to_pylist())
    # With damaged code it says so once, and draws the same.
    archive(model).write_bytes(archive(model).read_bytes()[:-30])
    _, took, again, said = child(model, **here | {"NUMBA_CACHE_DIR": code_cache()})
    assert (took, again) == (0, drawn)
    assert said.count("this node compiles the loops") == 1
    assert f"{FILE} cannot be unpacked" in said


@pytest.mark.long
def test_in_an_environment_that_was_packed_and_lies_elsewhere(model: Path, tmp_path: Path) -> None:
    """As `--archives` unpacks one: the package in another folder, which cannot be written, below another prefix.

    Code is known by what a loop is, not by the path of its source, nor by who runs it; no cache and no home can be written.
    """
    environment, place = tmp_path / "environment", tmp_path / "package"
    venv.create(environment, symlinks=True)
    no_bytecode = shutil.ignore_patterns("__pycache__")
    shutil.copytree(CHECKOUT / "dptext_spark", place / "dptext_spark", ignore=no_bytecode)
    for part in (place, *place.rglob("*")):
        part.chmod(0o555 if part.is_dir() else 0o444)
    python = str(environment / "bin" / "python")
    prefix = subprocess.check_output([python, "-c", "import sys; print(sys.prefix)"], text=True)
    assert prefix.strip() == str(environment)
    left_out = ("DPTEXT_CACHE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "PYTHONPATH")
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    variables["PYTHONPATH"] = os.pathsep.join([str(place), *installed])
    variables |= {"HOME": "/proc/none", "TMPDIR": str(tmp_path)}
    compiled, took, _, said = child(model, python, **variables)
    assert compiled == 0
    assert took > 8
    assert "compiles the loops" not in said


class TestRefused:
    @pytest.mark.long
    def test_what_is_loaded_is_a_copy_that_only_the_user_can_write(self, model: Path) -> None:
        before = os.umask(0)
        try:
            assert told(model) == []
        finally:
            os.umask(before)
        (folder,) = _state.attached
        assert folder.parent.parent == Path(code_cache()) / "models"
        assert folder.parent.parent.stat().st_mode & 0o077 == 0
        assert folder.stat().st_uid == os.getuid()

    def test_a_model_without_code(self, model: Path) -> None:
        (model / FOLDER).rename(model.parent / "aside")
        assert trusted_code(model) is None
        assert attach_code(model, None, pytest.fail) is False
        assert expected_text(model) == expected_fingerprint(model)
        assert "is missing" in told(model, "0" * 64)[0]

    @pytest.mark.parametrize("sixteenth", range(16))
    def test_cut_files(self, model: Path, sixteenth: int) -> None:
        content = archive(model).read_bytes()
        archive(model).write_bytes(content[: len(content) * sixteenth // 16])
        (said,) = told(model)
        assert FILE in said
        assert not list(Path(code_cache()).glob("models/.*"))

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
    def test_doctored_code_is_not_what_was_vouched_for(self, model: Path, share: float) -> None:
        vouched = expected_text(model).partition("+")[2]
        content = bytearray(archive(model).read_bytes())
        content[int(share * len(content))] ^= 0xFF
        archive(model).write_bytes(content)
        assert "run.artifact_fingerprint names other code" in told(model, vouched)[0]
        assert not (Path(code_cache()) / "models" / digest_of(bytes(content))).exists()

    def test_what_is_no_file_is_not_waited_for(self, model: Path) -> None:
        archive(model).unlink()
        os.mkfifo(archive(model))
        assert "cannot be read" in told(model)[0]

    @pytest.mark.parametrize("library", ["cpython-", "numba", "llvmlite", "numpy", "x86-64-"])
    def test_foreign_code(self, model: Path, library: str) -> None:
        """Made by another Python or library, or for another level of processor; the sentence names both."""
        if library == "x86-64-" and not jit.runs_portable():
            pytest.skip("no code for this level is made here")
        vouched = repacked(model, lambda name: name.replace(library, f"{library}0.", 1))
        (said,) = told(model, vouched)
        assert f"{library}0." in said
        assert jit.build() in said

    def test_code_of_another_source(self, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jit, "source", lambda: "0" * 12)
        assert "0" * 12 in told(model)[0]

    @pytest.mark.parametrize("part", ["", FOLDER, f"{FOLDER}/{FILE}"])
    @pytest.mark.parametrize("mode", [0o022, 0o020, 0o002])
    def test_code_that_others_may_write(self, model: Path, part: str, mode: int) -> None:
        file = model / part
        file.chmod(file.stat().st_mode | mode)
        (said,) = told(model)
        assert "other users can write" in said
        assert "run.artifact_fingerprint" in said
        assert told(model, expected_text(model).partition("+")[2]) == []

    def test_code_of_another_user(self, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        uid = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: uid)
        assert "other users can write" in told(model)[0]


class TestWhoMayWrite:
    """Against the rule, part by part: a path is safe if all its parts are."""

    @pytest.fixture
    def parts(self, place: Path) -> list[Path]:
        parts = [place / "a", place / "a/b", place / "a/b/c"]
        for part in parts:
            part.mkdir(mode=0o755)
        (parts[-1] / "file").write_text("")
        return [*parts, parts[-1] / "file"]

    @pytest.mark.parametrize("mode", [0o777, 0o775, 0o757])
    @pytest.mark.parametrize("index", range(4))
    def test_the_first_part_that_is_open_is_named(self, parts: list[Path], index: int, mode: int) -> None:
        assert writable_by_others(parts[-1]) is None
        parts[index].chmod(mode)
        assert writable_by_others(parts[-1]) == parts[index]
        if index:  # below a closed folder modes do not count
            parts[0].chmod(0o700)
            assert writable_by_others(parts[-1]) is None

    def test_only_owners_rename_in_a_sticky_folder_but_anybody_adds_a_file(self, parts: list[Path]) -> None:
        parts[0].chmod(0o1777)
        assert writable_by_others(parts[-1]) is None
        parts[2].chmod(0o1777)
        assert writable_by_others(parts[-1]) == parts[2]


class TestMaking:
    def test_it_is_no_part_of_the_model(self, model: Path, prepared: Path) -> None:
        before, drawn = expected_fingerprint(model), open_model(model).fingerprint
        (model / FOLDER).rename(model.parent / "aside")
        assert expected_fingerprint(model) == before
        assert open_model(model).fingerprint == drawn == open_model(prepared).fingerprint
        assert save_model(open_model(model), prepared) == drawn
        modes = [file.stat().st_mode & 0o022 for file in (prepared / FOLDER, *(prepared / FOLDER).iterdir())]
        assert modes == [0, 0]  # nobody else may write it

    @pytest.mark.long
    def test_it_takes_the_place_of_what_was_there(self, model: Path) -> None:
        repacked(model, lambda name: f"other-{name}")
        assert told(model) != []
        digest = make_code(model)
        assert told(model) == []
        assert expected_text(model) == f"{expected_fingerprint(model)}+{digest}"
        assert [file.name for file in (model / FOLDER).iterdir()] == [FILE]
        assert not list(model.glob(".code-*"))

    @pytest.mark.parametrize(
        ("child", "said"),
        [
            ("import sys; sys.exit('out of memory')", r"cannot be made \(out of memory\)"),
            ("import sys; open(sys.argv[2], 'wb').write(bytes(20_000_001))", "more than 20,000,000 bytes"),
            pytest.param("", r"cannot be written \(No space left", marks=pytest.mark.long),
        ],
    )
    def test_code_that_cannot_be_made_leaves_the_model_as_it_was(
        self, model: Path, monkeypatch: pytest.MonkeyPatch, child: str, said: str
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        before = expected_text(model)
        with monkeypatch.context() as failing:
            failing.setattr(*((machine_code, "_CHILD", child) if child else (os, "replace", full)))
            with pytest.raises(DataError, match=said):
                make_code(model)
        assert expected_text(model) == before
        assert told(model) == []

    @pytest.mark.long
    @pytest.mark.parametrize("seconds", [0.0, 0.5, 1.5])
    def test_a_process_that_is_killed_while_it_makes_code_leaves_the_old(self, model, seconds) -> None:  # type: ignore[no-untyped-def]
        before = expected_text(model)
        command = f"from dptext_spark.model.machine_code import make_code; print(1, flush=True); make_code({str(model)!r})"
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        with subprocess.Popen(
            [sys.executable, "-c", command], env=environment, stdout=subprocess.PIPE, start_new_session=True
        ) as child:
            child.stdout.readline()
            time.sleep(seconds)
            os.killpg(child.pid, signal.SIGKILL)
        assert told(model) == []  # that one, or, where it was fast enough, the new one
        assert expected_text(model).partition("+")[0] == before.partition("+")[0]


class TestSettings:
    @pytest.mark.long
    def test_prepare_makes_code_that_a_run_takes(self, place: Path) -> None:
        steps: list[str] = []

        def note(step: str, _: object) -> None:
            steps.append(step)

        given, named = {"mechanism": {"epsilon": 3}}, {"artifact": str(place / "model")}
        text = compile_with_code(parse_model_config(given), place / "model", note)
        assert any(step.startswith("compiling the loops for") for step in steps)
        (place / "model").chmod(0o777)  # vouched for by the text, wherever it lies
        prepare(parse_model_config({**given, "run": {**named, "artifact_fingerprint": text}}), note)
        assert _state.attached
        _state.attached.clear()
        prepare(parse_model_config({**given, "run": named}), note)
        assert not _state.attached
        assert "other users can write" in steps[-1]

    @pytest.mark.long
    def test_prepare_without_machine_code_names_the_model_alone(self, tmp_path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
        """Where none is wanted, and where none can be made."""

        def fails(*_: object, **__: object) -> None:
            raise DataError("no space.")

        job = runpy.run_path(str(CHECKOUT / "jobs" / "prepare.py"))
        settings, steps = tmp_path / "settings.yaml", []
        settings.write_text("mechanism: {epsilon: 3}\n", encoding="utf-8")
        assert job["main"]([str(settings), str(tmp_path / "model"), "--no-code"]) == 0
        assert capsys.readouterr().out.split()[-1] == expected_fingerprint(tmp_path / "model")
        assert not (tmp_path / "model" / FOLDER).exists()
        monkeypatch.setattr(compiling, "make_code", fails)
        config = parse_model_config({"mechanism": {"epsilon": 3}})
        text = compile_with_code(config, tmp_path / "other", lambda step, _: steps.append(step))
        assert text == expected_fingerprint(tmp_path / "other")
        assert steps[-1].endswith("each node compiles the loops: no space.")
