"""Providers by import path: code of the user's own, which the settings name and each worker imports.

What is imported is named by settings alone. The policy of a model names its providers, and the model is opened only where the
settings name the same ones: nothing is imported before that is known. Its fingerprint binds path and version of each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version

import pyarrow as pa

from dptext_spark.errors import DPTextError, SettingsError
from dptext_spark.runtime.validation import Record
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import (
    FAILED,
    SPANS,
    Provider,
    ProviderError,
    TypedSpans,
    check_providers,
    provided,
)

FIELD = "policy.providers"
MOST = 16
LONGEST = 200  # characters of an import path, a name or a version
_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")
# What a provider is tried on when a run starts.
_TRIED = (None, "", "Ada met Zoë in Oslo on T-1234, a@b.example")
EXPECTED = (
    "a class package.module:Class that can be imported on the driver and on every node, and made without arguments, with types, "
    "a method find(texts) that returns TypedSpans, and a version, its own or that of the package that it comes from"
)


class ProviderImportError(SettingsError):
    """A provider cannot be imported or made here, or is none.

    Attributes:
        code: what a worker says of it.
    """

    def __init__(self, message: str, code: str) -> None:
        """Take a message, and a code with the provider's number."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class ProviderRecord(Record):
    """What is known of a provider: what the fingerprint of a model binds, in the order of the settings.

    Attributes:
        path: `package.module:Class`.
        name: that it gives itself, or its path.
        version: its own, or that of the package that it comes from.
        types: of its spans.
    """

    path: str
    name: str
    version: str
    types: tuple[str, ...]

    def __str__(self) -> str:
        """As a person reads it."""
        return f"{self.name}, version {self.version} ({self.path})" if self.name != self.path else (
            f"{self.path}, version {self.version}"
        )  # fmt: skip


@dataclass(frozen=True)
class ImportedProvider:
    """A provider by its import path. It travels as that: each process imports it for itself, once.

    Attributes:
        record: what it says of itself.
        number: its place in the settings, from 0.
    """

    record: ProviderRecord
    number: int

    @property
    def name(self) -> str:
        """That it gives itself."""
        return self.record.name

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its spans."""
        return self.record.types

    def require(self) -> Provider:
        """Return the object, imported here if it was not yet.

        Raises:
            ProviderImportError: it cannot be imported.
        """
        return _made(self.record.path, self.number)[0]

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return its spans.

        Raises:
            ProviderError: it failed, or wants to keep something in clear.
        """
        made = self.require()
        try:
            found = made.find(texts)
        except (Exception, SystemExit) as error:  # its message may hold the text
            said = f"provider {self.name!r}: it failed with {type(error).__name__}."
            raise ProviderError(said, FAILED, self.number) from None
        if isinstance(found, TypedSpans) and found.kept.any():
            raise ProviderError(f"provider {self.name!r}: it keeps words in clear.", SPANS, self.number)
        return found

    def try_out(self) -> None:
        """Ask it about texts that are no secret.

        Raises:
            SettingsError: it fails, or what it gives are no spans.
        """
        texts = pa.array(_TRIED, pa.string())
        try:
            provided(self, self.number, *padded(texts), texts)
        except ProviderError as error:
            raise SettingsError(f"{FIELD}[{self.number}]: tried on texts of our own, {error}") from None


def check_paths(paths: object) -> tuple[str, ...]:
    """Return import paths as settings give them. Nothing is imported.

    Raises:
        SettingsError: no list of import paths, or one twice.
    """
    valid = "valid: a list of import paths such as package.module:Class, each once"
    if isinstance(paths, str) or not isinstance(paths, Sequence):
        raise SettingsError(f"{FIELD}: {type(paths).__name__} given; {valid}.")
    for number, path in enumerate(paths):
        if not isinstance(path, str) or len(path) > LONGEST or not _PATH.fullmatch(path):
            given = repr(path[:LONGEST]) if isinstance(path, str) else type(path).__name__
            raise SettingsError(f"{FIELD}[{number}]: {given} given; {valid}.")
        if path.startswith("__main__"):
            raise SettingsError(
                f"{FIELD}[{number}]: {path!r} given, but no worker can import the driver's own script; valid: a class of "
                "a module."
            )
        if path in paths[:number]:
            raise SettingsError(f"{FIELD}[{number}]: {path!r} is named twice; {valid}.")
    if len(paths) > MOST:
        raise SettingsError(f"{FIELD}: {len(paths)} given; valid: at most {MOST}.")
    return tuple(paths)


