"""Run keys and keyed randomness.

Draws are AES-256 over 128-bit blocks, a batch at a time (concepts/mechanisms, Draws). The same key gives the same draws.

Every draw is AES over a 16-byte block that says what the draw is for: 128 bits for about 10 ns. The subkey says what the numbers
may be used for at all; lane j of a batch has a subkey of its own. Identities (row, record, unknown word) become 16 bytes by two
keyed polynomial hashes modulo 2^61 - 1, encrypted. Two different identities share a block with a probability of at most
about (n + 1)²·2^-122, for identities of up to 7n bytes.

A run key is read from a file or from an environment variable. Text, patterns and short keys are refused. A key file is opened
once. Its kind, owner, mode and size are those of the open descriptor. So nothing can be put in its place between the check and
the read.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
import stat
from collections import Counter
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
from dptext_spark.runtime.jit import Int, compiled, mul_high

KEY_BYTES = 32
MOST_BYTES = 4096  # of a file
DISTINCT = 16
Code = Literal["KEY_MISSING", "KEY_INVALID", "KEY_DIFFERS"]

_HEX = re.compile(rb"[0-9A-Fa-f]+")
_MADE_BY = "for example from `openssl rand -base64 32`"
_RANDOM = f"{KEY_BYTES} random bytes, for example from `head -c {KEY_BYTES} /dev/urandom`"
_OTHERS = 0o077  # the mode bits of group and others


class KeyUnavailableError(SettingsError):
    """A key that is missing, invalid, or another one; a worker reports the code alone."""

    def __init__(self, message: str, code: Code = "KEY_INVALID") -> None:
        """Take the message for the driver, and the code. Neither holds anything of the key but its length."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class KeySource:
    """A key file or an environment variable, by its name.

    Attributes:
        kind: which of the two.
        place: the file's path, or the variable's name.
    """

    kind: Literal["file", "env"]
    place: str

    def read(self) -> bytes:
        """Return the bytes of the key: a file's unchanged, a variable's decoded from base64 or hex.

        Raises:
            KeyUnavailableError: it is not there, may be read by others, or is no key.
        """
        return _of_file(self.place) if self.kind == "file" else _of_variable(self.place)


def _of_file(path: str) -> bytes:
    """Read a key file, following links: the mounts of a cluster's secrets are links."""
    where = f"key.file: {path!r}"
    try:
        # A FIFO without a writer would block here for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no valid path"
        raise KeyUnavailableError(f"{where} cannot be read ({why}).", "KEY_MISSING") from None
    try:
        before = os.fstat(descriptor)
        _check_status(where, before)
        content = b""
        while len(content) <= MOST_BYTES and (more := os.read(descriptor, MOST_BYTES)):
            content += more
        now = os.stat(path)
    except OSError as error:
        raise KeyUnavailableError(f"{where} cannot be read ({error.strerror}).", "KEY_MISSING") from None
    finally:
        os.close(descriptor)
    if len(content) != before.st_size or _identity(now) != _identity(before):
        raise KeyUnavailableError(f"{where} changed while it was read. Start again.")
    flaw = flaw_of(content)
    if flaw is not None:
        raise KeyUnavailableError(f"{where} is not a key: {flaw}. Choose {_RANDOM}.")
    return content


