"""Add your own finders to the built-in patterns, by a protocol from Arrow strings to typed spans.

Settings name providers by import path: the user's own code, imported by each worker. Only settings can name code to
import. The policy of a model names its providers. The model opens only if the settings name the same ones; nothing is
imported before that check. Its fingerprint binds the path and version of each provider.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, Bools, bounds_of
from dptext_spark.errors import DataError, DPTextError, SettingsError, either
from dptext_spark.runtime.validation import Record
from dptext_spark.text.chunks import Spans, check_spans, padded

FAILED, SPANS = "PROVIDER_FAILED", "PROVIDER_SPANS"


class ProviderError(DataError):
    """A provider failed, or returned invalid spans for its texts.

    `code`: a worker's code for the error: `FAILED` or `SPANS`, and the provider's number.
    """

    def __init__(self, message: str, kind: str, number: int) -> None:
        """Take a message without a word of the text, `FAILED` or `SPANS`, and the number of the provider, from 0."""
        super().__init__(message)
        self.code = f"{kind}_{number}"


@runtime_checkable
class Provider(Protocol):
    """Finds identifiers of its own types, such as names of persons, in a batch of texts.

    Its finds are masked by a placeholder of the type: `person` by `[PERSON]`. It travels to the workers, so it must pickle.
    The draws of a run are bound to its name, so two providers of one name must find the same in the same text.

    Attributes:
        name: with a version if the spans depend on one, such as `presidio 2.2 en`.
        types: the types of its spans, letters, digits and underscores in lower case.
    """

    @property
    def name(self) -> str:
        """See the class."""
        ...

    @property
    def types(self) -> tuple[str, ...]:
        """See the class."""
        ...

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return the spans of string or large_string [r] texts; NULL has none."""
        ...


