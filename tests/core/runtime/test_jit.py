"""Where machine code is cached, and the four operations that numba lacks."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark.errors import SettingsError
from dptext_spark.runtime import jit
from dptext_spark.runtime import jit as module
from dptext_spark.runtime.jit import compiled, inner_product, load64, mul_high, store64, trailing_zeros
from dptext_spark.runtime.paths import user_cache

WORDS = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**32, 2**63, 2**64 - 1])


@compiled
def _operate(a: int, b: int, data: np.ndarray, i: int) -> tuple[int, int, int]:
    before = load64(data, i)
    store64(data, i, a)
    return mul_high(a, b), trailing_zeros(a), before


@given(a=WORDS, b=WORDS, content=st.binary(min_size=24, max_size=24), i=st.integers(0, 16))
def test_operations_on_64_bits(a: int, b: int, content: bytes, i: int) -> None:
    data = np.frombuffer(content, np.uint8).copy()
    high, zeros, before = _operate(np.uint64(a), np.uint64(b), data, np.int64(i))
    assert int(high) == a * b >> 64
    assert zeros == (64 if a == 0 else (a & -a).bit_length() - 1)
    assert int(before) == int.from_bytes(content[i : i + 8], "little")
    assert data.tobytes() == content[:i] + a.to_bytes(8, "little") + content[i + 8 :]


@compiled
def _products(x: np.ndarray, i: int, y: np.ndarray, j: int, n: int) -> float:
    return inner_product(x, i, y, j, n)


@pytest.mark.parametrize("n", [0, 8, 16, 304])
@pytest.mark.parametrize("kinds", [(np.float64, np.float32), (np.float32, np.float64), (np.float64,) * 2])
def test_inner_product_in_its_fixed_order(kinds: tuple[type, type], n: int) -> None:
    """Eight sums, then a tree: the same bits as written out, from any offset, twice in one process."""
    rng = np.random.default_rng(n)
    x, y = (rng.normal(size=320).astype(kind) for kind in kinds)
    for i, j in ((0, 0), (3, 7)):
        sums = np.zeros(8)
        for k in range(0, n, 8):
            sums += x[i + k : i + k + 8].astype(np.float64) * y[j + k : j + k + 8].astype(np.float64)
        while len(sums) > 1:
            sums = sums[::2] + sums[1::2]
        assert _products(x, i, y, j, n) == sums[0]


@pytest.fixture
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No folder named, no home: a file stands where the home should be, so not even root can write there."""
    for name in ("DPTEXT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home").write_text("a file")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path


def test_the_named_folder_wins(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(homeless / "fine"))
    assert user_cache() == homeless / "fine" / ".cache" / "dptext_spark"
    monkeypatch.setenv("XDG_CACHE_HOME", str(homeless / "xdg"))
    assert user_cache() == homeless / "xdg" / "dptext_spark"
    monkeypatch.setenv("DPTEXT_CACHE", str(homeless / "named"))
    assert user_cache() == homeless / "named"
    monkeypatch.setenv("DPTEXT_CACHE", str(homeless / "home" / "below a file"))
    assert user_cache() == homeless / "xdg" / "dptext_spark"


def test_without_a_home_a_private_temporary_folder_is_taken(homeless: Path) -> None:
    """Cached machine code is run: nobody else may have put it there."""
    folder = homeless / "tmp" / f"dptext_spark-{os.getuid()}"
    assert user_cache() == user_cache() == folder
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert user_cache() != folder
    folder.rmdir()
    (homeless / "elsewhere").mkdir()
    folder.symlink_to(homeless / "elsewhere")
    assert user_cache() != folder
    folder.unlink()
    folder.write_text("a file")
    assert user_cache() != folder


