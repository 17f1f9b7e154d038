"""A compiled model on disk: a manifest and .npy files, which every worker of a node memory-maps and so shares.

The folder holds the alias rows, the look-up table and the output cells, ready to use; no worker rebuilds anything. It
holds no key, no text and public knowledge only, but for one case: where importance is measured by document frequencies of the
very texts that are sanitized, it holds those.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from dptext_spark.errors import DataError, SettingsError
from dptext_spark.fingerprint import fingerprint_of
from dptext_spark.guarantee import Guarantee
from dptext_spark.importance.selection import Selection
from dptext_spark.importance.selector import restored
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.mechanisms.base import Sampler
from dptext_spark.privatizer import Privatizer
from dptext_spark.text.identifiers import NONE
from dptext_spark.text.policy import Policy
from dptext_spark.text.words import WordTable

FORMAT = 1
MANIFEST = "manifest.json"


def save(privatizer: Privatizer, folder: str | os.PathLike[str], spec: dict[str, Any] | None = None) -> str:
    """Write an artifact, whole or not at all.

    Args:
        privatizer: what to store.
        folder: where; must not exist, or hold the same artifact, which is left as it is.
        spec: the settings that it was made from, JSON-able; they are stored with it.

    Returns:
        The fingerprint (sha256 of all arrays, hex).

    Raises:
        SettingsError: `folder` holds something else.
    """
    target = Path(folder)
    manifest = _manifest(privatizer, spec)
    if (target / MANIFEST).exists():
        if _uncertified(read_manifest(target)) == manifest:
            return privatizer.fingerprint
        raise SettingsError(f"artifact: {str(target)!r} holds another artifact; name an empty folder.")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise SettingsError(f"artifact: {str(target)!r} exists and is no artifact; name an empty folder.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".artifact-") as work:
        built = Path(work) / "artifact"
        built.mkdir()
        for name, array in privatizer.arrays().items():
            np.save(built / f"{name}.npy", array, allow_pickle=False)
        _write(built, manifest)
        if target.exists():
            target.rmdir()
        built.rename(target)
    return privatizer.fingerprint


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
            os.replace(Path(work) / MANIFEST, Path(folder) / MANIFEST)
    except OSError as error:
        raise DataError(f"artifact: {str(folder)!r} cannot be written ({error.strerror}).") from None


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")


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
    file = Path(folder) / f"{prefix}{MANIFEST}"
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(
            f"artifact: {str(folder)!r} holds no readable {MANIFEST} ({type(error).__name__})."
        ) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise DataError(
            f"artifact: {str(folder)!r} is of another format; this version reads format {FORMAT}."
        )
    if manifest.get("seal") != _seal(manifest):
        raise DataError(f"artifact: {MANIFEST} of {str(folder)!r} was changed after it was written.")
    return manifest


def open_artifact(folder: str | os.PathLike[str], *, prefix: str = "", verify: bool = False) -> Privatizer:
    """Open an artifact; its arrays are memory-mapped, read-only.

    Args:
        folder: the artifact.
        prefix: what stands before its file names, as where it was shipped.
        verify: hash the arrays again and compare with the manifest.

    Raises:
        DataError: a file is missing, unreadable, or not what the manifest says.
    """
    manifest = read_manifest(folder, prefix)
    arrays = {}
    for name in manifest["arrays"]:
        try:
            arrays[name] = np.load(Path(folder) / f"{prefix}{name}.npy", mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise DataError(
                f"artifact: {name}.npy of {str(folder)!r} cannot be read ({type(error).__name__})."
            ) from None
    # One that was made before there were identifiers looks for none.
    policy, chosen = Policy(**{"identifiers": NONE, **manifest["policy"]}), manifest.get("importance")
    made_of = (policy, manifest["consistency"], None if chosen is None else chosen["bound"])
    if verify and fingerprint_of(arrays, *made_of) != manifest["fingerprint"]:
        raise DataError(f"artifact: {str(folder)!r} was changed after it was written.")
    table = WordTable.restore(_under("words", arrays))
    sampler = _restored(manifest, _under("sampler", arrays))
    selector = None
    if chosen is not None:
        levels = enumerate(chosen["levels"], start=1)
        further = tuple(_restored(level, _under(f"level{number}", arrays)) for number, level in levels)
        selection = Selection.of(chosen["selection"])
        selector = restored(selection, table, _under("importance", arrays), further)
    size = int(table.size[0])
    vocabulary = Vocabulary(table.offsets[: size + 1], table.word_bytes[: int(table.offsets[size])])
    return Privatizer(
        vocabulary, sampler, policy, manifest["consistency"], manifest["fingerprint"], table, selector
    )


def _under(prefix: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arrays of one part, by their names in it."""
    return {
        name.removeprefix(f"{prefix}."): array
        for name, array in arrays.items()
        if name.startswith(f"{prefix}.")
    }


def _restored(made: dict[str, Any], arrays: dict[str, Any]) -> Sampler:
    """Build a sampler again from what the manifest says of it, and its arrays."""
    kind = _samplers()[made["sampler"]]
    sampler: Sampler = kind.restore(arrays, Guarantee(**made["guarantee"]), made["summary"])
    return sampler
