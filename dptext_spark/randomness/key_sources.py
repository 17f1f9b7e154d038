"""Where a run key is read from, how a file is opened so that what was checked is what was read, and what is no key.

A key file is opened once. Its kind, owner, mode and size are those of the open descriptor, so that nothing can be put in
its place between the check and the read.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from dptext_spark.errors import SettingsError

KEY_BYTES = 32
MOST_BYTES = 4096  # of a file
DISTINCT = 16
Code = Literal["KEY_MISSING", "KEY_INVALID", "KEY_DIFFERS"]

_HEX = re.compile(rb"[0-9A-Fa-f]+")
_MADE_BY = "for example from `openssl rand -base64 32`"
_RANDOM = f"{KEY_BYTES} random bytes, for example from `head -c {KEY_BYTES} /dev/urandom`"
_OTHERS = 0o077  # the mode bits of group and others


class KeyUnavailableError(SettingsError):
    """A key that is not where it should be, is none, or is another one; the code is all that a worker tells of it."""

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
        """Return the bytes of the key: of a file as they are, of a variable what its base64 or hex stands for.

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
        raise KeyUnavailableError(f"{where} was changed or replaced while it was read; start again.")
    flaw = flaw_of(content)
    if flaw is not None:
        raise KeyUnavailableError(f"{where} is no key: {flaw}; valid: {_RANDOM}.")
    return content


def _check_status(where: str, status: os.stat_result) -> None:
    """Refuse what is no regular file of the caller's own, or root's, that nobody else may touch."""
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        raise KeyUnavailableError(f"{where} cannot be read as a key: it is no regular file.")
    if status.st_uid not in (os.geteuid(), 0):
        raise KeyUnavailableError(
            f"{where} belongs to user {status.st_uid}, and this process runs as user {os.geteuid()}; valid: a file of the "
            "process's own user, or of root.",
        )
    if mode & _OTHERS:
        raise KeyUnavailableError(
            f"{where} may be read or written by others (mode {mode:o}); use `chmod 600`."
        )
    if not KEY_BYTES <= status.st_size <= MOST_BYTES:
        raise KeyUnavailableError(
            f"{where} holds {status.st_size} bytes; {KEY_BYTES} or more are needed, and {MOST_BYTES} at most: {_RANDOM}.",
        )


def _identity(status: os.stat_result) -> tuple[int, ...]:
    return (
        status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_mode, status.st_uid,
    )  # fmt: skip


def _of_variable(name: str) -> bytes:
    text = os.environ.get(name)
    if not text:
        raise KeyUnavailableError(
            f"key.env: the environment variable {name!r} is not set in the driver (a run removes it when it has read it); "
            f"valid: {KEY_BYTES} bytes or more in base64 or hex, {_MADE_BY}.",
            "KEY_MISSING",
        )
    content = decoded(os.fsencode(text), "key.env")
    flaw = flaw_of(content)
    if flaw is not None:
        raise KeyUnavailableError(f"key.env: {name!r} holds no key: {flaw}; valid: {_RANDOM}.")
    return content


def decoded(text: bytes, field: str) -> bytes:
    """Return the bytes of a key written as text: hex where all of it are hex digits, else base64 (of either alphabet).

    Raises:
        KeyUnavailableError: it is neither, or shorter than 32 bytes. The message holds nothing of it but its length.
    """
    found = _decoded(text)
    if found is None:
        raise KeyUnavailableError(
            f"{field}: {len(b''.join(text.split()))} characters that are no base64 and no hex given; valid: {KEY_BYTES} bytes "
            f"or more in base64 or hex, {_MADE_BY}.",
        )
    if len(found) < KEY_BYTES:
        raise KeyUnavailableError(
            f"{field}: {len(found)} bytes given; valid: {KEY_BYTES} or more in base64 or hex, {_MADE_BY}.",
        )
    return found


def _decoded(text: bytes) -> bytes | None:
    """Return what base64 or hex stands for; None where it is neither."""
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
    """Return why bytes are no key; None where nothing speaks against them.

    Base64 and hex are judged by what they stand for. 32 random bytes, plain, in base64 or in hex, are refused with a
    probability below 1e-8, and longer keys with a smaller one.
    """
    if len(content) < KEY_BYTES:
        return f"it holds {len(content)} bytes, and {KEY_BYTES} or more are needed"
    if _is_text(content):
        inside = _decoded(content)
        if inside is None or _is_spaced(content):
            return "it is text, so it is not random"
        if len(inside) < KEY_BYTES:
            return f"its base64 or hex stands for {len(inside)} bytes, and {KEY_BYTES} or more are needed"
        return flaw_of(inside)
    if len(set(content)) < DISTINCT:
        return f"it holds fewer than {DISTINCT} different bytes, so it is not random"
    if _repeats(content):
        return "its bytes repeat or count, so it is not random"
    return None


def _is_text(content: bytes) -> bool:
    """Whether it is UTF-8 that can be printed, or all but a few bytes are of ASCII: text in another encoding."""
    plain = sum(32 <= byte < 127 or byte in b"\t\n\r" for byte in content)
    if len(content) - plain <= len(content) // 16:
        return True
    try:
        return all(one.isprintable() or one in "\t\n\r" for one in content.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _is_spaced(content: bytes) -> bool:
    """Check for blanks within a line, as words have them and base64 has none; hex may."""
    return any(byte in b" \t" for byte in content.strip()) and not _HEX.fullmatch(b"".join(content.split()))


def _repeats(content: bytes) -> bool:
    """Whether at some distance more than a quarter of the byte differences are equal: runs, repeated parts, counters."""
    most = len(content) // 4
    values = content
    for lag in range(min(KEY_BYTES - 1, len(content) // 2) + 1):
        differences = (
            values if lag == 0 else bytes((b - a) % 256 for a, b in zip(values, values[lag:], strict=False))
        )
        if max(Counter(differences).values()) > most:
            return True
    return False
