"""A compiled model on disk: a manifest and .npy files, which every worker of a node memory-maps and so shares.

The folder holds the alias rows, the look-up table and the output cells, ready to use; no worker rebuilds anything. It
holds no key, no text and public knowledge only, but for one case: where importance is measured by document frequencies of the
very texts that are sanitized, it holds those. Its manifest says so then (`private`), and its files are their owner's alone.

A manifest is sealed with a digest, which shows a damaged file but proves nothing: whoever can write a model can seal it. So what
is opened is checked before it is read (:mod:`dptext_spark.runtime.array_checks`), and who gives the fingerprint that is expected
gets that model, or none.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.selection import Importance
from dptext_spark.importance.selector import restored
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.model.privatizer import Privatizer, fingerprint_of
from dptext_spark.runtime.array_checks import Arrays
from dptext_spark.text.identifiers.types import NONE
from dptext_spark.text.policy import Policy
from dptext_spark.text.word_table import WordTable

FORMAT = 2  # 1: samplers had other names
MANIFEST = "manifest.json"
MOST_BYTES = 1 << 24  # of a manifest; lists of words among the settings make it long
MOST_ARRAYS = 1 << 14
_PLAIN = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+){1,3}")  # names of arrays, and so of files
# What a manifest holds, and of which type.
_HELD: dict[str, tuple[type, ...]] = {
    "fingerprint": (str,),
    "sampler": (str,),
    "spec": (dict,),
    "policy": (dict,),
    "consistency": (str,),
    "guarantee": (dict,),
    "summary": (dict,),
    "arrays": (list,),
    "importance": (dict, type(None)),
    "certificate": (dict, type(None)),
    "private": (bool, type(None)),
}


def save_model(
    model: Privatizer, folder: str | os.PathLike[str], *, spec: dict[str, Any] | None = None
) -> str:
    """Write a compiled model as a new folder of .npy files and a manifest; the write is atomic.

    Args:
        model: what to store; one with providers of identifiers cannot be.
        folder: where; must not exist, or hold the same artifact, which is left as it is.
        spec: the settings that it was made from, JSON-able; `run.artifact` accepts a model only with those of the run.

    Returns:
        The fingerprint (sha256 of all arrays, hex).

    Raises:
        SettingsError: `folder` holds something else, or the model cannot be stored.

    Examples:
        >>> fingerprint = dp.save_model(model, "model")
        >>> fingerprint == model.fingerprint
        True
    """
    target = Path(folder)
    manifest = _manifest(model, spec)
    if (target / MANIFEST).exists():
        if _uncertified(read_manifest(target)) == manifest:
            return model.fingerprint
        raise SettingsError(f"artifact: {str(target)!r} holds another artifact; name an empty folder.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise SettingsError(f"artifact: {str(target)!r} exists and is no artifact; name an empty folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".artifact-") as work:
        built = Path(work) / "artifact"
        built.mkdir()
        for name, array in model.arrays().items():
            np.save(built / f"{name}.npy", array, allow_pickle=False)
        _write(built, manifest)
        if manifest.get("private"):
            _close(built)
        if target.exists():
            target.rmdir()
        built.rename(target)
    return model.fingerprint


def certificate_of(folder: str | os.PathLike[str]) -> dict[str, Any] | None:
    """Return the certificate that an artifact holds, None where it has none.

    Raises:
        DataError: no artifact there, or it was changed.
    """
    found: dict[str, Any] | None = read_manifest(folder).get("certificate")
    return found


def keep_certificate(folder: str | os.PathLike[str], certificate: dict[str, Any]) -> None:
    """Put a certificate into an artifact, in place of the one that it holds; its arrays and settings stay as they are.

    Raises:
        DataError: no artifact there, it was changed, or it cannot be written.
    """
    manifest = read_manifest(folder)
    manifest["certificate"] = json.loads(json.dumps(certificate, allow_nan=False))
    manifest["seal"] = _seal(manifest)
    try:
        with tempfile.TemporaryDirectory(dir=Path(folder).parent, prefix=".certificate-") as work:
            _write(Path(work), manifest)
            if manifest.get("private"):
                _close(Path(work))
            os.replace(Path(work) / MANIFEST, Path(folder) / MANIFEST)
    except OSError as error:
        raise DataError(f"artifact: {str(folder)!r} cannot be written ({error.strerror}).") from None


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    text = json.dumps(manifest, indent=1, sort_keys=True)
    if len(text) > MOST_BYTES:
        raise SettingsError(
            f"artifact: its settings make a {MANIFEST} of {len(text):,} bytes; valid: at most {MOST_BYTES:,}. Lists of words are "
            "part of it."
        )
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def _close(folder: Path) -> None:
    """Leave a folder and its files to their owner alone."""
    folder.chmod(0o700)
    for file in folder.iterdir():
        file.chmod(0o600)


def expected_fingerprint(folder: str | os.PathLike[str]) -> str:
    """Return what `run.artifact_fingerprint` names an artifact by: a digest of its arrays, settings, guarantee and certificate.

    Raises:
        DataError: no artifact there, or it was changed.
    """
    return str(read_manifest(folder)["seal"])


def require_expected(folder: str | os.PathLike[str], given: str | None) -> None:
    """Refuse an artifact that is not the expected one; None expects none in particular. No array is read.

    Raises:
        SettingsError: it is another one.
        DataError: no artifact there, or it was changed.
    """
    if given is None:
        return
    there = expected_fingerprint(folder)
    if there != given:
        raise SettingsError(
            f"run.artifact_fingerprint: {given} given, but the artifact {str(folder)!r} has {there}; valid: what `prepare` "
            "printed for the model that you mean. If it is this one, its folder was changed since, or given a certificate."
        )


def _uncertified(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest as it was before a certificate was put in."""
    made = {name: value for name, value in manifest.items() if name != "certificate"}
    return made | {"seal": _seal(made)}


