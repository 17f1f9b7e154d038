"""Machine code beside a model: taken where somebody vouches for it and it fits; else loops are compiled, with the same draws."""

from __future__ import annotations

import hashlib
import json
import os
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
    FOLDER,
    MANIFEST,
    OWN,
    attach_code,
    expected_text,
    make_code,
    trusted_code,
)
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.jit import code_cache
from dptext_spark.runtime.loop_cache import _state
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
    """A model with the code of this processor; tests copy it."""
    folder = tmp_path_factory.mktemp("prepared") / "model"
    words = beginning(Lexicon.default(), 300)
    save_model(Privatizer(words, CusText(epsilon=1.0, k=10).compile(words)), folder)
    make_code(folder, (OWN,))
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


def own_file(model: Path) -> Path:
    return model / FOLDER / f"{OWN}.code"


def resealed(model: Path, change: Callable[[dict[str, Any]], None]) -> str:
    """Change the manifest, with the digest of the code that is there; return its own digest, which anybody can make."""
    manifest = model / FOLDER / MANIFEST
    written = json.loads(manifest.read_bytes())
    written["levels"][0]["sha256"] = hashlib.sha256(own_file(model).read_bytes()).hexdigest()
    change(written)
    manifest.write_text(json.dumps(written), encoding="utf-8")
    return hashlib.sha256(manifest.read_bytes()).hexdigest()


def at(manifest: dict[str, Any], part: str) -> dict[str, Any]:
    level: dict[str, Any] = manifest["levels"][0]
    return {"manifest": manifest, "level": level, "loop": level["loops"][0]}[part]


def told(model: Path, vouched: str | None = None) -> list[str]:
    """Take the code of a model, and return the sentences that this says; where it says one, nothing is attached."""
    said: list[str] = []
    took = attach_code(model, vouched, lambda step, _: said.append(step))
    assert took is bool(_state.attached)
    assert took is not bool(said)
    return said


