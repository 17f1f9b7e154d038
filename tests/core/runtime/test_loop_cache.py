"""Machine code in folders of ours: found by name and build, taken where it fits, compiled where it does not."""

from __future__ import annotations

import ast
import errno
import importlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import CacheImpl, FunctionCache

from dptext_spark.runtime import jit
from dptext_spark.runtime.jit import PORTABLE, attach, folder_for, recording, taken, targets

CHECKOUT = Path(__file__).resolve().parents[3]
PACKAGE = CHECKOUT / "dptext_spark"
WITH_LOOPS = [file for file in PACKAGE.rglob("*.py") if b"\n@compiled\n" in file.read_bytes()]


@pytest.fixture(autouse=True)
def nothing_attached(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(jit._state, "warned", set())
    jit._state.attached.clear()
    yield
    jit._state.attached.clear()


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Give a function that compiles a source as the package does, with a user's cache of its own."""

    def compiled(source: str, name: str = "first", module: str = "dptext_spark.made") -> Any:
        monkeypatch.setattr(jit, "code_cache", lambda: str(tmp_path / name))
        space: dict[str, Any] = {"__name__": module}
        exec(compile(source, str(tmp_path / name / "source.py"), "exec"), space)
        return jit.compiled(space["loop"])

    return compiled


@pytest.fixture
def recorded(written: Callable[..., Any], tmp_path: Path) -> Callable[..., Path]:
    """Give a function that records a loop of a source for an argument, and returns the folder of its files."""

    def record(source: str, argument: object) -> Path:
        with recording(tmp_path / "recorded"):
            written(source)(argument)
        return tmp_path / "recorded" / folder_for(targets()[0])

    return record


class TestWhatALoopIsKnownBy:
    def test_no_two_loops_share_a_file(self) -> None:
        for file in WITH_LOOPS:
            importlib.import_module(".".join(file.relative_to(CHECKOUT).with_suffix("").parts))
        ours = [one for one in jit._dispatchers if one.py_func.__module__ in sys.modules]
        files = {one._cache._impl.filename_base for one in ours}
        assert len(files) == len(ours) > 200

    def test_the_build_covers_each_constant_that_a_loop_reads(self) -> None:
        """A constant of a module that does not count could change under code that was made before."""
        unread = []
        for file in WITH_LOOPS:
            tree = ast.parse(file.read_bytes())
            source = {
                name.asname or name.name: CHECKOUT / f"{one.module.replace('.', '/')}.py"
                for one in tree.body
                if isinstance(one, ast.ImportFrom) and (one.module or "").startswith("dptext_spark")
                for name in one.names
                if one.module is not None
            }
            loops = [
                one
                for one in tree.body
                if isinstance(one, ast.FunctionDef)
                and any(getattr(mark, "id", "") in ("compiled", "inlined") for mark in one.decorator_list)
            ]
            for loop in loops:
                names = {one.id for part in loop.body for one in ast.walk(part) if isinstance(one, ast.Name)}
                for origin in {source[name] for name in names & source.keys()}:
                    counted = origin.name == "jit.py" or any(
                        mark in origin.read_bytes() for mark in (b"@compiled\n", b"compiled loops read")
                    )
                    if not counted:
                        unread.append((file.name, loop.name, origin.name))
        assert unread == []

    def test_two_loops_of_one_name(self, written: Callable[..., Any], recorded: Callable[..., Path]) -> None:
        assert attach(recorded("def loop(x):\n    return x * 3\n", 2).parent)
        assert written("def loop(x):\n    return x * 4\n", "second", "dptext_spark.other")(2) == 8

    def test_another_body_compiles(self, written: Callable[..., Any], recorded: Callable[..., Path]) -> None:
        assert attach(recorded("def loop(x):\n    return x * x\n", 2).parent)
        assert written("def loop(x):\n    return x - x\n", "second")(2) == 0


class TestTaking:
    SOURCE = "def loop(x):\n    return x * 2.5\n"

    def test_recorded_code_is_taken(
        self, written: Callable[..., Any], recorded: Callable[..., Path], tmp_path: Path
    ) -> None:
        assert attach(recorded(self.SOURCE, 3).parent)
        before = taken()
        again = written(self.SOURCE, "second")
        assert again(3) == 7.5
        assert taken() - before == 1
        assert not again.stats.cache_misses
        assert not (tmp_path / "second").exists()
        assert again(np.float32(3)) == 7.5  # other arguments are compiled
        assert again.stats.cache_misses.total() == 1

    @pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
    @pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
    def test_files_that_were_cut_are_compiled_and_said_once(
        self, written: Any, recorded: Any, caplog: pytest.LogCaptureFixture, suffix: str, share: float
    ) -> None:
        folder = recorded(self.SOURCE, 3)
        (file,) = folder.glob(f"*{suffix}")
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
        assert attach(folder.parent)
        before = taken()
        assert written(self.SOURCE, "second")(3) == 7.5
        assert taken() == before
        assert caplog.text.count("cannot load") == 1

    def test_missing_files_are_compiled_and_said_once(
        self, written: Callable[..., Any], recorded: Callable[..., Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        folder = recorded(self.SOURCE, 3)
        assert attach(folder.parent)
        for file in folder.iterdir():
            file.unlink()
        again = written(self.SOURCE, "second")
        assert (again(3), again(3.0)) == (7.5, 7.5)
        assert caplog.text.count("not in the model's machine code") == 1

    def test_code_for_other_arguments_is_compiled(
        self, written: Callable[..., Any], recorded: Callable[..., Path], caplog: pytest.LogCaptureFixture
    ) -> None:
        """As after two processes that wrote to one index at once."""
        folder = recorded("def loop(x):\n    return x / 2\n", np.float32(3))
        again = written("def loop(x):\n    return x / 2\n", "second")
        file = again._cache._file(folder)
        (name,) = file._load_index().values()
        file._save_index({again._cache._key(targets()[0], (numba.int64,)): name})
        assert attach(folder.parent)
        assert again(3) == 1.5
        assert "for other arguments" in caplog.text

    def test_a_full_disk_is_said_once(
        self, written: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        loop = written("def loop(x):\n    return x + 40\n")
        monkeypatch.setattr(jit.IndexDataCacheFile, "save", full)
        assert (loop(2), loop(2.5)) == (42, 42.5)
        assert caplog.text.count("No space left") == 1

    def test_other_functions_are_left_alone(self, written: Callable[..., Any], tmp_path: Path) -> None:
        before = numba.config.CACHE_DIR, list(CacheImpl._locator_classes)
        written("def loop(x):\n    return x\n")(1)
        (tmp_path / "theirs.py").write_text("def loop(x):\n    return x + 1\n", encoding="utf-8")
        space: dict[str, Any] = {"__name__": "theirs"}
        exec(compile("def loop(x):\n    return x + 1\n", str(tmp_path / "theirs.py"), "exec"), space)
        theirs = numba.njit(cache=True)(space["loop"])
        assert type(theirs._cache) is FunctionCache
        assert (numba.config.CACHE_DIR, list(CacheImpl._locator_classes)) == before
        assert theirs(1) == 2
        assert not list((tmp_path / "first").rglob("theirs*"))


class TestLevels:
    @pytest.fixture
    def portable(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jit, "instructions", lambda: jit.V3)
        monkeypatch.setattr(jit.platform, "machine", lambda: "x86_64")
        for name in ("CPU_NAME", "CPU_FEATURES"):
            monkeypatch.setattr(numba.config, name, None)

    @pytest.mark.usefixtures("portable")
    def test_level_code_needs_its_instructions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        mine, other = targets()
        assert other[1:] == (PORTABLE, "")
        (tmp_path / folder_for(other)).mkdir()
        assert attach(tmp_path)
        monkeypatch.setattr(jit, "instructions", lambda: jit.V3 - {"avx2"})
        assert targets() == (mine,)
        assert not attach(tmp_path)

    @pytest.mark.usefixtures("portable")
    @pytest.mark.parametrize("name", ["CPU_NAME", "CPU_FEATURES"])
    def test_numba_s_own_settings_decide(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(numba.config, name, "generic")
        assert len(targets()) == 1

    @pytest.mark.parametrize("part", range(3))
    def test_code_of_another_target_is_compiled(
        self, written: Callable[..., Any], recorded: Callable[..., Path], part: int
    ) -> None:
        source = "def loop(x):\n    return x + 9\n"
        folder = recorded(source, 1)
        target = tuple("another" if place == part else one for place, one in enumerate(targets()[0]))
        jit._state.attached[folder] = target  # type: ignore[assignment]
        before = taken()
        assert written(source, "second")(1) == 10
        assert taken() == before


CHILD = """
import sys
import threading
import time
from pathlib import Path
import pyarrow as pa
from dptext_spark.randomness import RunKey, identify
from dptext_spark.runtime.jit import compilations
from dptext_spark.runtime.jit import attach, recording, taken
how, folder = sys.argv[1], Path(sys.argv[2])
if how == "take":
    assert attach(folder)
with recording(folder if how == "make" else Path("unused")):
    drawn = identify(pa.array(["a", "bc"]), RunKey.insecure(1), "row")
print(compilations(), taken(), drawn.tolist())
"""


@pytest.mark.long
def test_another_process_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the package lies elsewhere: its files are found by another path there."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "dptext_spark").symlink_to(CHECKOUT / "dptext_spark")

    def child(how: str, home: Path) -> list[str]:
        monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / f"cache-{how}-{home.name}"))
        monkeypatch.setenv("PYTHONPATH", str(home))
        ran = subprocess.run(
            [sys.executable, "-c", CHILD, how, str(tmp_path / "code")],
            cwd=tmp_path, check=True, capture_output=True, text=True,
        )  # fmt: skip
        return ran.stdout.split(maxsplit=2)

    compiled_there, took, drawn = child("make", CHECKOUT)
    assert int(compiled_there) > 0
    assert took == "0"
    for home in (CHECKOUT, elsewhere):
        again, took, same = child("take", home)
        assert again == "0"
        assert int(took) > 0
        assert same == drawn


class TestProcessesThatCompileAtOnce:
    LOOP = "def loop(x):\n    return x + 1\n"

    def test_one_compiles_and_another_takes_what_it_wrote(self, written: Callable[..., Any]) -> None:
        first, second = written(self.LOOP), written(self.LOOP)  # as two processes have it
        keep = first._cache._keep

        def kept_late(sig: Any, data: Any) -> None:
            waiting.start()
            waiting.join(0.3)
            assert waiting.is_alive()  # it waits for the one that compiles
            keep(sig, data)

        sig = (numba.int64,)
        loops: list[Any] = []
        target = numba.core.registry.cpu_target.target_context
        waiting = threading.Thread(target=lambda: loops.append(second._cache.load_overload(sig, target)))
        first._cache._keep = kept_late
        first.compile(sig)
        waiting.join(30)
        assert [loop.signature.args for loop in loops] == [sig]
        assert not first._cache._locks
        assert not second._cache._locks

    def test_a_loop_that_does_not_compile_is_tried_again_at_once(
        self, written: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(jit, "PATIENCE", 60.0)
        loop, began = written("def loop(x):\n    return x.nothing\n"), time.monotonic()
        for _ in range(2):
            with pytest.raises(numba.core.errors.TypingError):
                loop(1)
        assert time.monotonic() - began < 30

    def test_a_long_wait_compiles(self, written: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(jit, "PATIENCE", 0.1)
        first, second = written(self.LOOP), written(self.LOOP)
        sig = (numba.int64,)
        assert first._cache._waits_for_another(sig)
        assert not second._cache._waits_for_another(sig)
        first._cache._let_others_compile(sig)
        assert second._cache._waits_for_another(sig)
