"""The package in an archive: unpacked once, imported from there, with everything that it opens by path."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from dptext_spark.runtime import paths
from dptext_spark.runtime.paths import unpack

CHECKOUT = Path(__file__).resolve().parents[3]
CHILD = """
import dptext_spark as dp
import dptext_spark.runtime.jit
from dptext_spark.runtime.jit import compilations
from dptext_spark.randomness.draws import identify
import pyarrow as pa
identify(pa.array(["a"]), dp.RunKey.insecure(1), "row")
print(dp.__file__, dptext_spark.runtime.jit.__file__, len(dp.Lexicon.default()), dp.Policy().stop_list()[0], compilations())
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as `--py-files` ships it."""
    made = tmp_path_factory.mktemp("archive") / "dptext_spark.zip"
    with zipfile.ZipFile(made, "w") as whole:
        for file in sorted((CHECKOUT / "dptext_spark").rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                whole.write(file, file.relative_to(CHECKOUT))
        whole.writestr(
            "dptext_spark-0.1.0.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: dptext-spark\nVersion: 0.1.0\n",
        )
    return made


@pytest.mark.long
def test_a_process_imports_it_from_where_it_was_unpacked(archive: Path, tmp_path: Path) -> None:
    """Where no home can be written, the temporary folder serves; a second process finds the machine code there."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("DPTEXT_CACHE", "XDG_CACHE_HOME", "NUMBA_CACHE_DIR")
    }
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


def test_another_build_is_another_folder(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    with pytest.raises(ImportError, match="must hold it at its top"):
        unpack(other)
    with pytest.raises(OSError, match="none"):
        unpack(tmp_path / "none.zip")