def _check_status(where: str, status: os.stat_result) -> None:
    """Refuse anything but a regular file of the caller's own, or root's, that nobody else may touch."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        raise KeyUnavailableError(f"{where} is not a regular file. Choose a file.")
    if status.st_uid not in (os.geteuid(), 0):
        raise KeyUnavailableError(
            f"{where} belongs to user {status.st_uid}, but this process runs as user {os.geteuid()}. Choose a file of that "
            "user or of root.",
        )
    if mode & _OTHERS:
        raise KeyUnavailableError(
            f"{where}: other users can read or write it (mode {mode:o}). Use `chmod 600`."
        )
    if not KEY_BYTES <= status.st_size <= MOST_BYTES:
        raise KeyUnavailableError(
            f"{where} has {status.st_size} bytes. Choose a key of {KEY_BYTES} to {MOST_BYTES} bytes: {_RANDOM}.",
        )


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode, status.st_uid,
    )  # fmt: skip


def _of_variable(name: str) -> bytes:
    text = os.environ.get(name)
    if not text:
        raise KeyUnavailableError(
            f"key.env: the environment variable {name!r} is not set in the driver. Set it to {KEY_BYTES} bytes or more in "
            f"base64 or hex, {_MADE_BY}. A run removes the variable after it has read the key.",
            "KEY_MISSING",
        )
    content = decoded(os.fsencode(text), "key.env")
    flaw = flaw_of(content)
    if flaw is not None:
        raise KeyUnavailableError(f"key.env: {name!r} is not a key: {flaw}. Choose {_RANDOM}.")
    return content


def decoded(text: bytes, field: str) -> bytes:
    """Return the bytes of a key written as text: hex where it has only hex digits, else base64 (of either alphabet).

    Raises:
        KeyUnavailableError: it is neither, or shorter than 32 bytes. The message holds only the key's length.
    """
    key_bytes = _decoded(text)
    if key_bytes is None:
        raise KeyUnavailableError(
            f"{field}: {len(b''.join(text.split()))} characters are neither base64 nor hex. Choose {KEY_BYTES} bytes or "
            f"more in base64 or hex, {_MADE_BY}.",
        )
    if len(key_bytes) < KEY_BYTES:
        raise KeyUnavailableError(
            f"{field}: {len(key_bytes)} bytes are too few. Choose {KEY_BYTES} bytes or more in base64 or hex, {_MADE_BY}.",
        )
    return key_bytes


def _decoded(text: bytes) -> bytes | None:
    """Return the bytes that base64 or hex encodes; None where it is neither."""
    plain = b"".join(text.split())
    standard = plain.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        # Hex digits are letters of base64, too; 43 letters of base64 are all hex digits with a probability below 1e-19.
        if _HEX.fullmatch(standard):
            return bytes.fromhex(plain.decode("ascii"))
        return base64.b64decode(standard + b"=" * (-len(standard) % 4), validate=True)
    except (ValueError, binascii.Error):
        return None


def flaw_of(content: bytes) -> str | None:
    """Return the reason why bytes are no key; None if they are one.

    Base64 and hex are judged by the bytes that they encode. 32 random bytes, plain, in base64 or in hex, are refused with a
    probability below 1e-8. Longer keys have a smaller one.
    """
    if len(content) < KEY_BYTES:
        return f"it has {len(content)} bytes, and a key needs {KEY_BYTES} or more"
    if _is_text(content):
        inside = _decoded(content)
        if inside is None or _is_spaced(content):
            return "it is text, so it is not random"
        if len(inside) < KEY_BYTES:
            return f"its base64 or hex has {len(inside)} bytes, and a key needs {KEY_BYTES} or more"
        return flaw_of(inside)
    if len(set(content)) < DISTINCT:
        return f"it has fewer than {DISTINCT} different bytes, so it is not random"
    if _repeats(content):
        return "its bytes repeat or count, so it is not random"
    return None


def _is_text(content: bytes) -> bool:
    """Check that it is printable UTF-8, or ASCII except for a few bytes: text in another encoding."""
    plain = sum(32 <= byte < 127 or byte in b"\t\n\r" for byte in content)
    if len(content) - plain <= len(content) // 16:
        return True
    try:
        return all(character.isprintable() or character in "\t\n\r" for character in content.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _is_spaced(content: bytes) -> bool:
    """Check for blanks within a line, as words have them and base64 has none; hex may."""
    return any(byte in b" \t" for byte in content.strip()) and not _HEX.fullmatch(b"".join(content.split()))


def _repeats(content: bytes) -> bool:
    """Check that at some distance more than a quarter of the byte differences are equal: runs, repeated parts, counters."""
    most = len(content) // 4
    values = content
    for lag in range(min(KEY_BYTES - 1, len(content) // 2) + 1):
        differences = (
            values if lag == 0 else bytes((b - a) % 256 for a, b in zip(values, values[lag:], strict=False))
        )
        if max(Counter(differences).values()) > most:
            return True
    return False


DELIVER = ("closure", "executors")
PRIME = np.uint64((1 << 61) - 1)


@dataclass(frozen=True, repr=False, eq=False)
class RunKey:
    """The secret of a run: as secret as the text. Never printed, logged, or stored by this package.

    Attributes:
        secret: 32 bytes or more.
        is_insecure: made from a seed, for tests only; every output of such a run says so.
        kind: where it comes from, as a run's record names it: given (by the calling program), os, file, env or secret.
        source: where each worker reads it for itself. Such a key never travels: it cannot be pickled, and :meth:`delivered`
            replaces it. None: it travels in the function's closure.

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
            raise SettingsError(f"key: {flaw}. Choose {_RANDOM}.")

    def __repr__(self) -> str:
        """Hide the secret."""
        return "RunKey(hidden)"

    def __getstate__(self) -> object:
        """Allow pickling unless workers read the key themselves. Unpickling does not validate again."""
        if self.source is not None:
            raise SettingsError(
                "key: workers read this key themselves, so that it must not be pickled. Use the result of its `delivered`."
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
        """Read an environment variable of this process, and leave it there: 32 bytes or more in base64 or hex.

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
        """Return a value that binds a record to this key and reveals nothing of the key (HMAC-SHA256 of `context`, hex)."""
        return hmac.new(self.derive("commitment"), context.encode(), hashlib.sha256).hexdigest()

    def delivered(self) -> RunKey | KeyReference:
        """Return the key for a closure: itself, or the place where each worker reads it."""
        if self.source is None:
            return self
        return KeyReference(
            self.source, self.commitment(f"delivered by {self.source.kind} {self.source.place}")
        )


@dataclass(frozen=True)
class KeyReference:
    """The place where a worker reads the run key, and a check that it is the driver's; none of this is secret.

    Attributes:
        source: the file or the variable, as the worker sees it.
        commitment: to the driver's key.
    """

    source: KeySource
    commitment: str


@lru_cache(maxsize=16)
def _read_at_worker(reference: KeyReference) -> RunKey:
    key = RunKey(reference.source.read(), kind=reference.source.kind, source=reference.source)
    if key.delivered() != reference:
        raise KeyUnavailableError(
            f"key.{reference.source.kind}: the worker has another key than the driver. Give both the same key.",
            "KEY_DIFFERS",
        )
    return key


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

    Lane 2j and lane 2j+1 are the halves of the encryption of all blocks under the j-th subkey.
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
        """Return 64 uniform bits for each draw in `rows`, from a single lane: uint64[m]."""
        return self.pair(lane // 2, rows)[:, lane % 2]

    @property
    def blocks(self) -> U64:
        """The block of each draw: uint64[n, 2]. Equal blocks are one draw."""
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
    """Check that an Arrow type is a string or binary one with offsets."""
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
            f"{scope}: the key column has {values.null_count} NULLs in one batch, but every row needs a key."
        )
    if pa.types.is_integer(values.type):
        plain = np.zeros((len(values), 2), np.uint64)
        plain[:, 0] = values.to_numpy(zero_copy_only=False).astype(np.int64).view(np.uint64)
        return encrypt(key.derive("identity", scope, "integer"), plain)
    if not is_bytes(values.type):
        raise DataError(
            f"{scope}: a key column of type {values.type} is not valid. Choose an integer, string or binary column."
        )
    offsets, data = byte_view(values)
    secret = key.derive("identity", scope, "bytes", length=48)
    return encrypt(secret[16:], hash_all(data, offsets, *hash_keys(secret)))