@runtime_checkable
class OfBytes(Provider, Protocol):
    """A provider that reads the bytes of a batch without a copy."""

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return the spans of texts data[rows[i]:rows[i + 1]]; 32 zeros follow the last."""
        ...


@runtime_checkable
class OfRows(Provider, Protocol):
    """A provider whose spans may depend on the row of a text."""

    def of_rows(self, rows: I64) -> Provider:
        """Return the provider for texts of these rows, int64[texts]."""
        ...


class TypedSpans:
    """Spans with their types, as a provider gives them.

    Attributes:
        rows: int64[n], the text of each, ascending.
        starts: int64[n], where each begins in the UTF-8 bytes of its text.
        ends: int64[n], where it ends there.
        types: int64[n], positions in the provider's `types`.
        kept: bool[n], those that stay in clear; other finds at the same place win over them.
        wholes: int64[n], equal for the parts of one name and different for its neighbours; -1: no part. What the policy's own
            search finds within the name counts less.
    """

    def __init__(
        self,
        rows: Sequence[int] | I64,
        starts: Sequence[int] | I64,
        ends: Sequence[int] | I64,
        types: Sequence[int] | I64,
        kept: Bools | None = None,
        wholes: I64 | None = None,
    ) -> None:
        """Take four sequences of one length, ordered by text and by position in it.

        Raises:
            TypeError: they hold anything but integers.
        """
        self.rows, self.starts, self.ends, self.types = map(_whole, (rows, starts, ends, types))
        self.kept = np.zeros(len(self.rows), np.bool_) if kept is None else np.asarray(kept, np.bool_)
        self.wholes = np.full(len(self.rows), -1, np.int64) if wholes is None else wholes


def _whole(values: Sequence[int] | I64) -> I64:
    numbers = np.asarray(values)
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
        raise TypeError(
            f"spans of type {numbers.dtype} in {numbers.ndim} dimensions are not valid. Choose integers in one dimension"
        )
    return numbers.astype(np.int64)


def check_providers(providers: Sequence[Provider], reserved: Sequence[str], field: str = "providers") -> None:
    """Refuse providers without a name or with types that cannot be in a placeholder, by a :class:`SettingsError`."""
    for provider in providers:
        if not isinstance(provider, Provider) or not provider.name:
            raise SettingsError(f"{field}: a provider needs a name, types, and a method find(texts).")
        wrong = [name for name in provider.types if not re.fullmatch("[a-z][a-z0-9_]{0,30}", name)]
        if wrong or not provider.types:
            raise SettingsError(
                f"{field}: {provider.name!r} has types {list(provider.types)}. Choose names of letters, digits and "
                "underscores in lower case."
            )
        taken = [name for name in provider.types if name in reserved]
        if taken:
            raise SettingsError(
                f"{field}: another provider has the type {taken[0]!r} of {provider.name!r}. Choose another name."
            )


class ProviderSpans(NamedTuple):
    """Spans of one provider in a batch.

    Attributes:
        spans: in its bytes.
        types: int64[n], positions in the provider's `types`.
        kept: bool[n], which stay in clear.
        wholes: int64[n], as :class:`TypedSpans` has them.
    """

    spans: Spans
    types: I64
    kept: Bools
    wholes: I64


def provided(provider: Provider, number: int, data: U8, rows: I64, texts: pa.Array) -> ProviderSpans:
    """Ask a provider.

    Args:
        provider: whom.
        number: of the provider among all providers; its failure carries this number.
        data: uint8[...], the bytes of the texts.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        texts: the same texts; no provider sees invalid UTF-8.

    Raises:
        ProviderError: spans that overlap, are out of order or out of their texts, or of no type of its own; or it failed.
    """
    source = f"provider {provider.name!r}"
    try:
        spans = (
            provider.find_in(data, rows) if isinstance(provider, OfBytes) else provider.find(_readable(texts))
        )
    except DPTextError:
        raise
    except Exception as error:  # its message may hold the text
        raise ProviderError(f"{source}: it failed with {type(error).__name__}.", FAILED, number) from None
    try:
        return _checked(spans, source, provider.types, data, rows)
    except DataError as error:
        raise ProviderError(str(error), SPANS, number) from None


def _checked(found: object, source: str, types: tuple[str, ...], data: U8, rows: I64) -> ProviderSpans:
    """Check a provider's answer and return it as :func:`provided` does."""
    if not isinstance(found, TypedSpans):
        raise DataError(f"{source}: it returned {type(found).__name__}. Return TypedSpans.")
    places = (found.rows, found.starts, found.ends, found.types)
    if any(
        not isinstance(array, np.ndarray) or array.dtype != np.int64 or array.ndim != 1 for array in places
    ):
        raise DataError(f"{source}: rows, starts, ends and types must be int64 in one dimension.")
    others = (found.starts, found.ends, found.types, found.kept, found.wholes)
    if {len(values) for values in others} != {len(found.rows)}:
        raise DataError(f"{source}: rows, starts, ends, types and kept differ in length.")
    if ((found.rows < 0) | (found.rows >= len(rows) - 1)).any() or (np.diff(found.rows) < 0).any():
        raise DataError(f"{source}: rows do not ascend, or are not in the batch.")
    if ((found.types < 0) | (found.types >= len(types))).any():
        raise DataError(f"{source}: it returned a type that it does not declare. Return {either(types)}.")
    bounds = bounds_of(found.rows, len(rows) - 1)
    shift, sizes = rows[found.rows], np.diff(rows)[found.rows]
    if ((found.starts < 0) | (found.ends > sizes)).any():  # before the shift, because it may overflow
        raise DataError(f"{source}: a span is empty or lies outside its text.")
    spans = Spans(data, rows, found.starts + shift, found.ends + shift, bounds)
    check_spans(spans, source)
    return ProviderSpans(spans, found.types, found.kept, found.wholes)


def _readable(texts: pa.Array) -> pa.Array:
    """Return texts as strings, with NULL for invalid UTF-8. The engine counts such texts and releases nothing from them."""
    if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type):
        texts = texts.view(pa.string() if pa.types.is_binary(texts.type) else pa.large_string())
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return pa.array(
            [_decoded(text) for text in texts.view(_bytes_of(texts.type)).to_pylist()], texts.type
        )
    return texts


def _bytes_of(kind: pa.DataType) -> pa.DataType:
    return pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()


