"""The run key from where the settings name it, as far as that goes without Spark: a file, or an environment variable."""

from __future__ import annotations

import os

from dptext_spark.config.sections import Key
from dptext_spark.errors import SettingsError
from dptext_spark.randomness.draws import RunKey


def read_key(key: Key) -> RunKey | None:
    """Return the key of a file or a variable that the settings name, and remove nothing; None where they name neither.

    Raises:
        SettingsError: it cannot be read, is no key, or others may read the file.
    """
    if key.file is not None:
        return RunKey.from_file(key.file, key.deliver)
    if key.env is not None:
        return RunKey.from_env(key.env, key.deliver)
    return None


def refuse_given(key: Key, given: RunKey | None) -> None:
    """Refuse a key that a program hands in where each worker is to read its own.

    Raises:
        SettingsError: the settings ask for that.
    """
    if given is not None and key.deliver == "executors":
        raise SettingsError(
            "key.deliver: executors given with a key of the calling program, which workers cannot read; valid: the key of the "
            "settings (key.file or key.env), or key.deliver=closure."
        )


def taken(key: Key) -> RunKey | None:
    """Return the key as far as it can be had without Spark: of a file, or of a variable.

    A variable is removed from this process's environment, so that processes that are started afterwards do not inherit it:
    called before Spark starts, the key is in no process but the driver. Where each worker reads its own, it stays: workers of a
    local Spark, which may be started later, inherit the driver's.

    Raises:
        SettingsError: as :func:`read_key`.
    """
    found = read_key(key)
    if key.env is not None and key.deliver == "closure":
        drop_variable(key)
    return found


def drop_variable(key: Key) -> None:
    """Remove the variable that the settings name from this process's environment, if it is there."""
    if key.env is not None:
        os.environ.pop(key.env, None)