def test_a_user_without_an_entry_gets_no_tilde(homeless: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    monkeypatch.chdir(homeless)
    assert user_cache().parent == homeless / "tmp"
    assert not (homeless / "~").exists()


class TestWhoseTheFolderIs:
    """What lies in a cache is run: the folder is its user's alone, or it is not used."""

    @pytest.fixture
    def named(self, homeless: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("DPTEXT_CACHE", str(homeless / "named"))
        return homeless / "named"

    @pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
    def test_a_new_one_is_private_whatever_the_umask(self, named: Path, umask: int) -> None:
        before = os.umask(umask)
        try:
            assert user_cache() == named
        finally:
            os.umask(before)
        assert named.stat().st_mode & 0o777 == 0o700

    @pytest.mark.parametrize("mode", [0o755, 0o750, 0o705, 0o711])
    def test_one_s_own_is_closed(self, named: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
        named.mkdir()
        named.chmod(mode)
        assert user_cache() == user_cache() == named
        assert named.stat().st_mode & 0o777 == 0o700
        assert [one.getMessage() for one in caplog.records] == [
            f"DPTEXT_CACHE: other users could read {named} (mode {mode:o}). Its mode is now 700."
        ]

    @pytest.mark.parametrize("variable", ["DPTEXT_CACHE", "XDG_CACHE_HOME"])
    @pytest.mark.parametrize("mode", [0o777, 0o775, 0o720, 0o1777])
    def test_one_that_others_can_write_is_refused(
        self, homeless: Path, variable: str, mode: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(variable, str(homeless / "named"))
        folder = user_cache()
        folder.chmod(mode)
        with pytest.raises(SettingsError, match=rf"other users can write .*chmod 700 {folder}"):
            user_cache()
        assert folder.stat().st_mode & 0o7777 == mode

    @pytest.mark.parametrize("variable", ["DPTEXT_CACHE", "XDG_CACHE_HOME", None])
    def test_another_user_s_is_refused_where_it_was_named_else_passed_over(
        self, homeless: Path, variable: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As under sudo that keeps HOME, or in an image that was built by root; None: the temporary folder."""
        if variable is not None:
            monkeypatch.setenv(variable, str(homeless / "theirs"))
        theirs, uid = user_cache(), os.getuid() + 1
        (theirs.parent / f"dptext_spark-{uid}").mkdir(mode=0o700)
        monkeypatch.setattr(os, "getuid", lambda: uid)
        if variable == "DPTEXT_CACHE":
            with pytest.raises(SettingsError, match=rf"DPTEXT_CACHE: .*chown {uid} {theirs} && chmod 700"):
                user_cache()
        else:
            taken = user_cache()
            assert theirs not in (taken, taken.parent)
            assert taken != theirs.parent / f"dptext_spark-{uid}"

    def test_a_link_counts_for_what_it_leads_to(self, named: Path) -> None:
        (named.parent / "open").mkdir()
        (named.parent / "open").chmod(0o777)
        named.symlink_to(named.parent / "open")
        with pytest.raises(SettingsError, match="other users can write"):
            user_cache()
        (named.parent / "open").chmod(0o700)
        assert user_cache() == named

    @pytest.mark.parametrize("variable", ["DPTEXT_CACHE", "NUMBA_CACHE_DIR"])
    def test_no_machine_code_comes_from_a_folder_that_others_can_write(
        self, homeless: Path, variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The folder is asked for while the package is imported: that goes on, with loops that it compiles itself."""
        monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
        planted = homeless / "planted"
        planted.mkdir()
        planted.chmod(0o777)
        monkeypatch.setenv(variable, str(planted))
        found = Path(jit.code_cache.__wrapped__())
        assert found.is_relative_to(homeless / "tmp")
        assert not found.is_relative_to(planted)
        assert f"{variable}: other users can write" in caplog.text


@pytest.mark.skipif("NUMBA_CACHE_DIR" in os.environ, reason="$NUMBA_CACHE_DIR names one folder for everybody")
def test_numba_keeps_its_own_settings() -> None:
    assert jit.code_cache() != str(module.numba.config.CACHE_DIR)
