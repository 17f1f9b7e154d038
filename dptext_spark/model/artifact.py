"""A compiled model on disk: a manifest and .npy files. Every worker of a node memory-maps these and so shares them.

The folder holds the alias rows, the look-up table and the output cells, ready to use; no worker rebuilds anything. It holds no
key and no text, only public knowledge. One exception: importance by document frequencies of the sanitized texts stores these
frequencies. Then its manifest is marked `private`, and its files are their owner's alone.

A manifest is sealed with a digest, and names the digest of the arrays. Both are compared when a model is opened. They show
damage, but prove nothing: anyone who can write a model can seal it. With an expected fingerprint you get that model, or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dptext_spark.encoder.name_classifier import Classifier
from dptext_spark.encoder.weights import MODULES
from dptext_spark.errors import SCHEMA_VERSION, DataError, SettingsError, check_schema, require_extra
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.budget import Budget, BudgetSelector
from dptext_spark.importance.levels import Importance
from dptext_spark.importance.selector import Selector, restored
from dptext_spark.lexicon.prior import PairModel, Prior
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.mechanisms.base import Sampler, Summary
from dptext_spark.mechanisms.samplers.table import around, split
from dptext_spark.model.certificate import Certificate
from dptext_spark.model.privatizer import Consistency, Privatizer, fingerprint_of, providers_of
from dptext_spark.runtime.paths import PRIVATE, require_empty, write_atomically
from dptext_spark.runtime.validation import Json, Record
from dptext_spark.text.identifiers.provider import ImportedProvider, require_named
from dptext_spark.text.policy import Policy
from dptext_spark.text.word_table import WordTable

MANIFEST = "manifest.json"
MOST_BYTES = 1 << 24  # of a manifest; lists of words among the settings make it long
MOST_ARRAYS = 1 << 14
_PLAIN = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+){1,3}")  # names of arrays, and so of files
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class SamplerRecord(Record):
    """A sampler in a manifest.

    `before`: of the law before a remap; `sampler` names its class. None where outputs are released as drawn.
    """

    sparse: ClassVar[bool] = True

    sampler: str
    guarantee: Guarantee
    summary: Summary
    before: SamplerRecord | None = None

    @classmethod
    def of(cls, written: Mapping[str, Any], part: str) -> SamplerRecord:
        """Read a sampler from a manifest, or from a level; `part` is its name in messages.

        Raises:
            DataError: its guarantee is none.
        """
        guarantee = Guarantee(**written["guarantee"])
        if not guarantee.is_sound:
            raise DataError(f"artifact: {MANIFEST} has no valid guarantee of {part}.")
        kind = _samplers()[written["sampler"]].summary_type
        summary = kind.from_dict(written["summary"], f"artifact: {MANIFEST}, summary of {part}")
        before = written.get("before")
        drawn = None if before is None else cls.of(before | {"sampler": written["sampler"]}, part)
        return cls(written["sampler"], guarantee, summary, drawn)

    @classmethod
    def of_levels(cls, written: Mapping[str, Any]) -> tuple[SamplerRecord, ...]:
        """Read the samplers of the levels after the first."""
        numbered = enumerate(written["levels"], start=1)
        return tuple(cls.of(level, f"level{number}") for number, level in numbered)

    @classmethod
    def of_sampler(cls, sampler: Sampler) -> SamplerRecord:
        """Describe a sampler; :class:`SettingsError`: no mechanism compiles to one of its class."""
        drawn = sampler.before
        if drawn is not None:
            before = cls.of_sampler(drawn)
            return cls(before.sampler, sampler.guarantee, sampler.summary, before)
        name = type(sampler).__name__
        if name not in _samplers():
            raise SettingsError(
                f"artifact: a sampler of type {name} cannot be stored. Choose {', '.join(_samplers())}."
            )
        return cls(name, sampler.guarantee, sampler.summary)


@dataclass(frozen=True)
class ImportanceRecord:
    """The choice of words in a manifest.

    Attributes:
        bound: its part that the fingerprint binds.
        levels: the samplers of the levels after the first.
    """

    selection: Importance
    bound: Mapping[str, Json]
    levels: tuple[SamplerRecord, ...]

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> ImportanceRecord:
        """Read it back from a manifest."""
        return cls(Importance.of(written["selection"]), written["bound"], SamplerRecord.of_levels(written))

    def as_dict(self) -> dict[str, Json]:
        """Return it as a manifest holds it."""
        levels = [level.as_dict() for level in self.levels]
        return {"selection": self.selection.as_dict(), "bound": self.bound, "levels": levels}


@dataclass(frozen=True)
class BudgetRecord:
    """A budget in a manifest. `levels`: the samplers of the laws after the first."""

    budget: Budget
    levels: tuple[SamplerRecord, ...]

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> BudgetRecord:
        """Read it back from a manifest."""
        return cls(Budget.from_dict(written, "budget"), SamplerRecord.of_levels(written))

    @property
    def bound(self) -> Mapping[str, Json]:
        """Its part that the fingerprint binds in addition to the arrays."""
        return {"budget": self.budget.as_dict()}

    def as_dict(self) -> dict[str, Json]:
        """Return it as a manifest holds it."""
        return {**self.budget.as_dict(), "levels": [level.as_dict() for level in self.levels]}


@dataclass(frozen=True)
class PriorRecord(Record):
    """The public prior in a manifest.

    Its arrays lie next to the model's. They are no part of the model's fingerprint: where draws depend on the prior, the
    sampler's arrays hold the needed part. The seal covers their digest.

    Attributes:
        digest: sha256 of its numbers, hex.
        pairs: whether it has frequencies of word pairs.
        others: the words of contexts beyond the lexicon's.
    """

    name: str
    digest: str
    pairs: bool
    others: tuple[str, ...]

    @classmethod
    def of_prior(cls, prior: Prior) -> PriorRecord:
        """Describe a prior."""
        return cls(prior.name, prior.digest, prior.pairs is not None, prior.others)

    @property
    def arrays(self) -> tuple[str, ...]:
        """The names of its arrays, as its files have them."""
        names = ("words", *(field.name for field in fields(PairModel))) if self.pairs else ("words",)
        return tuple(f"prior.{name}" for name in names)


@dataclass(frozen=True)
class Manifest:
    """Description of an artifact, stored with its arrays.

    Attributes:
        fingerprint: sha256 of the arrays, the policy, the consistency and how importance chooses words.
        sampler: of the only level, or of the first.
        spec: the settings that it was made from, JSON-able; empty where they are not known.
        consistency: token, record or dataset.
        importance: how words are chosen; None where all are drawn alike.
        certificate: verdict on the guarantee; None where none was computed.
        private: whether an array holds counts of private texts.
        prior: the public prior stored with the arrays; None for Zipf's law over the lexicon's order.
        budget: bound of each record; None without one.
        seal: sha256 of all that, hex.
    """

    fingerprint: str
    sampler: SamplerRecord
    spec: dict[str, Any]
    policy: Policy
    consistency: Consistency
    arrays: tuple[str, ...]
    importance: ImportanceRecord | None = None
    certificate: Certificate | None = None
    private: bool = False
    prior: PriorRecord | None = None
    budget: BudgetRecord | None = None
    seal: str = ""

    @classmethod
    def of(cls, written: Mapping[str, Any]) -> Manifest:
        """Read a manifest from the result of :meth:`as_dict`."""
        chosen, certificate, prior, budget = (
            written.get(name) for name in ("importance", "certificate", "prior", "budget")
        )
        return cls(
            fingerprint=written["fingerprint"],
            sampler=SamplerRecord.of(written, "sampler"),
            spec=dict(written["spec"]),
            policy=Policy(**written["policy"]),
            consistency=written["consistency"],
            arrays=tuple(written["arrays"]),
            importance=None if chosen is None else ImportanceRecord.of(chosen),
            certificate=None if certificate is None else Certificate.of(certificate),
            private=bool(written.get("private")),
            prior=None if prior is None else PriorRecord.from_dict(prior, f"artifact: {MANIFEST}, prior"),
            budget=None if budget is None else BudgetRecord.of(budget),
            seal=written["seal"],
        )

    @classmethod
    def of_privatizer(cls, privatizer: Privatizer, spec: Mapping[str, Json] | None = None) -> Manifest:
        """Describe a privatizer, and seal it; it has no certificate yet.

        Raises:
            SettingsError: a part of it is code, which cannot be stored.
        """
        if privatizer.providers:
            raise SettingsError(
                "artifact: a provider is code and cannot be stored. Name its import path in policy.providers, or use the "
                "privatizer without saving or shipping it."
            )
        selector, chosen, budget = privatizer.selector, None, None
        if selector is not None:
            further = tuple(SamplerRecord.of_sampler(sampler) for sampler in selector.further)
            if isinstance(selector, BudgetSelector):
                budget = BudgetRecord(selector.budget, further)
            else:
                chosen = ImportanceRecord(selector.selection, selector.bound(), further)
        return cls(
            fingerprint=privatizer.fingerprint,
            sampler=SamplerRecord.of_sampler(privatizer.sampler),
            spec=dict(spec or {}),
            policy=privatizer.policy,
            consistency=privatizer.consistency,
            arrays=tuple(sorted(privatizer.arrays())),
            importance=chosen,
            private=selector is not None and selector.is_private,
            prior=None if privatizer.prior.is_by_rank else PriorRecord.of_prior(privatizer.prior),
            budget=budget,
        ).sealed()

    def as_dict(self) -> dict[str, Json]:
        """Return it as the file holds it."""
        parts = {name: getattr(self, name) for name in ("importance", "certificate", "prior", "budget")}
        return {
            "schema": SCHEMA_VERSION,
            "fingerprint": self.fingerprint,
            **self.sampler.as_dict(),
            "spec": self.spec,
            "policy": self.policy.as_dict(),
            "consistency": self.consistency,
            "arrays": list(self.arrays),
            **{name: part.as_dict() for name, part in parts.items() if part is not None},
            **({"private": True} if self.private else {}),
            "seal": self.seal,
        }

    def sealed(self) -> Manifest:
        """Return the manifest with a digest of its content: the guarantee must be the compiled one."""
        return replace(self, seal=_seal(self.as_dict()))

    def write(self, folder: Path) -> None:
        """Write the file into a folder, atomically.

        Raises:
            SettingsError: it would be longer than any that is read.
            OSError: it cannot be written.
        """
        text = json.dumps(self.as_dict(), indent=1, sort_keys=True, allow_nan=False)
        if len(text) > MOST_BYTES:
            raise SettingsError(
                f"artifact: its settings need {len(text):,} bytes of {MANIFEST}, and lists of words count. Use at most "
                f"{MOST_BYTES:,}."
            )
        write_atomically(folder / MANIFEST, text, PRIVATE if self.private else 0o666)


def _seal(written: Mapping[str, Json]) -> str:
    """Return the sha256 of a manifest without its seal."""
    sealed = {name: value for name, value in written.items() if name != "seal"}
    return hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()


def save_model(
    model: Privatizer, folder: str | os.PathLike[str], *, spec: Mapping[str, Json] | None = None
) -> str:
    """Write a compiled model as a new folder of .npy files and a manifest; the write is atomic.

    Args:
        model: what to store; one with providers of identifiers cannot be.
        folder: where; must not exist, or hold the same artifact, which is left as it is.
        spec: the settings that it was made from, JSON-able; `run.artifact` accepts a model only with those of the run.

    Returns:
        The fingerprint (hex): sha256 of the arrays, the policy, the consistency and how importance chooses words.

    Raises:
        SettingsError: `folder` holds something else, or the model cannot be stored.

    Examples:
        >>> fingerprint = dp.save_model(model, "model")
        >>> fingerprint == model.fingerprint
        True
    """
    target = Path(folder)
    manifest = Manifest.of_privatizer(model, spec)
    if (target / MANIFEST).exists():
        if replace(read_manifest(target), certificate=None).sealed().seal == manifest.seal:
            return model.fingerprint
        raise SettingsError(f"artifact: {str(target)!r} has another artifact. Choose an empty folder.")
    require_empty("artifact", target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".artifact-") as work:
        built = Path(work) / "artifact"
        built.mkdir()
        for name, array in model.arrays().items():
            np.save(built / f"{name}.npy", array, allow_pickle=False)
        for name, array in ({} if manifest.prior is None else model.prior.arrays()).items():
            np.save(built / f"prior.{name}.npy", array, allow_pickle=False)
        manifest.write(built)
        if manifest.private:  # nobody but the owner reads it
            built.chmod(0o700)
            for file in built.iterdir():
                file.chmod(0o600)
        if target.exists():
            target.rmdir()
        built.rename(target)
    return model.fingerprint


def certificate_of(folder: str | os.PathLike[str]) -> Certificate | None:
    """Return the certificate that an artifact holds, None where it has none.

    Raises:
        DataError: no artifact there, or it was changed.
    """
    return read_manifest(folder).certificate


def keep_certificate(folder: str | os.PathLike[str], certificate: Certificate) -> None:
    """Replace an artifact's certificate; its arrays and settings stay unchanged.

    Its duration is left out, so equal models are equal files.

    Raises:
        DataError: no artifact there, it was changed, or it cannot be written.
    """
    stored = replace(certificate, seconds=None)
    try:
        replace(read_manifest(folder), certificate=stored).sealed().write(Path(folder))
    except OSError as error:
        raise DataError(f"artifact: {str(folder)!r} cannot be written ({error.strerror}).") from None


def expected_fingerprint(folder: str | os.PathLike[str]) -> str:
    """Return the manifest's seal for `run.artifact_fingerprint`; :attr:`Manifest.fingerprint` is another digest.

    The seal covers the arrays, settings, guarantee and certificate.

    Raises:
        DataError: no artifact there, or it was changed.
    """
    return read_manifest(folder).seal


def require_expected(folder: str | os.PathLike[str], given: str | None) -> None:
    """Refuse an artifact that is not the expected one; None expects none in particular. No array is read.

    Raises:
        SettingsError: it is another one.
        DataError: no artifact there, or it was changed.
    """
    if given is None:
        return
    fingerprint = expected_fingerprint(folder)
    if fingerprint != given:
        raise SettingsError(
            f"run.artifact_fingerprint: {given} is not the fingerprint of {str(folder)!r}, {fingerprint}. Choose the one "
            "that `prepare` printed. If it printed this one, the folder has changed since, or got a certificate."
        )


def seal_of(privatizer: Privatizer, spec: Mapping[str, Json] | None = None) -> str:
    """Compute the identity of an artifact before it is written, also if only its words have changed."""
    return Manifest.of_privatizer(privatizer, spec).seal


def _samplers() -> dict[str, type[Sampler]]:
    """Return the samplers that the mechanisms compile to, by class name."""
    kinds = (
        kind for mechanism in MECHANISMS.values() for kind in (mechanism.sampler, *mechanism.other_samplers)
    )
    return {kind.__name__: kind for kind in kinds}


def read_manifest(folder: str | os.PathLike[str], prefix: str = "") -> Manifest:
    """Return the manifest of an artifact; `prefix` begins its file names, as in a shipped model.

    Raises:
        DataError: there is none, it is of another schema version, or it was changed.
    """
    try:
        manifest = json.loads(_content(_file(folder, f"{prefix}{MANIFEST}", inside=not prefix)))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"artifact: {str(folder)!r} has no readable {MANIFEST} ({type(error).__name__})."
        ) from None
    check_schema(
        manifest.get("schema") if isinstance(manifest, dict) else None, f"artifact: the model {str(folder)!r}"
    )
    if manifest.get("seal") != _seal(manifest):
        raise DataError(f"artifact: {MANIFEST} of {str(folder)!r} was changed after it was written.")
    names: Any = manifest.get("arrays")
    plain = isinstance(names, list) and all(
        isinstance(name, str) and _PLAIN.fullmatch(name) for name in names
    )
    if not plain or len(set(names)) < len(names) or len(names) > MOST_ARRAYS:
        raise DataError(
            f"artifact: {MANIFEST} of {str(folder)!r} names arrays that no model has. Each name occurs once and is like "
            "sampler.cells."
        )
    try:
        return Manifest.of(manifest)
    except (SettingsError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise _describes_none(folder, error) from error


def _describes_none(folder: str | os.PathLike[str], error: Exception) -> DataError:
    """Return the error for parts that check themselves: refused ones were not written by this version."""
    reason = str(error) if isinstance(error, SettingsError) else type(error).__name__
    return DataError(f"artifact: {MANIFEST} of {str(folder)!r} does not describe a model ({reason}).")


def _file(folder: str | os.PathLike[str], name: str, *, inside: bool) -> Path:
    """Return a readable file of an artifact: a pipe would wait for ever, and a link may lead anywhere.

    With `inside` a link must stay within the folder; Spark decides the place of shipped files.

    Raises:
        OSError: there is none, or it is no file of this folder.
    """
    file = Path(folder) / name
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(f"{name} is not a file")
    if inside and not file.resolve().is_relative_to(Path(folder).resolve()):
        raise OSError(f"{name} is a link out of the folder")
    return file


def _content(file: Path) -> str:
    """Return the text of a manifest; :class:`OSError`: it is longer than any that is written."""
    with file.open(encoding="utf-8") as stream:
        text = stream.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise OSError(f"{file.name} has more than {MOST_BYTES:,} characters")
    return text


def open_model(
    folder: str | os.PathLike[str],
    *,
    seal: str | None = None,
    prefix: str = "",
    providers: Sequence[str] = (),
) -> Privatizer:
    """Open a folder that :func:`save_model` wrote: memory-mapped, read-only, and compared with its fingerprint.

    Args:
        folder: the artifact.
        seal: value of `run.artifact_fingerprint` for the expected model; None: any.
        prefix: start of its file names, as in a shipped model.
        providers: import paths of the providers that it may have. A model that names others is refused before any is imported.

    Raises:
        DataError: a file is missing, unreadable, or differs from the manifest; or a provider has another version here.
        SettingsError: it holds a classifier of names, and the extra [encoder] is not installed; it was made with other providers
            than `providers` names, or one of them cannot be imported.

    Examples:
        >>> _ = dp.save_model(model, "model")
        >>> dp.open_model("model").guarantee() == model.guarantee()
        True
    """
    manifest = read_manifest(folder, prefix)
    if seal is not None and manifest.seal != seal:
        raise DataError(f"artifact: {str(folder)!r} is not the model that the driver sent.")
    require_named(manifest.policy.providers, providers, repr(str(folder)))
    arrays: dict[str, Array] = {}
    exposed: str | None = None
    # Where Spark brought the files, there is no prior among them: workers draw, and judge nothing.
    beside = () if manifest.prior is None or prefix else manifest.prior.arrays
    for name in (*manifest.arrays, *beside):
        try:
            file = _file(folder, f"{prefix}{name}.npy", inside=not prefix)
            if not prefix and file.stat().st_mode & 0o077:
                exposed = file.name
            arrays[name] = np.lib.format.open_memmap(file, mode="r")
        except Exception as error:  # a header may be wrong in any way that its parsers know
            raise DataError(
                f"artifact: {name}.npy of {str(folder)!r} cannot be read ({type(error).__name__})."
            ) from None
    if manifest.policy.names.classifies:
        require_extra("encoder", *MODULES)
    imported = providers_of(manifest.policy)
    try:
        public = _prior(manifest, {name: arrays.pop(name) for name in beside})
        return replace(_built(manifest, arrays, str(folder), exposed, imported), public=public)
    except (SettingsError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        raise _describes_none(folder, error) from error


def _built(
    manifest: Manifest,
    arrays: Mapping[str, Array],
    folder: str,
    exposed: str | None,
    imported: tuple[ImportedProvider, ...],
) -> Privatizer:
    """Build a privatizer from a manifest and its arrays; `exposed` is a file that others may read."""
    policy = manifest.policy
    chosen = manifest.importance if manifest.budget is None else manifest.budget
    records = tuple(provider.record for provider in imported)
    made_of = (policy, manifest.consistency, None if chosen is None else chosen.bound, (), records)
    if fingerprint_of(arrays, *made_of) != manifest.fingerprint:
        hint = f" Or it was made with other versions than {', '.join(map(str, records))}: prepare it again."
        raise DataError(f"artifact: {folder!r} was changed after it was written.{hint if records else ''}")
    table_arrays = _under("words", arrays)
    table = WordTable.restore(table_arrays)
    size = int(table.size[0])
    sampler = _restored(manifest.sampler, "sampler", arrays)
    selector: Selector | BudgetSelector | None = None
    if manifest.importance is not None and manifest.budget is not None:
        raise DataError(
            f"artifact: {MANIFEST} of {folder!r} has both importance and a budget. Prepare the model again with one of them."
        )
    if chosen is not None:
        levels = enumerate(chosen.levels, start=1)
        further = tuple(_restored(level, f"level{number}", arrays) for number, level in levels)
        if isinstance(chosen, BudgetRecord):
            selector = BudgetSelector(chosen.budget, _under("budget", arrays)["most"], further)
        else:
            selector = restored(chosen.selection, table, _under("importance", arrays), further)
        if selector.bound() != chosen.bound:
            raise DataError(f"artifact: {folder!r} chooses words in another way than its fingerprint states.")
    vocabulary = Vocabulary(table.offsets[: size + 1], table.word_bytes[: int(table.offsets[size])])
    classifies = policy.names.classifies
    classifier = Classifier.restore(_under("names", arrays), policy.names) if classifies else None
    privatizer = Privatizer(
        vocabulary, sampler, policy, manifest.consistency, manifest.fingerprint, table, selector,
        classifier=classifier, imported=imported,
    )  # fmt: skip
    is_private = selector is not None and selector.is_private
    if is_private != manifest.private:
        raise DataError(f"artifact: {folder!r} does not state whether it has counts of private texts.")
    if is_private and exposed:
        raise DataError(
            f"artifact: {folder!r} has counts of private texts, and other users can read {exposed}. Use `chmod -R go= "
            f"{folder}`."
        )
    unused = set(arrays) - set(privatizer.arrays())
    if unused:
        raise DataError(
            f"artifact: {folder!r} has arrays that belong to no part of the model ({min(unused)})."
        )
    return privatizer


def _prior(manifest: Manifest, arrays: Mapping[str, Array]) -> Prior | None:
    """Build the public prior from its arrays; None where there are none."""
    record = manifest.prior
    if record is None or not arrays:
        return None
    return Prior.restore(record.name, _under("prior", arrays), record.others, record.digest)


def _under(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays of a part, by their names there."""
    return {
        name.removeprefix(f"{prefix}."): array
        for name, array in arrays.items()
        if name.startswith(f"{prefix}.")
    }


def _restored(made: SamplerRecord, part: str, arrays: Mapping[str, Array]) -> Sampler:
    """Build a sampler again from its manifest and arrays."""
    kind = _samplers()[made.sampler]
    own_arrays = _under(part, arrays)
    added: dict[str, Array] = {}
    if made.before is not None:
        own_arrays, added = split(own_arrays)
    if made.before is None:
        return kind.restore(own_arrays, made.guarantee, made.summary)
    drawn = kind.restore(own_arrays, made.before.guarantee, made.before.summary)
    return around(drawn, added, made.guarantee, made.summary)
