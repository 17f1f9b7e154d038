"""Key files and variables: what is opened, what is checked on the open descriptor, and what is no key."""

from __future__ import annotations

import base64
import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dptext_spark import randomness
from dptext_spark.errors import SettingsError
from dptext_spark.randomness import KEY_BYTES, KeyUnavailableError, RunKey, decoded, flaw_of

SECRET = hashlib.sha256(b"a key of the tests").digest()
OTHER = hashlib.sha256(b"another key of the tests").digest()
PROSE = b"nobody else will ever guess that this is the key of our runs"


@pytest.fixture(autouse=True)
def _no_test_hangs() -> Iterator[None]:
    """Reading a FIFO or an endless device the wrong way never returns."""

    def ring(*_: object) -> None:
        raise TimeoutError("reading a key hangs")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "run.key"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


class TestWhatIsOpened:
    @pytest.mark.parametrize(
        ("name", "code"),
        [
            ("fifo", "KEY_INVALID"),
            ("/dev/zero", "KEY_INVALID"),
            ("/dev/urandom", "KEY_INVALID"),
            ("/dev/null", "KEY_INVALID"),
            ("missing", "KEY_MISSING"),
            ("link to nowhere", "KEY_MISSING"),
            ("link to itself", "KEY_MISSING"),
            ("a\0name", "KEY_MISSING"),
            (".", "KEY_INVALID"),
        ],
    )
    def test_what_is_no_regular_file_is_refused(self, name: str, code: str, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "fifo", 0o600)
        (tmp_path / "link to nowhere").symlink_to("none")
        (tmp_path / "link to itself").symlink_to("link to itself")
        with pytest.raises(KeyUnavailableError, match=r"^key\.file: ") as caught:
            RunKey.from_file(os.path.join(tmp_path, name))
        assert caught.value.code == code

    def test_a_link_as_clusters_mount_secrets(self, file: Path) -> None:
        mount = file.parent / "mount"
        (mount / "..2026_01_01").mkdir(parents=True)
        file.rename(mount / "..2026_01_01" / "key")
        (mount / "..data").symlink_to("..2026_01_01")
        (mount / "key").symlink_to("..data/key")
        assert RunKey.from_file(mount / "key").secret == SECRET

    def test_the_descriptor_is_closed(self, file: Path) -> None:
        before = set(os.listdir("/proc/self/fd"))
        RunKey.from_file(file)
        file.chmod(0o644)
        with pytest.raises(SettingsError):
            RunKey.from_file(file)
        assert set(os.listdir("/proc/self/fd")) == before