def seal_of(privatizer: Privatizer, spec: dict[str, Any] | None = None) -> str:
    """Return what tells an artifact from every other, before it is written: also where only its words have changed."""
    return str(_manifest(privatizer, spec)["seal"])


def _manifest(privatizer: Privatizer, spec: dict[str, Any] | None) -> dict[str, Any]:
    """Return what is written beside the arrays, as JSON gives it back."""
    if privatizer.providers:
        names = ", ".join(repr(provider.name) for provider in privatizer.providers)
        raise SettingsError(
            f"artifact: a provider cannot be stored ({names}), for it is code; valid: a privatizer without, or one that is not "
            "saved nor shipped."
        )
    manifest = {
        "format": FORMAT,
        "fingerprint": privatizer.fingerprint,
        "sampler": _sampler_name(privatizer.sampler),
        "spec": spec or {},
        "policy": asdict(privatizer.policy),
        "consistency": privatizer.consistency,
        "guarantee": privatizer.sampler.guarantee.as_dict(),
        "summary": privatizer.sampler.summary,
        "arrays": sorted(privatizer.arrays()),
        **_importance(privatizer),
        **({"private": True} if _is_private(privatizer) else {}),
    }
    made: dict[str, Any] = json.loads(json.dumps(manifest))
    return made | {"seal": _seal(made)}


def _seal(manifest: dict[str, Any]) -> str:
    """Return the sha256 of a manifest without its seal: the guarantee must be the one that was compiled."""
    sealed = {name: value for name, value in manifest.items() if name != "seal"}
    return hashlib.sha256(json.dumps(sealed, sort_keys=True).encode()).hexdigest()


def _samplers() -> dict[str, Any]:
    """Return the samplers that the mechanisms compile to, by class name."""
    return {mechanism.sampler.__name__: mechanism.sampler for mechanism in MECHANISMS.values()}