def import_providers(
    paths: Sequence[str], reserved: Sequence[str] = (), *, tried: bool = False
) -> tuple[ImportedProvider, ...]:
    """Import what the settings name.

    Args:
        paths: of `policy.providers`.
        reserved: types that others find.
        tried: whether each is asked about texts of our own, so that what fails at once fails before anything is read.

    Raises:
        SettingsError: a provider cannot be imported, is none, or has types that are taken.
    """
    found = tuple(
        ImportedProvider(_made(path, number)[1], number) for number, path in enumerate(check_paths(paths))
    )
    check_providers(found, reserved, FIELD)
    if tried:
        for one in found:
            one.try_out()
    return found


def require_named(given: Sequence[str], named: Sequence[str], place: str) -> None:
    """Refuse a model whose providers are not those that the settings name; nothing is imported.

    Raises:
        SettingsError: such a model.
    """
    if list(given) != list(named):
        listed = ", ".join(named) or "none"
        raise SettingsError(
            f"{FIELD}: {listed} given, but the model in {place} was made with {', '.join(given) or 'none'}. Providers are code, "
            "and a model's run only where the settings name the same ones in the same order; nothing was imported."
        )


def check_imported(paths: Sequence[str], imported: Sequence[ImportedProvider]) -> None:
    """Refuse a policy without the providers that it names, or with others.

    Raises:
        SettingsError: such a policy.
    """
    made = tuple(one.record.path for one in imported)
    if made != tuple(paths):
        raise SettingsError(
            f"{FIELD}: {list(paths)} given, and the privatizer has {list(made)}; valid: a model that `compile` or `prepare` made "
            "of the policy."
        )


def _made(path: str, number: int) -> tuple[Provider, ProviderRecord]:
    """Return a provider and what it says of itself.

    Raises:
        ProviderImportError: it cannot be imported or made, or is none.
    """
    try:
        return _imported(path)
    except _NoProviderError as error:
        raise ProviderImportError(
            f"{FIELD}[{number}]: {path!r} {error}; valid: {EXPECTED}.", f"PROVIDER_MISSING_{number}"
        ) from None


class _NoProviderError(Exception):
    """Why an import path names no provider, as the end of a sentence."""


@cache
def _imported(path: str) -> tuple[Provider, ProviderRecord]:
    """Import a provider and make it, once a process."""
    module, _, name = path.partition(":")
    try:
        kind = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise _NoProviderError(f"cannot be imported (no module {error.name!r})") from None
    except (Exception, SystemExit) as error:  # the code of a module may raise anything
        raise _NoProviderError(f"cannot be imported ({type(error).__name__})") from None
    if not isinstance(kind, type):
        raise _NoProviderError("is no class of its module")
    try:
        made = kind()
        types, own, find = made.types, getattr(made, "name", path), made.find
        given = getattr(made, "version", None)
    except DPTextError as error:  # ours say what they lack
        raise _NoProviderError(f"cannot be made without arguments ({error})") from None
    except (Exception, SystemExit) as error:
        raise _NoProviderError(
            f"cannot be made without arguments, or lacks types or find ({type(error).__name__})"
        ) from None
    if not callable(find):
        raise _NoProviderError("has a find that is no method")
    if (
        isinstance(types, str)
        or not isinstance(types, Sequence)
        or not all(isinstance(one, str) for one in types)
    ):
        raise _NoProviderError("has types that are no sequence of names")
    said = _version_of(module) if given is None else given
    for field, value in (("name", own), ("version", said)):
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST or not value.isprintable():
            raise _NoProviderError(f"has no {field}, or one that is no short text")
    return made, ProviderRecord(path, str(own), str(said), tuple(types))


def _version_of(module: str) -> str | None:
    """Return the version of the distribution that a module comes from; None for a file of one's own."""
    for name in packages_distributions().get(module.partition(".")[0], ()):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
