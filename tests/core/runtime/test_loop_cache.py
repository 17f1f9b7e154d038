"""Machine code that another process made: known by what a loop is, taken where it fits, compiled where it does not."""

from __future__ import annotations

import errno
import importlib
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

from dptext_spark.runtime import jit, loop_cache
from dptext_spark.runtime.loop_cache import LoopKey, Target, attach, digest_of, recording, taken

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def nothing_attached() -> Iterator[None]:
    loop_cache._state.attached.clear()
    yield
    loop_cache._state.attached.clear()


def made(source: str, file: Path | None = None, **read: Any) -> Any:
    """Return the function `loop` of a module of this package that holds this source; `file`: where it can be found."""
    if file is not None:
        file.write_text(source, encoding="utf-8")
    space: dict[str, Any] = {"__name__": "dptext_spark.made", "np": np, **read}
    exec(compile(source, str(file or "somewhere.py"), "exec"), space)
    return space["loop"]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Give a function that compiles a source as the package does, in a file and with numba's files in a folder of their own."""
    monkeypatch.setattr(loop_cache._state, "warned", set())

    def compiled(source: str, name: str = "one") -> Any:
        (tmp_path / name).mkdir()
        monkeypatch.setattr(jit, "code_cache", lambda: str(tmp_path / name))
        return jit.compiled(made(source, tmp_path / name / "source.py"))

    return compiled


SOURCE = "def loop(x):\n    return x * STEP + other(x)\n"
OTHER = "def loop(x):\n    return x + {}\n"


class TestWhatALoopIsKnownBy:
    def test_every_loop_of_the_package_can_be_told(self) -> None:
        for file in (CHECKOUT / "dptext_spark").rglob("*.py"):
            if "\n@compiled\n" in file.read_text(encoding="utf-8"):
                importlib.import_module(".".join(file.relative_to(CHECKOUT).with_suffix("").parts))
        functions = [dispatcher.py_func for dispatcher in jit._dispatchers]
        ours = [
            one
            for one in functions
            if one.__module__.startswith("dptext_spark.") and one.__module__ in sys.modules
        ]
        seen = {f"{one.__module__}.{one.__qualname__}": digest_of(one) for one in ours}
        assert len(seen) > 200
        assert len(set(seen.values())) == len(seen)

    def test_it_follows_what_it_reads_and_calls(self) -> None:
        def known(step: object, added: str, source: str = SOURCE) -> str:
            return digest_of(made(source, STEP=step, other=made(OTHER.format(added))))

        same = known(3, "1")
        assert known(3, "1") == same
        assert known(3, "1", "# moved\n\n" + SOURCE) == same
        variants = [known(4, "1"), known(3.0, "1"), known(np.uint64(3), "1"), known(3, "2")]
        variants += [known(np.array([3]), "1"), known(np.array([3], np.int32), "1"), known((3,), "1")]
        variants += [
            known(3, "1", SOURCE.replace("*", "-")),
            known(3, "1", SOURCE.replace("(x)", "(y=2, x=1)")),
        ]
        assert len({same, *variants}) == 1 + len(variants)

    def test_it_follows_what_is_inlined_and_intrinsic(self) -> None:
        wraps = (jit.inlined, jit._intrinsic, numba.njit)
        others = [wrap(made(OTHER.format(added))) for wrap in wraps for added in "12"]
        assert len({digest_of(made(SOURCE, STEP=1, other=other)) for other in others}) == len(others)

    @pytest.mark.parametrize("value", [{}, [1], object(), np.array([None]), loop_cache])
    def test_what_cannot_be_told_is_refused(self, value: object) -> None:
        with pytest.raises(TypeError, match="a compiled loop reads a"):
            digest_of(made(SOURCE, STEP=value, other=max))


class TestTaking:
    def test_recorded_code_is_taken(self, written: Callable[..., Any], tmp_path: Path) -> None:
        source = "def loop(x):\n    return x * 2.5\n"
        with recording() as found:
            assert written(source, "first")(3) == 7.5
        (key,) = found
        attach({key: found[key].code})
        before, compiled_before = taken(), jit.compilations()
        again = written(source, "second")
        assert again(3) == 7.5
        assert taken() - before == 1
        assert jit.compilations() == compiled_before
        assert again(np.int32(3)) == 7.5  # other arguments are compiled
        assert jit.compilations() == compiled_before + (again.stats.cache_misses.total())
        assert not list((tmp_path / "second").rglob("*.nbc")) or again.stats.cache_misses.total() == 1

    @pytest.mark.parametrize("code", [b"", b"\x80\x04", pickle.dumps(("a", 1)), pickle.dumps(None)])
    def test_what_cannot_be_loaded_is_compiled(
        self, written: Callable[..., Any], code: bytes, caplog: pytest.LogCaptureFixture
    ) -> None:
        loop = written("def loop(x):\n    return x * 7\n")
        attach({LoopKey.of(loop.py_func, (numba.int64,)): code})
        assert loop(6) == 42
        assert "cannot be loaded" in caplog.text
        assert len(caplog.records) == 1

    def test_code_for_other_arguments_is_compiled(
        self, written: Callable[..., Any], caplog: pytest.LogCaptureFixture
    ) -> None:
        source = "def loop(x):\n    return x / 2\n"
        with recording() as found:
            written(source, "first")(np.float32(3))
        (one,) = found.values()
        again = written(source, "second")
        attach({LoopKey.of(again.py_func, (numba.int64,)): one.code})
        assert again(3) == 1.5
        assert "for other arguments" in caplog.text

    def test_a_full_disk_is_said_once(
        self, written: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def full(*_: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        loop = written("def loop(x):\n    return x + 40\n")
        monkeypatch.setattr(loop._cache._cache_file, "save", full)
        with recording() as found:
            assert loop(2) == 42
            assert loop(2.5) == 42.5
        assert len(found) == 2
        assert all(one.code for one in found.values())
        assert caplog.text.count("No space left") == 1

    def test_other_functions_are_left_alone(self, written: Callable[..., Any], tmp_path: Path) -> None:
        before = numba.config.CACHE_DIR
        written("def loop(x):\n    return x\n")
        theirs = numba.njit(cache=True)(made("def loop(x):\n    return x + 1\n", tmp_path / "theirs.py"))
        assert type(theirs._cache) is FunctionCache
        assert before == numba.config.CACHE_DIR


CHILD = """
import pickle, sys
import pyarrow as pa
from dptext_spark.randomness.draws import RunKey, identify
from dptext_spark.runtime.jit import compilations
from dptext_spark.runtime.loop_cache import attach, recording, taken
how, file = sys.argv[1:]
if how == "take":
    attach(pickle.load(open(file, "rb")))
with recording() as found:
    drawn = identify(pa.array(["a", "bc"]), RunKey.insecure(1), "row")
if how == "make":
    pickle.dump({key: one.code for key, one in found.items()}, open(file, "wb"))
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


class TestTarget:
    @pytest.mark.parametrize("field", list(Target.here().as_dict()))
    def test_each_difference_is_told(self, field: str) -> None:
        other = replace(Target.here(), **{field: "another"})
        assert Target.here().differences() == ()
        assert len(other.differences()) == 1
        told = other.differences(frozenset())
        assert len(told) == (0 if field in ("cpu", "features") else 1)

    def test_a_level_needs_its_instructions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert Target.here().differences(frozenset({"made-up"})) == ("this processor has no made-up",)
        monkeypatch.setattr(numba.config, "CPU_NAME", "generic")
        assert replace(Target.here(), cpu="another").differences(frozenset()) != ()