CHILD = """
import sys
import pyarrow as pa
from dptext_spark.model.artifact import open_model
from dptext_spark.model.machine_code import attach_code
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.jit import compilations
from dptext_spark.runtime.jit import code_cache
from dptext_spark.runtime.loop_cache import taken
attach_code(sys.argv[1], None, lambda step, _: print(step, file=sys.stderr))
ids = pa.array(["a", "b"])
texts, _ = open_model(sys.argv[1]).privatize(
    pa.array(["call me at +44 20 7946 0958 in the house", "a.b@example.com"]),
    column="body", row_ids=ids, record_ids=ids, key=RunKey.insecure(1))
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
    ids = pa.array(["a", "b"])
    expected, _ = open_model(model).privatize(
        pa.array(["call me at +44 20 7946 0958 in the house", "a.b@example.com"]),
        column="body", row_ids=ids, record_ids=ids, key=RunKey.insecure(1),
    )  # fmt: skip
    assert drawn == str(expected.to_pylist())
    # With damaged code it says so once, and draws the same.
    content = own_file(model).read_bytes()
    own_file(model).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    _, took, again, said = child(model, **here | {"NUMBA_CACHE_DIR": code_cache()})
    assert (took, again) == (0, drawn)
    assert said.count("loops are compiled here") == 1
    assert "own.code is not what its manifest says" in said


@pytest.mark.long
def test_in_an_environment_that_was_packed_and_lies_elsewhere(model: Path, tmp_path: Path) -> None:
    """As `--archives` unpacks one: the package in another folder, which cannot be written, below another prefix.

    Code is known by what a loop is, not by the path of its source, nor by who runs it; no cache and no home can be written.
    """
    environment, place = tmp_path / "environment", tmp_path / "package"
    venv.create(environment, symlinks=True)
    shutil.copytree(
        CHECKOUT / "dptext_spark", place / "dptext_spark", ignore=shutil.ignore_patterns("__pycache__")
    )
    for part in (place, *place.rglob("*")):
        part.chmod(0o555 if part.is_dir() else 0o444)
    python = str(environment / "bin" / "python")
    prefix = subprocess.run(
        [python, "-c", "import sys; print(sys.prefix)"], check=True, capture_output=True, text=True
    )
    assert prefix.stdout.strip() == str(environment)
    left_out = ("DPTEXT_CACHE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "PYTHONPATH")
    variables = {name: value for name, value in os.environ.items() if name not in left_out}
    installed = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    variables |= {
        "PYTHONPATH": os.pathsep.join([str(place), *installed]),
        "HOME": "/proc/none",
        "TMPDIR": str(tmp_path),
    }
    compiled, took, _, said = child(model, python, **variables)
    assert compiled == 0
    assert took > 8
    assert "loops are compiled" not in said


class TestRefused:
    @pytest.mark.long
    def test_code_that_is_whole_is_taken(self, model: Path) -> None:
        assert told(model) == []
        digest = hashlib.sha256((model / FOLDER / MANIFEST).read_bytes()).hexdigest()
        assert told(model, digest) == []

    def test_a_model_without_code(self, model: Path) -> None:
        (model / FOLDER).rename(model.parent / "aside")
        assert trusted_code(model) is None
        assert attach_code(model, None, pytest.fail) is False
        assert expected_text(model) == expected_fingerprint(model)

    @pytest.mark.parametrize("sixteenth", range(16))
    @pytest.mark.parametrize("name", [MANIFEST, f"{OWN}.code"])
    def test_cut_files(self, model: Path, name: str, sixteenth: int) -> None:
        file = model / FOLDER / name
        content = file.read_bytes()
        file.write_bytes(content[: len(content) * sixteenth // 16])
        (said,) = told(model)
        assert name in said

    @pytest.mark.parametrize("share", [0.0, 0.3, 0.999])
    def test_doctored_code_that_was_sealed_again_is_not_what_was_vouched_for(
        self, model: Path, share: float
    ) -> None:
        vouched = expected_text(model).partition("+")[2]
        content = bytearray(own_file(model).read_bytes())
        content[int(share * len(content))] ^= 0xFF
        own_file(model).write_bytes(content)
        assert "is not what its manifest says" in told(model, vouched)[0]
        assert resealed(model, lambda _: None) != vouched
        assert "not what run.artifact_fingerprint names" in told(model, vouched)[0]

    @pytest.mark.parametrize("name", [MANIFEST, f"{OWN}.code"])
    def test_what_is_no_file_is_not_waited_for(self, model: Path, name: str) -> None:
        (model / FOLDER / name).unlink()
        if name != MANIFEST:
            assert "own.code cannot be read" in told(model)[0]
        os.mkfifo(model / FOLDER / name)
        assert "cannot be read" in told(model)[0]

    @pytest.mark.parametrize("field", ["python", "numba", "llvmlite", "numpy", "triple", "cpu", "features"])
    def test_code_made_with_something_else(self, model: Path, field: str) -> None:
        resealed(model, lambda written: written["levels"][0]["made_with"].update({field: "another"}))
        (said,) = told(model)
        assert "own: " in said
        assert field in said

    def test_a_processor_without_the_instructions(self, model: Path) -> None:
        resealed(model, lambda written: written["levels"][0].update(needs=["made-up"], name="x86-64-v3"))
        own_file(model).rename(model / FOLDER / "x86-64-v3.code")
        assert "x86-64-v3: this processor has no made-up" in told(model)[0]

    @pytest.mark.parametrize("part", ["manifest", "level", "loop"])
    def test_a_manifest_that_describes_none(self, model: Path, part: str) -> None:
        """Of another format, with a level that names a file elsewhere, or with sizes that do not agree."""
        wrong: dict[str, list[dict[str, Any]]] = {
            "manifest": [
                {"format": 2},
                {"levels": None},
                {"levels": [1]},
                {"levels": [{}]},
                {"format": None},
            ],
            "level": [{"name": "../own"}, {"name": "native"}, {"name": ""}],
            "loop": [{"size": -1}, {"size": 10**12}],
        }
        manifest = (model / FOLDER / MANIFEST).read_bytes()
        for change in wrong[part]:
            (model / FOLDER / MANIFEST).write_bytes(manifest)
            resealed(model, lambda written, change=change: at(written, part).update(change))
            assert "describes no machine code" in told(model)[0], change

    @pytest.mark.parametrize("part", ["", FOLDER, f"{FOLDER}/{MANIFEST}"])
    @pytest.mark.parametrize("mode", [0o022, 0o020, 0o002])
    def test_code_that_others_may_write(self, model: Path, part: str, mode: int) -> None:
        file = model / part
        file.chmod(file.stat().st_mode | mode)
        (said,) = told(model)
        assert "others may write" in said
        assert "run.artifact_fingerprint" in said
        assert told(model, expected_text(model).partition("+")[2]) == []

    def test_code_of_another_user(self, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        uid = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: uid)
        assert "others may write" in told(model)[0]


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

    def test_only_owners_rename_in_a_folder_with_that_bit_but_anybody_adds_a_file(
        self, parts: list[Path]
    ) -> None:
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

    def test_nobody_else_may_write_it(self, prepared: Path) -> None:
        modes = [file.stat().st_mode & 0o022 for file in (prepared / FOLDER, *(prepared / FOLDER).iterdir())]
        assert len(modes) == 3
        assert not any(modes)

    @pytest.mark.long
    def test_it_takes_the_place_of_what_was_there(self, model: Path) -> None:
        resealed(model, lambda written: written["levels"][0]["made_with"].update(numba="0.1"))
        assert told(model) != []
        code = make_code(model, (OWN,))
        assert told(model) == []
        assert expected_text(model) == f"{expected_fingerprint(model)}+{code.digest}"
        assert sorted(file.name for file in (model / FOLDER).iterdir()) == sorted(code.files)
        assert not list(model.glob(".code-*"))

    @pytest.mark.parametrize(
        ("name", "value", "said"),
        [
            (
                "_CHILD",
                "import sys; sys.exit('out of memory')",
                r"for own could not be made \(out of memory\)",
            ),
            pytest.param("_write", None, r"cannot be written \(No space left", marks=pytest.mark.long),
            pytest.param("MOST_BYTES", 10_000, "valid: at most 10,000", marks=pytest.mark.long),
        ],
    )
    def test_code_that_cannot_be_made_leaves_the_model_as_it_was(
        self, model: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, said: str
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        before = expected_text(model)
        with monkeypatch.context() as failing:
            failing.setattr(machine_code, name, full if value is None else value)
            with pytest.raises(DataError, match=said):
                make_code(model, (OWN,))
        assert expected_text(model) == before
        assert told(model) == []

    @pytest.mark.long
    @pytest.mark.parametrize("seconds", [0.0, 0.5, 1.5])
    def test_a_process_that_is_killed_while_it_makes_code_leaves_the_old(
        self, model: Path, seconds: float
    ) -> None:
        before = expected_text(model)
        command = (
            "from dptext_spark.model.machine_code import make_code; print(1, flush=True); "
            f"make_code({str(model)!r}, ('own',))"
        )
        environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        with subprocess.Popen(
            [sys.executable, "-c", command], env=environment, stdout=subprocess.PIPE, start_new_session=True
        ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(seconds)
            os.killpg(child.pid, signal.SIGKILL)
        assert told(model) == []  # that one, or, where it was fast enough, the new one
        assert expected_text(model).partition("+")[0] == before.partition("+")[0]


class TestSettings:
    def test_one_text_names_model_and_code(self, model: Path) -> None:
        text = expected_text(model)
        run = parse_model_config({"run": {"artifact": str(model), "artifact_fingerprint": text}}).run
        assert f"{run.expected_seal}+{run.expected_code}" == text
        assert run.expected_seal == expected_fingerprint(model)
        plain = parse_model_config({"run": {"artifact": str(model), "artifact_fingerprint": text[:64]}}).run
        assert (plain.expected_seal, plain.expected_code) == (text[:64], None)
        none = parse_model_config({}).run
        assert (none.expected_seal, none.expected_code) == (None, None)

    @pytest.mark.long
    def test_prepare_makes_code_that_a_run_takes(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(machine_code, "_possible", lambda: (OWN,))
        steps: list[str] = []
        given = {"mechanism": {"epsilon": 3}}
        text = compile_with_code(
            parse_model_config(given), place / "model", lambda step, _: steps.append(step)
        )
        assert "compiling the loops for own" in steps
        (place / "model").chmod(0o777)  # vouched for by the text, wherever it lies
        named = {"artifact": str(place / "model"), "artifact_fingerprint": text}
        prepare(parse_model_config({**given, "run": named}), lambda step, _: steps.append(step))
        assert _state.attached
        _state.attached.clear()
        prepare(
            parse_model_config({**given, "run": {"artifact": named["artifact"]}}),
            lambda step, _: steps.append(step),
        )
        assert not _state.attached
        assert "others may write" in steps[-1]

    @pytest.mark.long
    def test_prepare_without_machine_code_names_the_model_alone(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where none is wanted, and where none can be made."""

        def fails(*_: object, **__: object) -> None:
            raise DataError("no space.")

        job = runpy.run_path(str(CHECKOUT / "jobs" / "prepare.py"))
        settings = tmp_path / "settings.yaml"
        settings.write_text("mechanism: {epsilon: 3}\n", encoding="utf-8")
        assert job["main"]([str(settings), str(tmp_path / "model"), "--no-code"]) == 0
        assert capsys.readouterr().out.split()[-1] == expected_fingerprint(tmp_path / "model")
        assert not (tmp_path / "model" / FOLDER).exists()
        monkeypatch.setattr(compiling, "make_code", fails)
        steps: list[str] = []
        config = parse_model_config({"mechanism": {"epsilon": 3}})
        text = compile_with_code(config, tmp_path / "other", lambda step, _: steps.append(step))
        assert text == expected_fingerprint(tmp_path / "other")
        assert steps[-1].startswith("no machine code: no space.")