def _importance(privatizer: Privatizer) -> dict[str, Any]:
    """Return how words are chosen, and the samplers of the levels after the first, where words are chosen."""
    selector = privatizer.selector
    if selector is None:
        return {}
    levels = [
        {"sampler": _sampler_name(one), "guarantee": one.guarantee.as_dict(), "summary": one.summary}
        for one in selector.further
    ]
    chosen = {"selection": selector.selection.as_dict(), "bound": selector.bound(), "levels": levels}
    return {"importance": chosen}


def _is_private(privatizer: Privatizer) -> bool:
    return privatizer.selector is not None and privatizer.selector.is_private


def _sampler_name(sampler: Sampler) -> str:
    name = type(sampler).__name__
    if name not in _samplers():
        raise SettingsError(
            f"artifact: a sampler of type {name} cannot be stored; valid: {', '.join(_samplers())}."
        )
    return name


def read_manifest(folder: str | os.PathLike[str], prefix: str = "") -> dict[str, Any]:
    """Return the manifest of an artifact; `prefix` stands before its file names, as where it was shipped.

    Raises:
        DataError: there is none, it is of another format, or it was changed.
    """
    try:
        manifest = json.loads(_content(_file(folder, f"{prefix}{MANIFEST}", inside=not prefix)))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"artifact: {str(folder)!r} holds no readable {MANIFEST} ({type(error).__name__})."
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(
            f"artifact: {str(folder)!r} is of another format, and this version reads format {FORMAT}; prepare it again."
        )
    if manifest.get("seal") != _seal(manifest):
        raise DataError(f"artifact: {MANIFEST} of {str(folder)!r} was changed after it was written.")
    wrong = [name for name, kinds in _HELD.items() if not isinstance(manifest.get(name), kinds)]
    if wrong:
        raise DataError(f"artifact: {MANIFEST} of {str(folder)!r} holds no valid {', '.join(wrong)}.")
    names = manifest["arrays"]
    plain = all(isinstance(name, str) and _PLAIN.fullmatch(name) for name in names)
    if not plain or len(set(names)) < len(names) or len(names) > MOST_ARRAYS:
        raise DataError(
            f"artifact: {MANIFEST} of {str(folder)!r} names arrays that no model has; valid: each once, by names such as "
            "sampler.cells."
        )
    return manifest


def _file(folder: str | os.PathLike[str], name: str, *, inside: bool) -> Path:
    """Return a file of an artifact that can be read: a pipe would wait for ever, and a link may lead anywhere.

    Args:
        folder: the artifact.
        name: of the file.
        inside: whether a link must stay within the folder; where Spark brought the files, it says where they lie.

    Raises:
        OSError: there is none, or it is no file of this folder.
    """
    file = Path(folder) / name
    if not stat.S_ISREG(file.stat().st_mode):
        raise OSError(f"{name} is no file")
    if inside and not file.resolve().is_relative_to(Path(folder).resolve()):
        raise OSError(f"{name} is a link out of the folder")
    return file


def _content(file: Path) -> str:
    """Return the text of a manifest.

    Raises:
        OSError: it is longer than any that is written.
    """
    with file.open(encoding="utf-8") as stream:
        text = stream.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise OSError(f"{file.name} holds more than {MOST_BYTES:,} characters")
    return text


