"""Files by their paths: jobs and settings in a checkout and in a wheel, a file written whole, the package in an archive."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dptext_spark.cli.app import main
from dptext_spark.runtime import paths
from dptext_spark.runtime.paths import PRIVATE, unpack, write_atomically

CHECKOUT = Path(__file__).resolve().parents[3]


def test_a_name_prints_its_path_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs", "privatize"]) == 0
    assert capsys.readouterr().out == f"{CHECKOUT / 'jobs' / 'privatize.py'}\n"
    assert main(["jobs", "conf"]) == 0
    assert capsys.readouterr().out == f"{CHECKOUT / 'conf'}\n"


def test_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["jobs"]) == 0
    shown = capsys.readouterr().out
    assert f"{CHECKOUT / 'jobs'}\n" in shown
    assert "  doctor  " in shown
    assert main(["jobs", "--json"]) == 0
    names = {file.stem for file in (CHECKOUT / "jobs").glob("*.py")}
    assert set(json.loads(capsys.readouterr().out)["jobs"]) == names
    assert main(["jobs", "privatise"]) == 2
    assert "Did you mean 'privatize'?" in capsys.readouterr().err


def test_the_wheels_own_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "__file__", str(tmp_path / "dptext_spark" / "runtime" / "paths.py"))
    assert main(["jobs"]) == 3
    assert "Install its wheel" in capsys.readouterr().err
    (tmp_path / "dptext_spark" / "jobs").mkdir(parents=True)
    (tmp_path / "jobs").mkdir()
    assert paths.folder_of("jobs") == tmp_path / "dptext_spark" / "jobs"


@pytest.mark.parametrize(("mode", "expected"), [(0o666, 0o644), (PRIVATE, 0o600)])
def test_it_is_written_in_place_of_what_was_there(tmp_path: Path, mode: int, expected: int) -> None:
    file = tmp_path / "a file.json"
    file.write_text("before")
    before = os.umask(0o022)
    try:
        write_atomically(file, "after: ε\n", mode)
    finally:
        os.umask(before)
    assert file.read_text(encoding="utf-8") == "after: ε\n"
    assert file.stat().st_mode & 0o777 == expected
    assert list(tmp_path.iterdir()) == [file]


def test_one_that_fails_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(file, "\ud800")

    def full(*_: object) -> None:
        raise OSError(28, "full")

    monkeypatch.setattr(paths.os, "replace", full)
    with pytest.raises(OSError, match="full"):
        write_atomically(file, "after")
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
    with pytest.raises(OSError, match="No such file"):
        write_atomically(tmp_path / "none" / "file", "after")


CHILD = """
import dptext_spark as dp
import dptext_spark.runtime.jit
from dptext_spark.runtime.jit import compilations
from dptext_spark.randomness import identify
import pyarrow as pa
identify(pa.array(["a"]), dp.RunKey.insecure(1), "row")
print(dp.__file__, dptext_spark.runtime.jit.__file__, len(dp.Lexicon.default()), dp.Policy().stop_list()[0], compilations())
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("archive") / "dptext_spark.zip"
    with zipfile.ZipFile(made, "w") as whole:
        for file in sorted((CHECKOUT / "dptext_spark").rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                whole.write(file, file.relative_to(CHECKOUT))
        metadata = "Metadata-Version: 2.1\nName: dptext-spark\nVersion: 0.1.0\n"
        whole.writestr("dptext_spark-0.1.0.dist-info/METADATA", metadata)
    return made


@pytest.mark.long
def test_a_process_imports_it_from_where_it_was_unpacked(archive: Path, tmp_path: Path) -> None:
    """Where no home can be written, the temporary folder serves; a second process finds the machine code there."""
    ours = ("DPTEXT_CACHE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in ours}
    environment |= {"PYTHONPATH": str(archive), "HOME": str(archive / "no folder"), "TMPDIR": str(tmp_path)}
    said = []
    for _ in range(2):
        child = subprocess.run(
            [sys.executable, "-c", CHILD], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )  # fmt: skip
        assert child.returncode == 0, child.stderr
        said.append(child.stdout.split())
    folder = unpack_folder(tmp_path)
    assert said[0][:2] == [str(folder / "__init__.py"), str(folder / "runtime" / "jit.py")]
    assert said[0][2:4] == said[1][2:4]
    assert int(said[0][2]) > 20_000
    assert int(said[0][4]) > 0
    assert int(said[1][4]) == 0
    assert not list(folder.parent.rglob("METADATA"))


def unpack_folder(base: Path) -> Path:
    (folder,) = (base / f"dptext_spark-{os.getuid()}" / "unpacked").iterdir()
    return folder / "dptext_spark"


def test_each_build_has_its_folder(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "user_cache", lambda: tmp_path)
    first = unpack(archive)
    assert unpack(archive) == first
    assert not list(first.parents[1].glob(".unpacking-*"))
    other = tmp_path / "other.zip"
    with zipfile.ZipFile(other, "w") as whole:
        whole.writestr("dptext_spark/__init__.py", "")
    assert unpack(other) != first
    with zipfile.ZipFile(other, "w") as whole:
        whole.writestr("libraries/dptext_spark/__init__.py", "")
    with pytest.raises(ImportError, match="at its top level"):
        unpack(other)
    with pytest.raises(OSError, match="none"):
        unpack(tmp_path / "none.zip")
