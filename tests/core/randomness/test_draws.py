"""Draws: the run key, the numbers, and the identities, each against arithmetic that is spelt out here."""

from __future__ import annotations

import copy
import hashlib
import pickle
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dptext_spark import randomness
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.randomness import Draws, RunKey, encrypt, hash_keys, identify, key_at_hand

PRIME = 2**61 - 1
KEY = RunKey.insecure(1)
SECRET = hashlib.sha256(b"a key of the tests").digest()


def distinct(*arrays: np.ndarray) -> bool:
    """Whether no number occurs twice: for n random ones of 64 bits the chance of a false alarm is n²/2^65."""
    together = np.concatenate([np.asarray(a).reshape(-1) for a in arrays])
    return len(np.unique(together)) == len(together)


def counting(n: int) -> np.ndarray:
    return np.stack([np.arange(n, dtype=np.uint64), np.zeros(n, np.uint64)], axis=1)


class TestRunKey:
    def test_keys_of_the_operating_system_differ(self) -> None:
        first, second = RunKey.generate(), RunKey.generate()
        assert len(first.secret) == 32
        assert first.secret != second.secret
        assert not first.is_insecure

    def test_a_seed_is_for_tests_and_says_so(self) -> None:
        assert RunKey.insecure(3).secret == RunKey.insecure(3).secret != RunKey.insecure(4).secret
        assert RunKey.insecure(3).is_insecure
        again = pickle.loads(pickle.dumps(KEY))
        assert (again.secret, again.is_insecure) == (KEY.secret, True)
        assert RunKey.insecure(-1).secret != RunKey.insecure(1).secret

    def test_it_is_never_printed(self) -> None:
        key = RunKey(SECRET)
        shown = f"{key} {key!r} {[key]} {key!s:>50} %s" % key
        assert "hidden" in shown
        for form in (key.secret.hex(), repr(key.secret), str(list(key.secret)), "\\x00"):
            assert form not in shown

    def test_a_key_that_each_worker_reads_does_not_travel(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_bytes(SECRET)
        file.chmod(0o600)
        key = RunKey.from_file(file, deliver="executors")
        for travels in (pickle.dumps, copy.deepcopy):
            with pytest.raises(SettingsError, match="must not be pickled"):
                travels(key)
        sent = pickle.dumps(key.delivered())
        assert SECRET not in sent
        assert len(sent) < 1_000
        there = key_at_hand(pickle.loads(sent))
        assert there.secret == SECRET
        assert there.derive("a") == key.derive("a")
        assert key_at_hand(pickle.loads(sent)) is there  # once a process
        assert key_at_hand(KEY.delivered()) is KEY

    def test_a_worker_takes_no_other_key_than_the_drivers(self, tmp_path: Path) -> None:
        file = tmp_path / "key"
        file.write_bytes(SECRET)
        file.chmod(0o600)
        sent = pickle.dumps(RunKey.from_file(file, deliver="executors").delivered())
        file.write_bytes(SECRET[::-1])
        with pytest.raises(randomness.KeyUnavailableError, match="another key than the driver") as differs:
            key_at_hand(pickle.loads(sent))
        file.chmod(0o640)
        with pytest.raises(randomness.KeyUnavailableError, match="other users can read") as invalid:
            key_at_hand(pickle.loads(sent))
        file.unlink()
        with pytest.raises(randomness.KeyUnavailableError, match="cannot be read") as missing:
            key_at_hand(pickle.loads(sent))
        codes = [error.value.code for error in (differs, invalid, missing)]
        assert codes == ["KEY_DIFFERS", "KEY_INVALID", "KEY_MISSING"]
        file.write_bytes(SECRET)
        file.chmod(0o600)
        assert key_at_hand(pickle.loads(sent)).secret == SECRET  # no failure is remembered
        file.write_bytes(SECRET[::-1])
        assert key_at_hand(pickle.loads(sent)).secret == SECRET  # what was loaded is what was committed to
        new = RunKey.from_file(file, deliver="executors").delivered()
        assert key_at_hand(new).secret == SECRET[::-1]

    def test_a_variable_of_the_workers_own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RUN_KEY", SECRET.hex())
        sent = RunKey.from_env("RUN_KEY", deliver="executors").delivered()
        monkeypatch.delenv("RUN_KEY")
        with pytest.raises(randomness.KeyUnavailableError, match="is not set") as missing:
            key_at_hand(sent)
        assert missing.value.code == "KEY_MISSING"
        monkeypatch.setenv("RUN_KEY", SECRET.hex())
        assert key_at_hand(sent).secret == SECRET

    def test_an_unknown_way_to_deliver_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(SettingsError, match=r"key\.deliver.*'broadcast'.*closure or executors"):
            RunKey.from_file(tmp_path / "none", deliver="broadcast")  # type: ignore[arg-type]

    def test_subkeys_depend_on_every_part(self) -> None:
        parts = [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("", "abc"), ("ab", "c", ""), ("c", "ab")]
        parts.append(())
        keys = [KEY.derive(*p) for p in parts] + [RunKey.insecure(2).derive(*p) for p in parts]
        assert len(set(keys)) == len(keys)
        assert all(len(k) == 32 for k in keys)
        assert KEY.derive("é") == KEY.derive("é") != KEY.derive("e\u0301")
        assert KEY.derive("a", length=48)[:32] == KEY.derive("a")

    def test_commitment(self) -> None:
        made = KEY.commitment("run 1")
        assert made == RunKey.insecure(1).commitment("run 1")
        assert len({made, KEY.commitment("run 2"), RunKey.insecure(2).commitment("run 1")}) == 3
        assert len(bytes.fromhex(made)) == 32
        assert bytes.fromhex(made) not in (KEY.secret, KEY.derive("commitment"))


class TestDraws:
    def test_the_block_cipher_is_aes_256(self) -> None:
        """FIPS 197, appendix C.3."""
        key = bytes(range(32))
        block = np.frombuffer(bytes.fromhex("00112233445566778899aabbccddeeff"), "<u8").reshape(1, 2)
        assert encrypt(key, block).tobytes().hex() == "8ea2b7ca516745bfeafc49904b496089"
        many = np.repeat(block, 1000, axis=0)
        assert (encrypt(key, many) == encrypt(key, block)).all()
        assert encrypt(key, block[:0]).shape == (0, 2)

    def test_the_same_key_and_block_give_the_same_number(self) -> None:
        blocks = counting(1000)
        first, second = Draws(bytes(32), blocks), Draws(bytes(32), blocks[::-1])
        for lane in (0, 1, 2, 7):
            assert (first.u64(lane) == second.u64(lane)[::-1]).all()
            assert (first.u64(lane) == first.u64(lane)).all()

    def test_slices(self) -> None:
        draws = Draws(bytes(32), counting(100))
        whole = {lane: draws.u64(lane).copy() for lane in range(4)}
        assert len(draws) == 100
        for rows in (slice(None), slice(0, 0), slice(3, 50), slice(50, None), slice(99, 100)):
            for lane in (0, 3, 1, 2):
                assert (draws.u64(lane, rows) == whole[lane][rows]).all()
                assert (draws.pair(lane // 2, rows)[:, lane % 2] == whole[lane][rows]).all()
        taken = draws.take(np.array([7, 99, 7, 0]))
        assert (taken.blocks == counting(100)[[7, 99, 7, 0]]).all()
        assert all((taken.u64(lane) == whole[lane][[7, 99, 7, 0]]).all() for lane in range(4))

    def test_lanes_blocks_and_keys_are_independent(self) -> None:
        draws, other = Draws(bytes(32), counting(100_000)), Draws(KEY.derive("x"), counting(100_000))
        assert distinct(*(d.u64(lane) for d in (draws, other) for lane in range(4)))
        # Low bits and high bits are fair: 6 standard deviations.
        for bit in (0, 1, 31, 62, 63):
            ones = int((draws.u64(0) >> np.uint64(bit) & np.uint64(1)).sum())
            assert abs(ones - 50_000) < 6 * np.sqrt(25_000)

    def test_other_memory_layouts(self) -> None:
        blocks = np.asfortranarray(counting(50))
        assert (encrypt(bytes(32), blocks) == encrypt(bytes(32), counting(50))).all()
        assert (encrypt(bytes(32), counting(100)[::2]) == encrypt(bytes(32), counting(100))[::2]).all()


def plain_hash(data: bytes, k0: int, k1: int) -> tuple[int, int]:
    """Two polynomials over chunks of 7 bytes and the length, modulo 2^61 - 1, in Python's integers."""
    out = []
    for k in (k0, k1):
        value = 1
        for i in range(0, len(data), 7):
            value = (value * k + int.from_bytes(data[i : i + 7], "little")) % PRIME
        value = (value * k + len(data)) % PRIME
        out.append(value * k % PRIME)
    return out[0], out[1]


class TestHash:
    @given(
        data=st.binary(max_size=60) | st.sampled_from([b"\xff" * 7, b"\0" * 7, b"\0" * 8, b"\xff" * 70]),
        secret=st.binary(min_size=16, max_size=16) | st.sampled_from([bytes(16), b"\xff" * 16]),
    )
    def test_against_big_integers(self, data: bytes, secret: bytes) -> None:
        k0, k1 = hash_keys(secret)
        assert 2 <= int(k0) <= PRIME - 2
        assert 2 <= int(k1) <= PRIME - 2
        padded = np.frombuffer(b"xyz" + data + b"tail", np.uint8)
        found = randomness.hash_bytes(padded, 3, 3 + len(data), k0, k1)
        assert tuple(map(int, found)) == plain_hash(data, int(k0), int(k1))


class TestIdentify:
    @pytest.mark.long
    def test_no_two_of_a_million_are_equal(self) -> None:
        numbers = pa.array(np.arange(-500_000, 500_000))
        texts = pa.array([f"ticket-{i}" for i in range(1_000_000)])
        for values in (numbers, texts):
            found = identify(values, KEY, "row")
            assert found.shape == (1_000_000, 2)
            # Each half alone: 64 bits of a million, a false alarm in 10^7.
            assert distinct(found)

    @pytest.mark.parametrize(
        ("values", "kinds"),
        [
            ([0, 1, 100], [pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]),
            ([-1], [pa.int64(), pa.int8(), pa.int16(), pa.int32()]),
            (["a", "", "é", "x" * 100], [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]),
        ],
    )
    def test_the_type_of_a_value_does_not_matter(self, values: list[Any], kinds: list[pa.DataType]) -> None:
        wanted, *others = (identify(pa.array(values).cast(kind), KEY, "row") for kind in kinds)
        assert all((other == wanted).all() for other in others)

    def test_integers_strings_scopes_and_keys_are_apart(self) -> None:
        numbers, texts = pa.array(range(1000)), pa.array([str(i) for i in range(1000)])
        every = product((numbers, texts), (KEY, RunKey.insecure(2)), ("row", "record"))
        assert distinct(*(identify(*each) for each in every))
        assert distinct(identify(pa.array([2**63, 2**64 - 1, 0], pa.uint64()), KEY, "row"))

    @pytest.mark.parametrize("kind", [pa.int64(), pa.int16(), pa.string(), pa.large_string(), pa.binary()])
    def test_slices(self, kind: pa.DataType) -> None:
        plain = pa.int64() if pa.types.is_integer(kind) else pa.string()
        values = pa.array([str(i) for i in range(40)]).cast(plain)
        values = values.cast(kind)
        whole = identify(values, KEY, "row")
        for start, length in ((0, 40), (7, 11), (39, 1), (40, 0), (5, 0)):
            assert (identify(values.slice(start, length), KEY, "row") == whole[start : start + length]).all()
        assert (identify(values.slice(3).slice(4, 9), KEY, "row") == whole[7:16]).all()
        assert identify(pa.array([], kind), KEY, "row").shape == (0, 2)

    @pytest.mark.parametrize(
        "values",
        [
            *(pa.array(values) for values in ([1, None], ["PRIVATE", None], [1.5], [True], [["a"]])),
            pa.array([None, None], pa.string()),
            pa.array(["PRIVATE"]).dictionary_encode(),
            pa.nulls(0),
        ],
    )
    def test_nulls_and_other_types_are_refused(self, values: pa.Array) -> None:
        with pytest.raises(DataError, match=r"row: .*(NULL|a key column of type)") as raised:
            identify(values, KEY, "row")
        assert "PRIVATE" not in str(raised.value)
        nulls = pa.array([None, "a", "b"])  # what is sliced away does not count
        assert (identify(nulls.slice(1), KEY, "row") == identify(pa.array(["a", "b"]), KEY, "row")).all()
