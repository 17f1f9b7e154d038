"""The run key from where the settings name it, as far as that goes without Spark: a file, or an environment variable."""

from __future__ import annotations

import base64
import binascii
import os
import re

from dptext_spark.draws import KEY_BYTES, RunKey
from dptext_spark.errors import SettingsError
from dptext_spark.settings.sections import Key

_HEX = re.compile(rb"[0-9A-Fa-f]{%d,}" % (2 * KEY_BYTES))
_MADE_BY = "for example from `openssl rand -base64 32`"


def read_key(key: Key) -> None:
    """Check that a file or a variable that the settings name holds a key; nothing is kept and nothing removed.

    Raises:
        SettingsError: it cannot be read, is too short, or others may read the file.
    """
    if key.file is not None:
        RunKey.from_file(key.file)
    elif key.env is not None:
        _from_environment(key.env)


def taken(key: Key) -> RunKey | None:
    """Return the key as far as it can be had without Spark: of a file, or of a variable, which is removed.

    Raises:
        SettingsError: as :func:`read_key`.
    """
    return take_from_environment(key) if key.file is None else RunKey.from_file(key.file)


def take_from_environment(key: Key) -> RunKey | None:
    """Return the key of the variable that the settings name, and remove it from this process's environment.

    Processes that are started afterwards do not inherit it. Called before Spark starts, it is in no process but the driver.

    Returns:
        The key; None where the settings name no variable.

    Raises:
        SettingsError: the variable is missing, or holds no base64 or hex of 32 bytes or more.
    """
    if key.env is None:
        return None
    found = _from_environment(key.env)
    del os.environ[key.env]
    return found


def _from_environment(name: str) -> RunKey:
    text = os.environ.get(name)
    if not text:
        raise SettingsError(
            f"key.env: the environment variable {name!r} is not set in the driver (a run removes it when it has read it); "
            f"valid: {KEY_BYTES} bytes or more in base64 or hex, {_MADE_BY}."
        )
    return RunKey(decoded(os.fsencode(text), "key.env"), kind="env")


def decoded(text: bytes, field: str) -> bytes:
    """Return the bytes of a key written as text: hex where it is 64 or more hex digits, else base64 (of either alphabet).

    Raises:
        SettingsError: it is neither, or shorter than 32 bytes. The message holds nothing of it but its length.
    """
    plain = b"".join(text.split())
    try:
        if _HEX.fullmatch(plain):
            found = bytes.fromhex(plain.decode("ascii"))
        else:
            standard = plain.translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
            found = base64.b64decode(standard + b"=" * (-len(standard) % 4), validate=True)
    except (ValueError, binascii.Error):
        raise SettingsError(
            f"{field}: {len(plain)} characters that are no base64 and no hex given; valid: {KEY_BYTES} bytes or more in "
            f"base64 or hex, {_MADE_BY}."
        ) from None
    if len(found) < KEY_BYTES:
        raise SettingsError(
            f"{field}: {len(found)} bytes given; valid: {KEY_BYTES} or more in base64 or hex, {_MADE_BY}."
        )
    return found