class TestWhatIsCheckedOnTheDescriptor:
    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622, 0o644, 0o777, 0o610, 0o601])
    def test_others_must_not_read_it(self, file: Path, mode: int) -> None:
        file.chmod(mode)
        with pytest.raises(SettingsError, match=rf"mode {mode:o}.*chmod 600"):
            RunKey.from_file(file)
        file.chmod(0o400)
        key = RunKey.from_file(str(file))
        assert (key.secret, key.is_insecure) == (SECRET, False)

    def test_whose_it_is(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if os.geteuid() == 0:
            with monkeypatch.context() as patch:  # a file of root is taken
                patch.setattr(os, "geteuid", lambda: 4711)
                assert RunKey.from_file(file).secret == SECRET
            os.chown(file, 4711, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(KeyUnavailableError, match=r"belongs to user .* Choose "):
            RunKey.from_file(file)

    @pytest.mark.parametrize("size", [0, 31, 32, 4096, 4097, 100_000])
    def test_sizes(self, file: Path, size: int) -> None:
        content = np.random.default_rng(0).bytes(size)
        file.write_bytes(content)
        if 32 <= size <= 4096:
            assert RunKey.from_file(file).secret == content
            return
        with pytest.raises(SettingsError, match=f"has {size} bytes. Choose a key of 32 to 4096 bytes"):
            RunKey.from_file(file)

    @pytest.mark.parametrize(
        "how", ["another in its place", "written over", "a link is turned", "made longer"]
    )
    def test_a_file_that_is_swapped(self, how: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        other = file.with_name("other")
        other.write_bytes(OTHER)
        other.chmod(0o600)
        path = file
        if "link" in how:
            path = file.with_name("link")
            path.symlink_to(file.name)

        def swap() -> None:
            if "in its place" in how:
                os.replace(other, file)
            elif "link" in how:
                path.unlink()
                path.symlink_to(other.name)
            elif "longer" in how:
                file.write_bytes(SECRET + OTHER)
            else:
                file.write_bytes(OTHER)
                os.utime(file, ns=(1, 1))

        _after_the_check(monkeypatch, swap)
        with pytest.raises(SettingsError, match="changed while it was read"):
            RunKey.from_file(path)


def _after_the_check(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Let something happen between a look at the file's status and the reading."""
    real = randomness._check_status

    def looked(where: str, status: os.stat_result) -> None:
        real(where, status)
        act()

    monkeypatch.setattr(randomness, "_check_status", looked)


def _counter(width: int, first: int) -> bytes:
    return b"".join((first + i).to_bytes(width, "big") for i in range(64 // width))


NO_KEYS = {
    "prose": PROSE,
    "prose of another alphabet": "никто не угадает этого ключа никогда".encode(),
    "prose in latin-1": "liebe grüße aus berlin an euch alle zusammen".encode("latin-1"),
    "prose in utf-16": "nobody will guess this".encode("utf-16"),
    "prose and a NUL": PROSE + b"\0",
    "a passphrase with digits": b"p4ssw0rd!Tr0ub4dor&3-c0rrect-h0rse-b4ttery",
    "a PEM file": b"-----BEGIN PRIVATE KEY-----\n" + base64.encodebytes(SECRET * 2) + b"-----END PRIVATE KEY-----\n",
    "JSON": b'{"key": "' + base64.b64encode(SECRET) + b'"}',
    "one byte": b"\xee" * 40,
    "one byte and little else": SECRET[:23] + bytes(9),
    "a part that repeats": SECRET[:16] * 2,
    "a short part that repeats": SECRET[:5] * 9,
    "counting up": bytes(range(32)),
    "counting down by seven": bytes((250 - 7 * i) % 256 for i in range(40)),
    "counting over the end": bytes(i % 256 for i in range(200, 300)),
    "counting with a gap": bytes(range(16)) + bytes(range(100, 116)),
    "a counter of two bytes": _counter(2, 0xA1F0),
    "a counter of four bytes": _counter(4, 0xA1F0_33D7),
    "a counter of eight bytes": _counter(8, 0xA1F0_33D7_5EC8_9B20),
    "few different bytes": bytes(SECRET[i % 7] ^ SECRET[i // 7] & 1 for i in range(40)),
    "base64 of prose": base64.b64encode(PROSE),
    "hex of prose": PROSE.hex().encode(),
    "base64 of a counting sequence": base64.b64encode(bytes(range(40))),
    "hex of one byte": b"ab" * 32,
    "hex of 31 bytes": SECRET[:31].hex().encode(),
    "base64 of 31 bytes": base64.b64encode(SECRET[:31]),
    "base64 of base64 of prose": base64.b64encode(base64.b64encode(PROSE)),
}  # fmt: skip
KEYS = {
    "bytes": SECRET,
    "base64": base64.b64encode(SECRET),
    "base64 with a line's end": base64.b64encode(SECRET) + b"\n",
    "base64 over two lines": base64.encodebytes(SECRET + OTHER),
    "base64 for addresses, without padding": base64.urlsafe_b64encode(SECRET).rstrip(b"="),
    "hex": SECRET.hex().encode(),
    "HEX with a line's end": SECRET.hex().upper().encode() + b"\r\n",
    "base64 of hex": base64.b64encode(SECRET.hex().encode()),
    "33 bytes": SECRET + b"\n",
}


class TestWhatIsNoKey:
    @pytest.mark.parametrize("name", NO_KEYS)
    def test_a_file_is_refused_and_not_shown(self, name: str, file: Path) -> None:
        file.write_bytes(NO_KEYS[name])
        with pytest.raises(KeyUnavailableError, match=r"key\.file: .* is not a key: ") as caught:
            RunKey.from_file(file)
        said = str(caught.value)
        assert caught.value.code == "KEY_INVALID"
        assert not any(word in said for word in ("guess", "orrect", "abab", SECRET.hex()[:8]))

    @pytest.mark.parametrize("name", KEYS)
    def test_a_file_stays_the_key_that_it_was(self, name: str, file: Path) -> None:
        file.write_bytes(KEYS[name])
        assert RunKey.from_file(file).secret == KEYS[name]

    @pytest.mark.parametrize("content", [*NO_KEYS.values(), *(b"\xee" * n for n in (0, 1, 31)), bytes(32)])
    def test_an_object_is_judged_as_a_file_is(self, content: bytes) -> None:
        with pytest.raises(SettingsError, match="key: "):
            RunKey(content)

    @pytest.mark.parametrize("digits", [1, 43, 44, 62, 63, 65])
    @pytest.mark.parametrize("padding", ["", "=="])
    def test_hex_digits_are_no_base64(self, digits: int, padding: str) -> None:
        text = (SECRET + OTHER).hex()[:digits] + padding
        with pytest.raises(KeyUnavailableError, match=r"neither base64 nor hex|bytes are too few"):
            decoded(text.encode(), "key.env")


class TestRandomKeys:
    @given(st.integers(0, 1 << 64), st.integers(32, 80))
    def test_they_are_taken_however_they_are_written(self, seed: int, size: int) -> None:
        content = np.random.default_rng(seed).bytes(size)
        for form in (content, base64.b64encode(content), content.hex().encode(), base64.encodebytes(content)):
            assert flaw_of(form) is None

    @given(st.binary(min_size=KEY_BYTES, max_size=80))
    @example(bytes(40))
    @example(PROSE)
    def test_hex_is_judged_by_what_it_stands_for(self, content: bytes) -> None:
        assert flaw_of(content.hex().encode()) == flaw_of(content)

    def test_the_probability_to_refuse_one_is_below_one_in_a_hundred_million(self) -> None:
        """A bound for 32 random bytes: the sum over all that a key is refused for."""
        n, plain = KEY_BYTES, 98 / 256
        nearly_ascii = sum(comb(n, k) * plain ** (n - k) * (1 - plain) ** k for k in range(n // 16 + 1))
        # How likely so many bytes are characters of one to four bytes, none of control.
        utf8 = [0.0, 0.0, 0.0, 1.0]
        for _ in range(n):
            sizes = (plain, 30 * 64 / 2**16, 15 * 64**2 / 2**24, 4 * 64**3 / 2**32)
            utf8.append(sum(share * utf8[-size] for size, share in enumerate(sizes, 1)))
        repeats = sum(256 * comb(n - lag, n // 4 + 1) / 256.0 ** (n // 4 + 1) for lag in range(n // 2 + 1))
        few = comb(256, randomness.DISTINCT - 1) * ((randomness.DISTINCT - 1) / 256) ** n
        raw = nearly_ascii + utf8[-1] + repeats + few
        hex_digits_in_base64 = (22 / 64) ** 42
        assert raw < 1e-10
        assert raw + hex_digits_in_base64 < 1e-8