def open_model(
    folder: str | os.PathLike[str], *, verify: bool = True, seal: str | None = None, prefix: str = ""
) -> Privatizer:
    """Open a folder that :func:`save_model` wrote: memory-mapped, read-only, and checked before anything is read from it.

    Args:
        folder: the artifact.
        verify: hash the arrays again and compare with the manifest.
        seal: what `run.artifact_fingerprint` names the expected model by; None: any.
        prefix: what stands before its file names, as where Spark shipped it.

    Raises:
        DataError: a file is missing, unreadable, not what the manifest says, or not what the compiled loops rely on.

    Examples:
        >>> _ = dp.save_model(model, "model")
        >>> dp.open_model("model").guarantee() == model.guarantee()
        True
    """
    manifest = read_manifest(folder, prefix)
    if seal is not None and manifest["seal"] != seal:
        raise DataError(f"artifact: {str(folder)!r} holds another model than the one that was sent.")
    arrays: dict[str, Any] = {}
    exposed: str | None = None
    for name in manifest["arrays"]:
        try:
            file = _file(folder, f"{prefix}{name}.npy", inside=not prefix)
            if not prefix and file.stat().st_mode & 0o077:
                exposed = file.name
            arrays[name] = np.lib.format.open_memmap(file, mode="r")
        except Exception as error:  # a header may be wrong in any way that its parsers know
            raise DataError(
                f"artifact: {name}.npy of {str(folder)!r} cannot be read ({type(error).__name__})."
            ) from None
    try:
        return _built(manifest, arrays, str(folder), verify, exposed)
    except (SettingsError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
        # Its parts are typed values that check themselves; what they refuse was not written by this version.
        said = str(error) if isinstance(error, SettingsError) else type(error).__name__
        raise DataError(f"artifact: {MANIFEST} of {str(folder)!r} describes no model ({said}).") from error


def _built(
    manifest: dict[str, Any], arrays: dict[str, Any], folder: str, verify: bool, exposed: str | None
) -> Privatizer:
    """Build a privatizer from a manifest and its arrays; `exposed` is a file that others may read."""
    # One that was made before there were identifiers looks for none.
    policy, chosen = Policy(**{"identifiers": NONE, **manifest["policy"]}), manifest.get("importance")
    made_of = (policy, manifest["consistency"], None if chosen is None else chosen["bound"])
    if verify and fingerprint_of(arrays, *made_of) != manifest["fingerprint"]:
        raise DataError(f"artifact: {folder!r} was changed after it was written.")
    held = _under("words", arrays)
    WordTable.check(Arrays("words", held))
    table = WordTable.restore(held)
    size = int(table.size[0])
    sampler = _restored(manifest, "sampler", arrays, size)
    selector = None
    if chosen is not None:
        levels = enumerate(chosen["levels"], start=1)
        further = tuple(_restored(level, f"level{number}", arrays, size) for number, level in levels)
        selection = Importance.of(chosen["selection"])
        selector = restored(selection, table, _under("importance", arrays), further)
        if verify and selector.bound() != chosen["bound"]:
            raise DataError(f"artifact: {folder!r} chooses words in another way than its fingerprint says.")
    vocabulary = Vocabulary(table.offsets[: size + 1], table.word_bytes[: int(table.offsets[size])])
    made = Privatizer(
        vocabulary, sampler, policy, manifest["consistency"], manifest["fingerprint"], table, selector
    )
    if _is_private(made) != bool(manifest.get("private")):
        raise DataError(f"artifact: {folder!r} does not say whether it holds counts of private texts.")
    if _is_private(made) and exposed:
        raise DataError(
            f"artifact: {folder!r} holds counts of private texts, and others may read {exposed}; use `chmod -R go= {folder}`."
        )
    unused = set(arrays) - set(made.arrays())
    if unused:
        raise DataError(f"artifact: {folder!r} holds arrays that belong to no part of it ({min(unused)}).")
    return made


def _under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of one part, by their names in it."""
    return {
        name.removeprefix(f"{prefix}."): array
        for name, array in arrays.items()
        if name.startswith(f"{prefix}.")
    }


def _restored(made: dict[str, Any], part: str, arrays: dict[str, Any], words: int) -> Sampler:
    """Build a sampler again from what the manifest says of it, and its arrays."""
    kind = _samplers()[made["sampler"]]
    held = _under(part, arrays)
    kind.check(Arrays(part, held), words)
    guarantee = Guarantee(**made["guarantee"])
    if not guarantee.is_sound or not isinstance(made["summary"], dict):
        raise DataError(f"artifact: {MANIFEST} holds no valid guarantee of {part}.")
    sampler: Sampler = kind.restore(held, guarantee, made["summary"])
    return sampler
