"""What others may add to the built-in patterns: a protocol from Arrow strings to typed spans."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64, U8, Bools, bounds_of
from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.text.spans import Spans, check_spans


@runtime_checkable
class Provider(Protocol):
    """Finds identifiers of its own types, such as names of persons, in a batch of texts.

    What it finds is masked by a placeholder of the type: `person` by `[PERSON]`. It travels to the workers, so it pickles; two
    providers of one name find the same in the same text, for the name is part of what the draws of a run are bound to.

    Attributes:
        name: with a version where what it finds depends on one, such as `presidio 2.2 en`.
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
    """A provider that reads the bytes of a batch, and needs no copy of them."""

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return the spans of texts data[rows[i]:rows[i + 1]]; behind the last stand 32 zeros."""
        ...


@runtime_checkable
class OfRows(Provider, Protocol):
    """A provider whose spans may depend on the row of a text."""

    def of_rows(self, rows: I64) -> Provider:
        """Return it for texts of these rows, int64[texts]."""
        ...


@runtime_checkable
class BesideRules(Provider, Protocol):
    """A provider that need not look at what the built-in rules found."""

    def beside(self, starts: I64, ends: I64) -> Provider:
        """Return it for the batch in whose bytes the rules found stretches starts[i]:ends[i], in any order."""
        ...


class TypedSpans:
    """Spans with their types, as a provider gives them.

    Attributes:
        rows: int64[n], the text of each, ascending.
        starts: int64[n], where each begins in the UTF-8 bytes of its text.
        ends: int64[n], where it ends there.
        types: int64[n], positions in the provider's `types`.
        kept: bool[n], whether it stays as it stands, in clear; what else is found there counts more.
    """

    def __init__(
        self,
        rows: Sequence[int] | I64,
        starts: Sequence[int] | I64,
        ends: Sequence[int] | I64,
        types: Sequence[int] | I64,
        kept: Bools | None = None,
    ) -> None:
        """Take four sequences of one length, in the order of the texts and of the spans in each."""
        self.rows, self.starts, self.ends, self.types = (
            np.asarray(values, np.int64) for values in (rows, starts, ends, types)
        )
        self.kept = np.zeros(len(self.rows), np.bool_) if kept is None else kept


def check_providers(providers: Sequence[Provider], reserved: Sequence[str]) -> None:
    """Refuse providers without a name or whose types cannot stand in a placeholder.

    Raises:
        SettingsError: which provider, and what is wrong.
    """
    for provider in providers:
        if not isinstance(provider, Provider) or not provider.name:
            raise SettingsError("providers: a provider needs a name, types, and a method find(texts).")
        wrong = [name for name in provider.types if not re.fullmatch("[a-z][a-z0-9_]{0,30}", name)]
        if wrong or not provider.types:
            raise SettingsError(
                f"providers: {provider.name!r} has types {list(provider.types)}; valid: names of letters, digits and "
                "underscores in lower case."
            )
        taken = [name for name in provider.types if name in reserved]
        if taken:
            raise SettingsError(
                f"providers: the type {taken[0]!r} of {provider.name!r} is taken; valid: another name."
            )


def provided(provider: Provider, data: U8, rows: I64, texts: pa.Array) -> tuple[Spans, I64, Bools]:
    """Ask a provider.

    Args:
        provider: whom.
        data: uint8[...], the bytes of the texts.
        rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
        texts: the same texts.

    Returns:
        (its spans in `data`; types int64[n] as positions in its own; bool[n], which stay as they stand).

    Raises:
        DataError: spans that overlap, are out of order or out of their texts, or of no type of its own; or it failed.
    """
    source = f"provider {provider.name!r}"
    if pa.types.is_binary(texts.type) or pa.types.is_large_binary(texts.type):
        texts = texts.view(pa.string() if pa.types.is_binary(texts.type) else pa.large_string())
    try:
        found = provider.find_in(data, rows) if isinstance(provider, OfBytes) else provider.find(texts)
    except DPTextError:
        raise
    except Exception as error:  # its message may hold the text
        raise DataError(f"{source}: it failed with {type(error).__name__}.") from None
    sizes = {len(values) for values in (found.rows, found.starts, found.ends, found.types)}
    if len(sizes) != 1:
        raise DataError(f"{source}: rows, starts, ends and types of different lengths.")
    if ((found.rows < 0) | (found.rows >= len(texts))).any() or (np.diff(found.rows) < 0).any():
        raise DataError(f"{source}: rows that are out of order, or no rows of the batch.")
    if ((found.types < 0) | (found.types >= len(provider.types))).any():
        raise DataError(f"{source}: a type that is none of its own; valid: {', '.join(provider.types)}.")
    bounds = bounds_of(found.rows, len(texts))
    shift = rows[found.rows]
    spans = Spans(data, rows, found.starts + shift, found.ends + shift, bounds)
    check_spans(spans, source)
    return spans, found.types, found.kept