def _decoded(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


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
    """A provider cannot be imported or made here, or breaks the protocol. `code`: a worker's code for the error."""

    def __init__(self, message: str, code: str) -> None:
        """Take a message, and a code with the provider's number."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True)
class ProviderRecord(Record):
    """Description of a provider: the fingerprint of a model binds it, in the order of the settings.

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
        """Name and version for a reader."""
        return f"{self.name}, version {self.version} ({self.path})" if self.name != self.path else (
            f"{self.path}, version {self.version}"
        )  # fmt: skip


@dataclass(frozen=True)
class ImportedProvider:
    """A provider by its import path. It travels as that: each process imports it for itself, once.

    `number`: its place in the settings, from 0.
    """

    record: ProviderRecord
    number: int

    @property
    def name(self) -> str:
        """The provider's own name."""
        return self.record.name

    @property
    def types(self) -> tuple[str, ...]:
        """The types of its spans."""
        return self.record.types

    def require(self) -> Provider:
        """Return the object, imported here if it was not yet; :class:`ProviderImportError`: it cannot be imported."""
        return _load(self.record.path, self.number)[0]

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return its spans; :class:`ProviderError`: it failed, or wants to keep something in clear."""
        provider = self.require()
        try:
            spans = provider.find(texts)
        except (Exception, SystemExit) as error:  # its message may hold the text
            message = f"provider {self.name!r}: it failed with {type(error).__name__}."
            raise ProviderError(message, FAILED, self.number) from None
        if isinstance(spans, TypedSpans) and spans.kept.any():
            raise ProviderError(
                f"provider {self.name!r}: it keeps words in clear, and only masking is allowed.",
                SPANS,
                self.number,
            )
        return spans

    def try_out(self) -> None:
        """Ask it about texts that are no secret; :class:`SettingsError`: it fails, or returns invalid spans."""
        texts = pa.array(_TRIED, pa.string())
        try:
            provided(self, self.number, *padded(texts), texts)
        except ProviderError as error:
            raise SettingsError(f"{FIELD}[{self.number}]: on dptext's own test texts, {error}") from None


def check_paths(paths: object) -> tuple[str, ...]:
    """Return import paths as settings give them. Nothing is imported.

    Raises:
        SettingsError: no list of import paths, or one twice.
    """
    valid = "Choose a list of import paths such as package.module:Class, each once"
    if isinstance(paths, str) or not isinstance(paths, Sequence):
        raise SettingsError(f"{FIELD}: {type(paths).__name__} is not valid. {valid}.")
    for number, path in enumerate(paths):
        if not isinstance(path, str) or len(path) > LONGEST or not _PATH.fullmatch(path):
            entry = repr(path[:LONGEST]) if isinstance(path, str) else type(path).__name__
            raise SettingsError(f"{FIELD}[{number}]: {entry} is not valid. {valid}.")
        if path.startswith("__main__"):
            raise SettingsError(
                f"{FIELD}[{number}]: {path!r} is in the driver's own script, and no worker can import it. Choose a class of "
                "a module."
            )
        if path in paths[:number]:
            raise SettingsError(f"{FIELD}[{number}]: {path!r} is named twice. {valid}.")
    if len(paths) > MOST:
        raise SettingsError(f"{FIELD}: {len(paths)} providers are too many. Choose at most {MOST}.")
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
    providers = tuple(
        ImportedProvider(_load(path, number)[1], number) for number, path in enumerate(check_paths(paths))
    )
    check_providers(providers, reserved, FIELD)
    if tried:
        for provider in providers:
            provider.try_out()
    return providers


def require_named(given: Sequence[str], named: Sequence[str], place: str) -> None:
    """Refuse a model whose providers are not those that the settings name; nothing is imported.

    Raises:
        SettingsError: such a model.
    """
    if list(given) != list(named):
        raise SettingsError(
            f"{FIELD}: {', '.join(named) or 'none'} differs from {', '.join(given) or 'none'} of the model in {place}. "
            "Providers are code, so that the settings must name those of the model in the same order. Nothing was imported."
        )


def check_imported(paths: Sequence[str], imported: Sequence[ImportedProvider]) -> None:
    """Refuse a policy without the providers that it names, or with others, by a :class:`SettingsError`."""
    own_paths = tuple(provider.record.path for provider in imported)
    if own_paths != tuple(paths):
        raise SettingsError(
            f"{FIELD}: {list(paths)} differs from {list(own_paths)} of the privatizer. Choose a model that `compile` or "
            "`prepare` made of the policy."
        )


def _load(path: str, number: int) -> tuple[Provider, ProviderRecord]:
    """Return a provider and its own description; :class:`ProviderImportError`: it cannot be imported or made, or is none."""
    try:
        return _imported(path)
    except _NoProviderError as error:
        raise ProviderImportError(
            f"{FIELD}[{number}]: {path!r} {error}. Choose {EXPECTED}.", f"PROVIDER_MISSING_{number}"
        ) from None


class _NoProviderError(Exception):
    """Reason why an import path names no provider, as the end of a sentence."""


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
        provider = kind()
        types, own, find = provider.types, getattr(provider, "name", path), provider.find
        own_version = getattr(provider, "version", None)
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
        or not all(isinstance(type_name, str) for type_name in types)
    ):
        raise _NoProviderError("has types that are no sequence of names")
    version_text = _version_of(module) if own_version is None else own_version
    for field, value in (("name", own), ("version", version_text)):
        if not isinstance(value, str) or not value.strip() or len(value) > LONGEST or not value.isprintable():
            raise _NoProviderError(f"has no {field}, or one that is no short text")
    return provider, ProviderRecord(path, str(own), str(version_text), tuple(types))


def _version_of(module: str) -> str | None:
    """Return the version of a module's distribution; None for a file of the user's own."""
    for name in packages_distributions().get(module.partition(".")[0], ()):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
