"""Keyed, replayable randomness: AES-256 over 128-bit blocks, a batch at a time (concepts/mechanisms, Draws).

Every draw is AES over a 16-byte block that says what the draw is for: 128 bits for about 10 ns. The subkey says what the
numbers may be used for at all; lane j of a batch has a subkey of its own. Identities (row, record, unknown word) become
16 bytes by two keyed polynomial hashes modulo 2^61 - 1, encrypted: two different identities share a block with a probability of
about (n + 1)²·2^-122 at most, for identities of up to 7n bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dptext_spark.arrays import I64, U8, U64
from dptext_spark.errors import DataError, SettingsError, require_choice
from dptext_spark.randomness.key_sources import KEY_BYTES, KeySource, KeyUnavailableError, flaw_of
from dptext_spark.runtime.jit import Int, compiled, mul_high

DELIVER = ("closure", "executors")
PRIME = np.uint64((1 << 61) - 1)


@dataclass(frozen=True, repr=False, eq=False)
class RunKey:
    """The secret of a run: as secret as the text. Never printed, logged, or stored by this package.

    Attributes:
        secret: 32 bytes or more.
        is_insecure: made from a seed, for tests only; every output of such a run says so.
        kind: where it comes from, as a run's record names it: given (by the calling program), os, file, env or secret.
        source: where each worker reads it for itself. Such a key never travels: it cannot be pickled, and
            :meth:`delivered` stands for it. None: it travels in the function's closure.

    Examples:
        >>> dp.RunKey.generate()
        RunKey(hidden)
        >>> key = dp.RunKey.insecure(seed=1)  # anybody can make it again: for tests, never for a release
        >>> key.is_insecure
        True
    """

    secret: bytes = field(repr=False)
    is_insecure: bool = False
    kind: str = "given"
    source: KeySource | None = None

    def __post_init__(self) -> None:
        """Refuse keys that are short, or plainly not random."""
        flaw = flaw_of(self.secret)
        if flaw is not None:
            raise SettingsError(
                f"key: {flaw}; valid: {KEY_BYTES} random bytes or more, from `head -c {KEY_BYTES} /dev/urandom`."
            )

    def __repr__(self) -> str:
        """Hide the secret."""
        return "RunKey(hidden)"

    def __getstate__(self) -> object:
        """Let a key travel, but for one that must not. What arrives is not judged again."""
        if self.source is not None:
            raise SettingsError(
                "key: delivered by executors, so it must not travel; valid: what its `delivered` returns."
            )
        return dict(self.__dict__)

    @classmethod
    def generate(cls) -> RunKey:
        """Return 32 bytes from the operating system."""
        return cls(secrets.token_bytes(KEY_BYTES))

    @classmethod
    def from_file(
        cls, path: str | os.PathLike[str], deliver: Literal["closure", "executors"] = "closure"
    ) -> RunKey:
        """Read a key file: 32 bytes to 4 kB, of the caller's own or of root, that nobody else may read or write.

        Args:
            path: the file. A link is followed.
            deliver: `closure` sends the key to the workers in the function's closure; with `executors` each worker reads the
                file of this path for itself.

        Raises:
            SettingsError: the file cannot be read, is none that is safe, or holds no key.
        """
        return cls._from(KeySource("file", os.fspath(path)), deliver)

    @classmethod
    def from_env(cls, name: str, deliver: Literal["closure", "executors"] = "closure") -> RunKey:
        """Read an environment variable of this process, which stays: 32 bytes or more in base64 or hex.

        Args:
            name: of the variable.
            deliver: as :meth:`from_file`; with `executors` each worker reads the variable of its own process.

        Raises:
            SettingsError: the variable is missing, or holds no key.
        """
        return cls._from(KeySource("env", name), deliver)

    @classmethod
    def _from(cls, source: KeySource, deliver: Literal["closure", "executors"]) -> RunKey:
        require_choice("key.deliver", deliver, DELIVER)
        return cls(source.read(), kind=source.kind, source=source if deliver == "executors" else None)

    @classmethod
    def insecure(cls, seed: int) -> RunKey:
        """Return a key that anybody can make again from `seed`: for tests only."""
        return cls(hashlib.sha256(b"insecure test key %d" % seed).digest(), is_insecure=True)

    def derive(self, *context: str, length: int = 32) -> bytes:
        """Return a subkey by HKDF-SHA256; each different `context` gives an independent one."""
        info = b"".join(len(part.encode()).to_bytes(4, "little") + part.encode() for part in context)
        return HKDF(hashes.SHA256(), length, salt=b"dptext_spark draws", info=info).derive(self.secret)

    def commitment(self, context: str) -> str:
        """Return a value that binds a record to this key and tells nothing of it (HMAC-SHA256 of `context`, hex)."""
        return hmac.new(self.derive("commitment"), context.encode(), hashlib.sha256).hexdigest()

    def delivered(self) -> RunKey | KeyReference:
        """Return what stands for the key in a closure: itself, or where each worker reads it."""
        if self.source is None:
            return self
        return KeyReference(
            self.source, self.commitment(f"delivered by {self.source.kind} {self.source.place}")
        )


@dataclass(frozen=True)
class KeyReference:
    """Where a worker reads the run key for itself, and what tells whether it is the driver's; nothing of it is secret.

    Attributes:
        source: the file or the variable, as the worker sees it.
        commitment: to the driver's key.
    """

    source: KeySource
    commitment: str


@lru_cache(maxsize=16)
def _read_at_worker(reference: KeyReference) -> RunKey:
    found = RunKey(reference.source.read(), kind=reference.source.kind, source=reference.source)
    if found.delivered() != reference:
        raise KeyUnavailableError(
            f"key.{reference.source.kind}: another key than the driver's is there.", "KEY_DIFFERS"
        )
    return found


def key_at_hand(key: RunKey | KeyReference) -> RunKey:
    """Return the key that a closure brought, or names: then it is read and compared once a process.

    Raises:
        KeyUnavailableError: it is not there, may be read by others, or is another key than the driver's.
    """
    return key if isinstance(key, RunKey) else _read_at_worker(key)


def encrypt(subkey: bytes, blocks: U64) -> U64:
    """Return AES-256 of each block under `subkey`: uint64[n, 2] in, uint64[n, 2] out."""
    encryptor = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()
    plain: U64 = np.ascontiguousarray(blocks, dtype="<u8")
    if plain.size == 0:
        empty: U64 = plain.copy()
        return empty
    out = np.empty(plain.nbytes + 15, dtype=np.uint8)
    written = encryptor.update_into(plain.view(np.uint8).reshape(-1).data, out.data)
    return out[:written].view("<u8").reshape(plain.shape).astype(np.uint64, copy=False)


class Draws:
    """The numbers of a batch, made when they are asked for.

    Lane 2j and lane 2j+1 are the halves of one encryption of all blocks under the j-th subkey.
    """

    def __init__(self, subkey: bytes, blocks: U64, lane_keys: dict[int, bytes] | None = None) -> None:
        """Take a subkey (32 bytes) and what each draw is for: uint64[n, 2].

        `lane_keys` holds the keys that were derived from this subkey so far, where several batches share it.
        """
        self._subkey = subkey
        self._blocks = blocks
        self._lane_keys = {} if lane_keys is None else lane_keys
        self._cached: tuple[int, slice, U64] | None = None

    def __len__(self) -> int:
        """Return the number of draws."""
        return len(self._blocks)

    def take(self, rows: I64) -> Draws:
        """Return the draws at some positions, as if the others had never been asked for."""
        return Draws(self._subkey, self._blocks[rows], self._lane_keys)

    def pair(self, index: int, rows: slice = slice(None)) -> U64:
        """Return lanes 2·index and 2·index+1 of the draws in `rows`: uint64[m, 2]."""
        if self._cached is None or self._cached[:2] != (index, rows):
            self._cached = (index, rows, encrypt(self._lane_key(index), self._blocks[rows]))
        return self._cached[2]

    def _lane_key(self, index: int) -> bytes:
        if index not in self._lane_keys:
            info = b"lane %d" % index
            self._lane_keys[index] = HKDF(hashes.SHA256(), 32, salt=None, info=info).derive(self._subkey)
        return self._lane_keys[index]

    def u64(self, lane: int, rows: slice = slice(None)) -> U64:
        """Return 64 uniform bits for each draw in `rows`, of one lane: uint64[m]."""
        return self.pair(lane // 2, rows)[:, lane % 2]

    @property
    def blocks(self) -> U64:
        """What each draw is for: uint64[n, 2]. Equal blocks are one draw."""
        return self._blocks


@compiled
def _mulmod(a: Int, b: Int) -> Int:
    """Return a·b mod 2^61-1 for a, b < 2^61."""
    high = mul_high(a, b)
    low = a * b
    total = (low & PRIME) + ((low >> np.uint64(61)) | (high << np.uint64(3)))
    total = (total & PRIME) + (total >> np.uint64(61))
    return total - PRIME if total >= PRIME else total


@compiled
def hash_bytes(data: Any, start: Int, end: Int, k0: Int, k1: Int) -> tuple[Int, Int]:
    """Hash data[start:end] (uint8[:]) to two numbers below 2^61-1: polynomials in two keys over 7-byte chunks."""
    a = np.uint64(1)
    b = np.uint64(1)
    i = start
    while i < end:
        chunk = np.uint64(0)
        for j in range(min(7, end - i)):
            chunk |= np.uint64(data[i + j]) << np.uint64(8 * j)
        a = _mulmod(a, k0) + chunk
        a = a - PRIME if a >= PRIME else a
        b = _mulmod(b, k1) + chunk
        b = b - PRIME if b >= PRIME else b
        i += 7
    size = np.uint64(end - start)
    a = _mulmod(a, k0) + size
    b = _mulmod(b, k1) + size
    return _mulmod(a % PRIME, k0), _mulmod(b % PRIME, k1)


@compiled
def hash_all(data: Any, offsets: Any, k0: Int, k1: Int) -> Any:
    """Hash every data[offsets[i]:offsets[i+1]]: uint64[n, 2]."""
    n = offsets.shape[0] - 1
    out = np.empty((n, 2), np.uint64)
    for i in range(n):
        out[i, 0], out[i, 1] = hash_bytes(data, offsets[i], offsets[i + 1], k0, k1)
    return out


def hash_keys(secret: bytes) -> tuple[np.uint64, np.uint64]:
    """Turn 16 bytes into the two keys of :func:`hash_bytes`, each in [2, 2^61-2]."""
    k = np.frombuffer(secret[:16], dtype="<u8") & PRIME
    return (
        np.uint64(max(2, int(k[0]) % (int(PRIME) - 1))),
        np.uint64(max(2, int(k[1]) % (int(PRIME) - 1))),
    )


def byte_view(values: pa.Array) -> tuple[I64, U8]:
    """Return (offsets int64[n+1], bytes uint8[...]) of a string or binary array, sliced arrays included; NULL is empty."""
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, offsets, data = values.buffers()
    raw = (
        np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
        if offsets is not None
        else np.zeros(1, np.int32)
    )
    window = raw[values.offset : values.offset + len(values) + 1].astype(np.int64)
    content = np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, np.uint8)
    return window if len(window) else np.zeros(1, np.int64), content


def is_bytes(kind: pa.DataType) -> bool:
    """Whether an Arrow type is a string or binary one with offsets."""
    t = pa.types
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind))


def identify(values: pa.Array, key: RunKey, scope: str) -> U64:
    """Turn identities into 128 keyed bits each.

    Args:
        values: int64, string or binary [n]; no NULLs.
        key: the run key.
        scope: what the identities are of; equal values in two scopes give unrelated bits.

    Returns:
        uint64[n, 2].

    Raises:
        DataError: a NULL, or a type that is neither.
    """
    if values.null_count:
        raise DataError(
            f"{scope}: the key column holds {values.null_count} NULLs in one batch; every row needs a key."
        )
    if pa.types.is_integer(values.type):
        plain = np.zeros((len(values), 2), np.uint64)
        plain[:, 0] = values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        return encrypt(key.derive("identity", scope, "integer"), plain)
    if not is_bytes(values.type):
        raise DataError(
            f"{scope}: a key column of type {values.type}; valid: an integer, string or binary column."
        )
    offsets, data = byte_view(values)
    secret = key.derive("identity", scope, "bytes", length=48)
    return encrypt(secret[16:], hash_all(data, offsets, *hash_keys(secret)))
